"""State of a task as shown to users, and its speed: rate, end time and stall limit."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from statistics import median
from typing import Final

from engine.model.kind_traits import traits_of
from engine.model.records import LIVE, Status, TaskRecord, TaskView, Unreadable

RATE_WINDOW_S = 30.0
ETA_MIN_UNITS = 5
ETA_MIN_MS = 10_000
STALL_MIN_MS = 30_000
_CLOCKS_DIFFER_MS = 1_000  # more than what is corrected all the time
STALL_UNITS = 5
_KEPT_UNITS = 15
ENVELOPE_GRACE_MS: Final = 24 * 3_600_000  # an envelope's host may come back after a night


def last_used_at(envelope: TaskRecord) -> float:
    """Return when an envelope was used last, in ms since 1970."""
    return moment(envelope.last_activity_at) or moment(envelope.created_at) or 0


def given_up_at(envelope: TaskRecord) -> float:
    """Return when an envelope without a host counts as orphaned, in ms since 1970."""
    return last_used_at(envelope) + ENVELOPE_GRACE_MS


class Pace:
    """Speed of one live task. Times are ms since 1970, `rate` is units per second."""

    __slots__ = (
        *("_first_at", "_first_done", "_seen_at", "_done", "_unit_ms"),
        *("_rate", "_summed", "_known"),
    )

    def __init__(self, started_at: float | None = None) -> None:
        self._first_at = self._seen_at = started_at
        self._first_done = self._done = 0
        self._rate: float | None = None
        self._summed = self._known = 0.0
        self._unit_ms: deque[float] = deque(maxlen=_KEPT_UNITS)

    def seen(self, done: int, at_ms: float) -> None:
        """Record that `done` units were finished at `at_ms`; out-of-order reports are ignored."""
        if self._seen_at is None or self._first_at is None or done < self._done:
            self._first_at = self._seen_at = at_ms
            self._first_done = self._done = done
            self._rate, self._summed, self._known = None, 0.0, 0.0
            return
        passed_ms = at_ms - self._seen_at
        if done == self._done or passed_ms <= 0:
            return
        new = done - self._done
        self._unit_ms.append(passed_ms / new)
        self._blend(new * 1000 / passed_ms, passed_ms / 1000)
        self._done, self._seen_at = done, at_ms

    def _blend(self, latest: float, over_s: float) -> None:
        """Average the rate with exponential weights by time, so bursts and gaps count by duration.

        The weights are summed, so a fast first unit counts only for its own time.
        """
        weight = -math.expm1(-over_s / RATE_WINDOW_S)
        self._summed += weight * (latest - self._summed)
        self._known += weight * (1 - self._known)
        self._rate = self._summed / self._known

    @property
    def rate(self) -> float | None:
        """Units per second; None until a unit has finished."""
        return self._rate

    @property
    def stall_after_ms(self) -> float:
        """Stall limit in ms: 30 s, or five times the median unit."""
        usual = median(self._unit_ms) if self._unit_ms else 0.0
        return max(STALL_MIN_MS, STALL_UNITS * usual)

    def ends_at(self, total: int | None) -> float | None:
        """Estimate the time of the last unit's end; None while there is too little data."""
        if not self._rate or total is None or total <= self._done:
            return None
        if self._seen_at is None or self._first_at is None:
            return None
        enough = self._done - self._first_done >= ETA_MIN_UNITS
        if not enough or self._seen_at - self._first_at < ETA_MIN_MS:
            return None
        return self._seen_at + (total - self._done) * 1000 / self._rate


ORPHANED_CODE = "orphaned"
NEEDS_HELP: Final = "NEEDS_HELP"  # the state of a task run that waits for a person
# ms of the year 9999; later times are damaged data.
LAST_MS = 253_402_300_799_000.0


class Standing(StrEnum):
    """Displayed state: the five of the ledger, derived ones, and unknown."""

    PENDING = "pending"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ORPHANED = "orphaned"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"


class Facet(StrEnum):
    """Facet by which the list is filtered; a task may be in several."""

    ALL = "all"
    ATTENTION = "attention"
    PENDING = "pending"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ORPHANED = "orphaned"
    UNREADABLE = "unreadable"


class Reason(StrEnum):
    """Reason for attention, most urgent first."""

    HELP = "help"
    UNREADABLE = "unreadable"
    ORPHANED = "orphaned"
    CONTRACT = "contract"
    FAILED = "failed"
    BUDGET = "budget"
    STALLED = "stalled"


_STANDING = {
    Status.PENDING.value: Standing.PENDING,
    Status.RUNNING.value: Standing.RUNNING,
    Status.COMPLETED.value: Standing.COMPLETED,
    Status.FAILED.value: Standing.FAILED,
    Status.CANCELLED.value: Standing.CANCELLED,
}


def moment(value: object) -> float | None:
    """Return a time in ms, or None for untrusted values out of range."""
    if type(value) is float or type(value) is int:
        return float(value) if 0 < value < LAST_MS else None  # NaN fails both comparisons
    return None


def standing(view: TaskView) -> Standing:
    """Return the displayed state of a task."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return Standing.UNREADABLE
    if view.orphaned and entry.is_live:
        return Standing.ORPHANED
    if entry.status == Status.RUNNING and entry.cancel_requested_at is not None:
        return Standing.CANCELLING
    return _STANDING.get(entry.status, Standing.UNKNOWN)


def look(view: TaskView) -> str:
    """Return the icon and colour name of a task's state.

    A task run that needs help gets "attention", not the look of an unknown state.
    """
    state = standing(view)
    if state is Standing.UNKNOWN and getattr(view.entry, "status", "") == NEEDS_HELP:
        return "attention"
    return state.value


def is_orphan(record: TaskRecord) -> bool:
    """Return whether the task was ended because its owner was dead."""
    return record.error is not None and record.error.code == ORPHANED_CODE


def worked_until(record: TaskRecord) -> float | None:
    """Return the end of an ended task; of an orphan its last event, since no one saw it die."""
    sign = moment(record.last_activity_at) if is_orphan(record) else None
    return moment(record.ended_at) if sign is None else sign


def worked_ms(record: TaskRecord) -> float | None:
    """Return how long an ended task worked; None without its times.

    Of a task that ended more than a second before its start a clock was set back meanwhile, so
    that nobody knows.
    """
    started, until = moment(record.started_at), worked_until(record)
    if started is None or until is None or until < started - _CLOCKS_DIFFER_MS:
        return None
    return max(0.0, until - started)


def updated_at(view: TaskView) -> float | None:
    """Return the newest of end, start, last activity and last event; else the creation time."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return moment(entry.seen_at)
    known = (
        entry.ended_at,
        entry.started_at,
        entry.last_activity_at,
        view.last_event_at,
    )
    latest = 0.0
    for value in known:
        at = moment(value) if value is not None else None
        if at is not None and at > latest:
            latest = at
    return latest or moment(entry.created_at)


def stalls_at(view: TaskView, after_ms: float = STALL_MIN_MS) -> float | None:
    """Return the time when silence becomes a stall; None for a task that is not running.

    `after_ms` is `Pace.stall_after_ms` where the pace is known. A `browser_task` waits for its
    agent and a recording for a person, so they stall only while cancelling.
    """
    entry = view.entry
    if isinstance(entry, Unreadable):
        return None
    state = standing(view)
    if state is not Standing.CANCELLING and (
        state is not Standing.RUNNING or traits_of(entry.kind).agent_driven
    ):
        return None
    last = updated_at(view)
    return None if last is None else last + after_ms


def counted_as(view: TaskView, state: Standing) -> tuple[Standing, ...]:
    """Return every state this task counts in, its own first; a reaped orphan counts in both.

    The only definition of the number of tasks in a state, for sidebar, queries and selections.
    `state` is its `standing`.
    """
    entry = view.entry
    error = entry.error if isinstance(entry, TaskRecord) else None
    reaped = error is not None and error.code == ORPHANED_CODE
    return _BOTH[state] if reaped else _ONE[state]


_ONE: Final = {state: (state,) for state in Standing}
_BOTH: Final = {state: tuple(dict.fromkeys((state, Standing.ORPHANED))) for state in Standing}


def facets(view: TaskView, state: Standing, needs: tuple[Reason, ...]) -> frozenset[Facet]:
    """Return every facet this task counts in."""
    return _facets(counted_as(view, state), bool(needs))


@lru_cache(64)
def _facets(states: tuple[Standing, ...], needy: bool) -> frozenset[Facet]:
    found = {Facet.ALL, *([Facet.ATTENTION] if needy else [])}
    return frozenset(found | {Facet(one.value) for one in states if one is not Standing.UNKNOWN})


def state_words(found: Iterable[Facet], status: str | None) -> frozenset[str]:
    """Return the query words for a task: its facets, live or ended, and an unknown status as on
    disk.

    `status` is None for an unreadable task.
    """
    words = {facet.value for facet in found}
    if status is None:
        return frozenset(words)
    words.add("live" if status in LIVE else "ended")
    return frozenset(words if status in _STANDING else words | {status.casefold()})
