"""Budgets of a task with a body: one unit counts as one call of a tool (seed 004)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from engine import budgets
from engine.budgets import BudgetStatus, ToolCall
from engine.budgets.envelopes import DurationMeter, apply, edge_events
from engine.kinds.context import StopReason
from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.model.records import ErrorInfo, Units

# Minimum interval of writes to meta.json; the events report each change at once.
WRITE_S: Final = 1.0
ASLEEP_S: Final = 30.0  # it is called four times a second: after such a gap the machine was asleep
KEPT: Final = ("counters", "budget_status", "budget_exceeded", "recommended_next")
MEASURED: Final = ("lasted_ms", "lasted_at")  # under `engine`


class BudgetObserver:
    """Observer that counts one task's budgets; only a task with a policy has one.

    With `enforce` it stops the task as soon as a budget is exceeded; without, exceeding one is only
    reported. Time counts by the monotonic clock, and only while this process runs. Source: seed
    004.
    """

    def __init__(
        self,
        ledger: Ledger,
        task_id: str,
        enforce: bool,
        *,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._task_id = task_id
        self._enforce = enforce
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._durations = DurationMeter(monotonic, asleep_s=ASLEEP_S)
        self._meta: dict[str, Any] = {}
        self._failed = 0
        self._dirty = False
        self._written = float("-inf")

    def on_unit(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        """Count a finished unit, and return the reason if the task has to end now."""
        address = unit.get("final_url") or unit.get("url")
        args = {"url": address} if isinstance(address, str) and address else {}
        ok, self._failed = units.failed <= self._failed, units.failed
        meta = self._record()
        old, now = budgets.before(meta), self._now_ms()
        self._durations.measure(meta, now)
        apply(meta, budgets.fold(meta, ToolCall(str(meta.get("kind")), args, ok), now))
        self._dirty = True
        return self._apply_status(old, budgets.at(meta, now))

    def on_tick(self) -> StopReason:
        """Check the time limit, and write the counters when that is due."""
        meta = self._record()
        old, now = budgets.before(meta), self._now_ms()
        # The clock was set: readers must use the measured time.
        if self._durations.measure(meta, now):
            self._dirty = True
        new = budgets.at(meta, now)
        meta["last_activity_at"] = now
        if (new.exceeded, new.warning) != (old.exceeded, old.warning):
            apply(meta, budgets.verdict(new))
            self._dirty = True
        return self._apply_status(old, new)

    def refusal(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        """Return None: a budget never refuses a finished result."""
        return None

    def on_end(self) -> None:
        """Write the last counts before the terminal record."""
        if self._meta:
            self._write()

    def _apply_status(self, old: BudgetStatus, new: BudgetStatus) -> StopReason:
        transition = edge_events(old, new)
        if transition:
            self._ledger.note(self._task_id, transition)
        if self._dirty and self._monotonic() - self._written >= WRITE_S:
            self._write()
        return "budget" if self._enforce and new.status == "exceeded" else ""

    def _record(self) -> dict[str, Any]:
        """Record as read when this task began; from then on it is counted here."""
        if not self._meta:
            self._meta = self._ledger.read_raw(self._task_id)
        return self._meta

    def _write(self) -> None:
        counters = {name: self._meta.get(name) for name in KEPT}
        ours = changes.engine_of(self._meta)
        measured: dict[str, Any] = {name: ours[name] for name in MEASURED if name in ours}
        self._dirty, self._written = False, self._monotonic()

        def write(raw: dict[str, Any]) -> None:
            apply(raw, counters)
            changes.engine_of(raw).update(measured)

        self._ledger.mutate(self._task_id, write)
