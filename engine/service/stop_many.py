"""Asking several tasks to stop: what a request would do to each, and asking them all.

A set is sorted first, shown to a person, and then asked as it was shown: what has come
since is not touched, what has ended since is left as it ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from engine.model.errors import EngineError
from engine.model.lifecycle import TASK_RUN as RUN_STATES
from engine.model.records import ENVELOPE, TASK_RUN, TaskId, TaskRecord, TaskView, Unreadable
from engine.model.status import Standing, standing

AT_ONCE: Final = 4  # requests under way together: each waits for a disk
_LIVE = (Standing.PENDING, Standing.RUNNING, Standing.CANCELLING, Standing.ORPHANED)


class NotConfirmed(EngineError):
    """Tasks were chosen by a query, and nobody has confirmed that these are the ones."""

    code = "not_confirmed"
    title = "Nothing was cancelled"
    sentence = "{number} tasks match; none was cancelled."
    advice_text = "Look at them with --dry-run, then confirm with --yes."


class Fate(StrEnum):
    """What a request to stop would do to a task, by what it finds there now."""

    PENDING = "pending"  # cancelled at once
    AT_ONCE = "at_once"  # driven from outside: cancelled at once, whoever drives it
    RUNNING = "running"  # stops after the unit it is on
    FOREIGN = "foreign"  # asked; the program that runs it must act
    ASKED = "asked"  # was asked already
    ENDED = "ended"
    LOST = "lost"  # unreadable, or its owner is dead: nobody can stop it
    UNKNOWN = "unknown"  # in a state that we do not know


REACHED: Final = (Fate.PENDING, Fate.RUNNING, Fate.FOREIGN, Fate.AT_ONCE)


@dataclass(frozen=True, slots=True)
class Plan:
    """A set of tasks, sorted by what a request to stop does to each."""

    fates: Mapping[Fate, tuple[TaskView, ...]]

    def of(self, fate: Fate) -> tuple[TaskView, ...]:
        return self.fates.get(fate, ())

    @property
    def views(self) -> tuple[TaskView, ...]:
        """The tasks that a request goes to."""
        return tuple(view for fate in REACHED for view in self.of(fate))

    @property
    def ids(self) -> tuple[TaskId, ...]:
        return tuple(view.task_id for view in self.views)

    @property
    def skipped(self) -> int:
        """How many would be left as they are."""
        return sum(map(len, self.fates.values())) - len(self.views)


@dataclass(frozen=True, slots=True)
class Stopped:
    """What came of asking: the records as they stand now, and who refused and why."""

    records: tuple[TaskRecord, ...]
    refused: tuple[EngineError, ...] = ()


def ours(view: TaskView) -> bool:
    """Does this very process run it, and so stop it within one unit?"""
    return view.ours


def answers(view: TaskView) -> bool:
    """Is it run by an engine like this one, here or elsewhere? It looks for requests itself."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return False
    return view.ours or (entry.engine is not None and entry.engine.runner is not None)


def plan(views: Iterable[TaskView], stops: Callable[[TaskView], bool] = ours) -> Plan:
    """Sort `views`; `stops` tells which of the running ones will answer a request."""
    groups: dict[Fate, list[TaskView]] = {}
    for view in views:
        groups.setdefault(fate(view, stops), []).append(view)
    return Plan({each: tuple(found) for each, found in groups.items()})


def fate(view: TaskView, stops: Callable[[TaskView], bool] = ours) -> Fate:
    """What a request to stop would do to this task."""
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
    """A task run ends at once by anybody's word, also one that waits for help."""
    entry = view.entry
    return (
        isinstance(entry, TaskRecord)
        and entry.kind == TASK_RUN
        and not RUN_STATES.is_terminal(entry.status)
    )


async def stop_all(
    cancel: Callable[[str, str | None], Awaitable[TaskRecord]],
    task_ids: Iterable[str],
    reason: str | None,
) -> Stopped:
    """Ask each of these tasks to stop; one that cannot be asked does not keep the others."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(task_id: str) -> TaskRecord | EngineError:
        async with gate:
            try:
                return await cancel(task_id, reason)
            except EngineError as error:
                return error

    answered = await asyncio.gather(*map(one, dict.fromkeys(task_ids)))
    return Stopped(
        tuple(each for each in answered if isinstance(each, TaskRecord)),
        tuple(each for each in answered if isinstance(each, EngineError)),
    )
