"""Plan of a stop request: its effect on each task, before any is changed.

Of many tasks a plan is shown to the user and then executed unchanged: newer tasks are not stopped,
and tasks that have ended meanwhile stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from engine.model.errors import EngineError
from engine.model.lifecycle import TASK_RUN as RUN_STATES
from engine.model.records import ENVELOPE, TASK_RUN, TaskId, TaskRecord, TaskView, Unreadable
from engine.model.status import Standing, standing

_LIVE = (Standing.PENDING, Standing.RUNNING, Standing.CANCELLING, Standing.ORPHANED)


class NotConfirmed(EngineError):
    """Tasks were selected by a query, without a confirmation."""

    code = "not_confirmed"
    title = "Nothing was changed"
    sentence = "{number} tasks match; none was changed."
    advice_text = "Look at them with --dry-run, then confirm with --yes."


class Fate(StrEnum):
    """Effect of a stop request on a task in its current state."""

    PENDING = "pending"  # cancelled at once
    AT_ONCE = "at_once"  # driven from outside by any program: cancelled at once
    RUNNING = "running"  # stops after its current unit
    FOREIGN = "foreign"  # requested; the program that runs it must act
    ASKED = "asked"  # was requested before
    ENDED = "ended"
    LOST = "lost"  # unreadable, or its owner is dead, so that it cannot be stopped
    UNKNOWN = "unknown"  # in an unknown state


REACHED: Final = (Fate.PENDING, Fate.RUNNING, Fate.FOREIGN, Fate.AT_ONCE)


@dataclass(frozen=True, slots=True)
class Plan:
    """Tasks grouped by the effect of a stop request."""

    fates: Mapping[Fate, tuple[TaskView, ...]]

    def of(self, fate: Fate) -> tuple[TaskView, ...]:
        return self.fates.get(fate, ())

    @property
    def views(self) -> tuple[TaskView, ...]:
        """The tasks that receive a request."""
        return tuple(view for fate in REACHED for view in self.of(fate))

    @property
    def ids(self) -> tuple[TaskId, ...]:
        return tuple(view.task_id for view in self.views)

    @property
    def skipped(self) -> int:
        """The number of tasks that stay unchanged."""
        return sum(map(len, self.fates.values())) - len(self.views)


@dataclass(frozen=True, slots=True)
class Stopped:
    """Result of stop requests: the current records, and the errors of refused requests."""

    records: tuple[TaskRecord, ...]
    refused: tuple[EngineError, ...] = ()


def ours(view: TaskView) -> bool:
    """Return whether this process runs the task, and so stops it within one unit."""
    return view.ours


def answers(view: TaskView) -> bool:
    """Return whether an engine like this one runs the task, and so reads requests itself."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return False
    return view.ours or (entry.engine is not None and entry.engine.runner is not None)


def plan(views: Iterable[TaskView], stops: Callable[[TaskView], bool] = ours) -> Plan:
    """Group `views`; `stops` returns whether a running task will obey a request."""
    groups: dict[Fate, list[TaskView]] = {}
    for view in views:
        groups.setdefault(fate(view, stops), []).append(view)
    return Plan({each: tuple(found) for each, found in groups.items()})


def fate(view: TaskView, stops: Callable[[TaskView], bool] = ours) -> Fate:
    """Return the effect of a stop request on this task."""
    state = standing(view)
    if _is_open_run(view):
        return Fate.AT_ONCE
    if state is Standing.UNKNOWN:
        return Fate.UNKNOWN
    if state in _LIVE and getattr(view.entry, "kind", "") == ENVELOPE:
        return Fate.AT_ONCE
    if state is Standing.PENDING:
        return Fate.PENDING
    if state is Standing.RUNNING:
        return Fate.RUNNING if stops(view) else Fate.FOREIGN
    if state is Standing.CANCELLING:
        return Fate.ASKED
    return Fate.LOST if state in (Standing.ORPHANED, Standing.UNREADABLE) else Fate.ENDED


def _is_open_run(view: TaskView) -> bool:
    """Return whether this is an open task run, which any stop request ends at once."""
    entry = view.entry
    return (
        isinstance(entry, TaskRecord)
        and entry.kind == TASK_RUN
        and not RUN_STATES.is_terminal(entry.status)
    )
