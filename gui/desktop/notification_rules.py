"""What is worth telling: which changes of tasks are news, and how much news at a time. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import time
from enum import StrEnum

import msgspec

from engine.model.pace import STALL_MIN_MS
from engine.model.records import LIVE, TASK_RUN, TaskRecord, TaskView
from engine.model.status import Reason, Standing, moment, reasons, standing

SETTLE_MS = 400  # whether more is coming: what ends together is told together
BURST_MS = 10_000
MOST_ALONE = 2  # in ten seconds; three and more become one notice
MOST_REMEMBERED = 20_000


class Kind(StrEnum):
    """What happened to a task."""

    FAILED = "failed"
    ATTENTION = "attention"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class Happening(msgspec.Struct, frozen=True):
    """One piece of news about one task; `reason` for what needs attention."""

    at_ms: float
    kind: Kind
    view: TaskView
    reason: Reason | None = None


class Popup(msgspec.Struct, frozen=True):
    """What is shown outside of the window, and the tasks that a click on it leads to."""

    title: str
    body: str = ""
    task_ids: tuple[str, ...] = ()
    urgent: bool = False
    sound: bool = False


_ENDS = {
    Standing.COMPLETED: Kind.COMPLETED,
    Standing.FAILED: Kind.FAILED,
    Standing.CANCELLED: Kind.CANCELLED,
}


class Watch:
    """Turns views into happenings: each end is told once, each need for a person once.

    `stall_after_ms` knows how long the silence of a task may last.
    """

    def __init__(
        self, since_ms: float, stall_after_ms: Callable[[str], float] = lambda _: STALL_MIN_MS
    ) -> None:
        self._since_ms, self._stall_after_ms = since_ms, stall_after_ms
        self._live: dict[str, None] = {}
        self._told: dict[tuple[str, object], None] = {}

    @property
    def live(self) -> Sequence[str]:
        """The tasks that have not ended, oldest first."""
        return tuple(self._live)

    def learn(self, views: Iterable[TaskView]) -> None:
        """Know these without telling anything: they were so before the window came."""
        for view in views:
            if not self._sort_in(view):
                self._needs_of(view, self._since_ms)

    def ended_since(self, views: Iterable[TaskView], now_ms: float) -> list[Happening]:
        """Which of these, met for the first time, ended while this watch lasted: what a program
        that was killed had left running is ended as the ledger is opened."""
        records = ((view, view.entry) for view in views if isinstance(view.entry, TaskRecord))
        recent = [view for view, entry in records if (entry.ended_at or 0) >= self._since_ms]
        return [one for view in recent for one in self._end_of(view, False, now_ms)]

    def hear(self, views: Iterable[TaskView], now_ms: float) -> list[Happening]:
        """What is new in these views; that a task goes on as before costs next to nothing."""
        found: list[Happening] = []
        for view in views:
            was_live = view.entry.task_id in self._live
            if self._sort_in(view):
                continue
            if view.entry.task_id in self._live or not _has_ended(view):
                found += self._needs_of(view, now_ms)
            else:
                found += self._end_of(view, was_live, now_ms)
        return found

    def find_needs(self, views: Iterable[TaskView], now_ms: float) -> list[Happening]:
        """Which of these need a person by now; of a stall nothing else tells."""
        return [one for view in views for one in self._needs_of(view, now_ms)]

    def forget(self, task_ids: Iterable[str]) -> None:
        """These are gone from the ledger."""
        for task_id in task_ids:
            self._live.pop(task_id, None)

    def _sort_in(self, view: TaskView) -> bool:
        """Does it simply go on? Called for every one of 20,000 changes a second."""
        entry = view.entry
        if isinstance(entry, TaskRecord) and entry.status in LIVE:
            self._live[entry.task_id] = None
            if entry.kind == TASK_RUN:  # it goes on: if it asks for help again, that is news
                self._told.pop((entry.task_id, Reason.HELP), None)
            return entry.budget_status != "exceeded" and not view.orphaned
        self._live.pop(entry.task_id, None)
        return False

    def _end_of(self, view: TaskView, was_live: bool, now_ms: float) -> list[Happening]:
        kind = _ENDS.get(standing(view))
        assert isinstance(view.entry, TaskRecord)
        ended = moment(view.entry.ended_at)
        # one that came and went between two looks was never seen alive
        news = was_live or (ended is not None and ended >= self._since_ms)
        if kind is None or not news or not self._note(view, "end"):
            return []
        return [Happening(now_ms, kind, view)]

    def _needs_of(self, view: TaskView, now_ms: float) -> list[Happening]:
        """The most pressing reason, if it is new; the others are told with it."""
        if _has_ended(view):
            return []
        new = [reason for reason in self._reasons(view, now_ms) if self._note(view, reason)]
        return [Happening(now_ms, Kind.ATTENTION, view, new[0])] if new else []

    def _reasons(self, view: TaskView, now_ms: float) -> tuple[Reason, ...]:
        return reasons(view, now_ms, self._stall_after_ms(view.task_id))

    def _note(self, view: TaskView, what: object) -> bool:
        """Is this news? Remembers it; of very many the oldest are forgotten."""
        key = (view.task_id, what)
        if key in self._told:
            return False
        self._told[key] = None
        if len(self._told) > MOST_REMEMBERED:
            self._told.pop(next(iter(self._told)))
        return True


def _has_ended(view: TaskView) -> bool:
    """Ended, as the ledger says: whatever it needs was told as its end."""
    return isinstance(view.entry, TaskRecord) and view.entry.is_terminal


class Grouping:
    """Keeps a flood of news from becoming a flood of pop-ups.

    The first ones wait 0.4 s for company, those that follow until ten seconds are over. So
    there are never more than four pop-ups in ten seconds, and nothing is told later than that.
    """

    def __init__(self) -> None:
        self._waiting: list[Happening] = []
        self._open_at = -float("inf")  # when the next ones may be told

    def add(self, news: Iterable[Happening]) -> None:
        self._waiting += news

    def due_in(self, now_ms: float) -> float | None:
        """How long to wait with what is here, in ms; None when there is nothing."""
        if not self._waiting:
            return None
        return max(self._waiting[0].at_ms + SETTLE_MS, self._open_at) - now_ms

    def take(self, now_ms: float) -> list[tuple[Happening, ...]]:
        """What is to be told now, each group as one."""
        due = self.due_in(now_ms)
        if due is None or due > 0:
            return []
        news, self._waiting = self._waiting, []
        self._open_at = now_ms + BURST_MS
        if len(news) <= MOST_ALONE:
            return [(one,) for one in news]
        return [tuple(news)]


def is_quiet(now: time, start: str, end: str) -> bool:
    """Is `now` between two times of the day, written HH:MM? They may lie around midnight."""
    try:
        first, last = _clock(start), _clock(end)
    except ValueError:
        return False
    if first <= last:
        return first <= now < last
    return now >= first or now < last


def _clock(written: str) -> time:
    """Also `7:30`, which people write and Python refuses. Raises ValueError."""
    hour, _, minute = written.partition(":")
    return time(int(hour), int(minute))
