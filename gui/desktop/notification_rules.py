"""Rules for notifications: which changes are reported, and at which rate. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import time
from enum import StrEnum

import msgspec

from engine.model.pace import STALL_MIN_MS
from engine.model.records import LIVE, TASK_RUN, TaskRecord, TaskView
from engine.model.status import Reason, Standing, moment, reasons, standing

SETTLE_MS = 400  # Delay in ms that groups tasks ending together
BURST_MS = 10_000
MOST_ALONE = 2  # Separate notifications within ten seconds; three or more are grouped into one
MOST_REMEMBERED = 20_000


class Kind(StrEnum):
    """Type of a notification."""

    FAILED = "failed"
    ATTENTION = "attention"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class Happening(msgspec.Struct, frozen=True):
    """One event of one task, with a `reason` for attention."""

    at_ms: float
    kind: Kind
    view: TaskView
    reason: Reason | None = None


class Popup(msgspec.Struct, frozen=True):
    """A desktop notification and the tasks that a click on it shows."""

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
    """Detect notable task changes, each end and each reason for attention once.

    `stall_after_ms` returns the silence after which a task counts as stalled.
    """

    def __init__(
        self, since_ms: float, stall_after_ms: Callable[[str], float] = lambda _: STALL_MIN_MS
    ) -> None:
        self._since_ms, self._stall_after_ms = since_ms, stall_after_ms
        self._live: dict[str, None] = {}
        self._told: dict[tuple[str, object], None] = {}

    @property
    def live(self) -> Sequence[str]:
        """The live tasks, oldest first."""
        return tuple(self._live)

    def learn(self, views: Iterable[TaskView]) -> None:
        """Record the state before the window opened, without notifications."""
        for view in views:
            if not self._sort_in(view):
                self._needs_of(view, self._since_ms)

    def ended_since(self, views: Iterable[TaskView], now_ms: float) -> list[Happening]:
        """Return tasks, seen for the first time, that ended since this watch started.

        Opening a ledger ends the tasks that a killed program left running.
        """
        records = ((view, view.entry) for view in views if isinstance(view.entry, TaskRecord))
        recent = [view for view, entry in records if (entry.ended_at or 0) >= self._since_ms]
        return [one for view in recent for one in self._end_of(view, False, now_ms)]

    def hear(self, views: Iterable[TaskView], now_ms: float) -> list[Happening]:
        """Return new happenings in these views; mere progress costs almost nothing."""
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
        """Return new reasons for attention; stalls are detected only here."""
        return [one for view in views for one in self._needs_of(view, now_ms)]

    def forget(self, task_ids: Iterable[str]) -> None:
        """Drop removed tasks."""
        for task_id in task_ids:
            self._live.pop(task_id, None)

    def _sort_in(self, view: TaskView) -> bool:
        """Return whether the task just continues; called for 20,000 changes a second."""
        entry = view.entry
        if isinstance(entry, TaskRecord) and entry.status in LIVE:
            self._live[entry.task_id] = None
            # After it has continued, another request for help is reported again.
            if entry.kind == TASK_RUN:
                self._told.pop((entry.task_id, Reason.HELP), None)
            return entry.budget_status != "exceeded" and not view.orphaned
        self._live.pop(entry.task_id, None)
        return False

    def _end_of(self, view: TaskView, was_live: bool, now_ms: float) -> list[Happening]:
        kind = _ENDS.get(standing(view))
        assert isinstance(view.entry, TaskRecord)
        ended = moment(view.entry.ended_at)
        # A short task may have ended before it was seen live.
        news = was_live or (ended is not None and ended >= self._since_ms)
        if kind is None or not news or not self._note(view, "end"):
            return []
        return [Happening(now_ms, kind, view)]

    def _needs_of(self, view: TaskView, now_ms: float) -> list[Happening]:
        """Return the most urgent reason if it is new; it covers the others."""
        if _has_ended(view):
            return []
        new = [reason for reason in self._reasons(view, now_ms) if self._note(view, reason)]
        return [Happening(now_ms, Kind.ATTENTION, view, new[0])] if new else []

    def _reasons(self, view: TaskView, now_ms: float) -> tuple[Reason, ...]:
        return reasons(view, now_ms, self._stall_after_ms(view.task_id))

    def _note(self, view: TaskView, what: object) -> bool:
        """Return whether this is new and record it, dropping the oldest of very many."""
        key = (view.task_id, what)
        if key in self._told:
            return False
        self._told[key] = None
        if len(self._told) > MOST_REMEMBERED:
            self._told.pop(next(iter(self._told)))
        return True


def _has_ended(view: TaskView) -> bool:
    """Return whether the task ended, so that its needs were reported with its end."""
    return isinstance(view.entry, TaskRecord) and view.entry.is_terminal


class Grouping:
    """Rate limit for notifications.

    The first ones wait 0.4 s for others, later ones until ten seconds have passed. So at most four
    notifications appear in ten seconds, and none is delayed longer.
    """

    def __init__(self) -> None:
        self._waiting: list[Happening] = []
        self._open_at = -float("inf")  # Time of the next allowed notification

    def add(self, news: Iterable[Happening]) -> None:
        self._waiting += news

    def due_in(self, now_ms: float) -> float | None:
        """Return the delay in ms until the next notification, or None without any."""
        if not self._waiting:
            return None
        return max(self._waiting[0].at_ms + SETTLE_MS, self._open_at) - now_ms

    def take(self, now_ms: float) -> list[tuple[Happening, ...]]:
        """Return the notifications due now, each as a group."""
        due = self.due_in(now_ms)
        if due is None or due > 0:
            return []
        news, self._waiting = self._waiting, []
        self._open_at = now_ms + BURST_MS
        if len(news) <= MOST_ALONE:
            return [(one,) for one in news]
        return [tuple(news)]


def is_quiet(now: time, start: str, end: str) -> bool:
    """Return whether `now` is in a quiet period (HH:MM), which may span midnight."""
    try:
        first, last = _clock(start), _clock(end)
    except ValueError:
        return False
    if first <= last:
        return first <= now < last
    return now >= first or now < last


def _clock(written: str) -> time:
    """Parse a time; accepts `7:30`, which `time.fromisoformat` rejects. Raises ValueError."""
    hour, _, minute = written.partition(":")
    return time(int(hour), int(minute))
