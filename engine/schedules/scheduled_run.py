"""One run of a schedule: its claim, and the counts of what differs from the run before it.

The counts are stored after the result and before the terminal record, because a terminal record is
final; every list then has them without reading a result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from engine.kinds.context import StopReason
from engine.ledger.changes import engine_of
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError
from engine.model.records import ErrorInfo, RunChanges, ScheduleLink, Status, TaskRecord, Units
from engine.results.units import differences

MOST_STEPS: Final = 100  # runs that did not complete are passed over, up to so many


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """Claimed run of a schedule: its task gets exactly this id.

    `confirm` records that the task exists, before anything of it runs.
    """

    link: ScheduleLink
    task_id: str
    parent: str | None
    confirm: Callable[[], None]


class ChangesObserver:
    """Observer of one scheduled run: compares its pages with those of the last completed run."""

    def __init__(self, ledger: Ledger, task_id: str, parent: str) -> None:
        self._ledger = ledger
        self._task_id = task_id
        self._parent = parent

    def on_unit(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        return ""

    def on_carried(self, units: Iterable[Mapping[str, Any]]) -> None:
        pass

    def on_tick(self) -> StopReason:
        return ""

    def refusal(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        return None

    def on_end(self) -> None:
        pass

    def on_result(self) -> None:
        """Count the differences and store the counts. Without a completed run there are none."""
        before = self._last_completed()
        if before is None:
            return
        runs = (self._ledger, before), (self._ledger, self._task_id)
        found = differences(*runs, lambda _: None, threading.Event())
        counts = RunChanges(before, found.added, found.removed, found.changed, found.same)

        def note(raw: dict[str, Any]) -> None:
            engine_of(raw)["schedule"]["changes"] = msgspec.to_builtins(counts)

        self._ledger.mutate(self._task_id, note)

    def _last_completed(self) -> str | None:
        """Return the newest completed run before this one; None where none is left."""
        task_id: str | None = self._parent
        for _ in range(MOST_STEPS):
            if task_id is None:
                return None
            try:
                record = self._ledger.read(task_id)
            except EngineError:
                return None  # deleted: nothing is left to compare with
            if not isinstance(record, TaskRecord):
                return None
            if record.status == Status.COMPLETED:
                return task_id
            task_id = record.engine.parent_task_id if record.engine is not None else None
        return None
