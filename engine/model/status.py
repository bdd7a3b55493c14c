"""State of a task as shown to users, and reasons why it needs attention."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Final

from engine.budgets import runs_out_at
from engine.model.kind_traits import traits_of
from engine.model.pace import STALL_MIN_MS
from engine.model.records import LIVE, Status, TaskRecord, TaskView, Unreadable

FAILED_RECENTLY_MS = 24 * 3600 * 1000
ORPHANED_CODE = "orphaned"
NEEDS_HELP: Final = "NEEDS_HELP"  # the state of a task run that waits for a person
REFUSED_CODE: Final = "bulk_incomplete"  # error code of a crawl whose contract's guard refused
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


def reasons(
    view: TaskView, now_ms: float, stall_after_ms: float = STALL_MIN_MS
) -> tuple[Reason, ...]:
    """Return why this task needs attention, most urgent first; empty if it does not."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return (Reason.UNREADABLE,)
    found: list[Reason] = []
    if entry.status == NEEDS_HELP:
        found.append(Reason.HELP)
    if view.orphaned and entry.is_live:
        found.append(Reason.ORPHANED)
    if entry.status == Status.FAILED and _is_recent(entry, now_ms):
        refused = entry.error is not None and entry.error.code == REFUSED_CODE
        found.append(Reason.CONTRACT if refused else Reason.FAILED)
    if _is_over_budget(entry, now_ms):
        found.append(Reason.BUDGET)
    stall = None if entry.is_terminal else stalls_at(view, stall_after_ms)
    if stall is not None and now_ms >= stall:
        found.append(Reason.STALLED)
    return tuple(found)


def changes_at(view: TaskView, now_ms: float, stall_after_ms: float = STALL_MIN_MS) -> float | None:
    """Return the next time (ms, after `now_ms`) at which `reasons` changes; None: never."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return None
    if entry.is_terminal:
        if entry.status != Status.FAILED and entry.budget_status != "exceeded":
            return None
        ended = _ended_at(entry)
        times = [None if ended is None else ended + FAILED_RECENTLY_MS]
    else:
        times = [stalls_at(view, stall_after_ms), _budget_ends(entry)]
    ahead = [at for at in times if at is not None and at > now_ms]
    return min(ahead, default=None)


def seen(view: TaskView, reason: Reason) -> str:
    """Return a fingerprint of `reason` for acknowledgements.

    It changes with the cause: after a second stall, say, or when one more budget is exceeded.
    """
    entry = view.entry
    if isinstance(entry, Unreadable):
        return f"{reason}:{entry.seen_at:.0f}"
    marks: dict[Reason, object] = {
        Reason.HELP: updated_at(view),
        Reason.CONTRACT: entry.ended_at,
        Reason.FAILED: entry.ended_at,
        Reason.BUDGET: ",".join(map(str, entry.budget_exceeded or ())),
        Reason.STALLED: updated_at(view),
    }
    return f"{reason}:{marks.get(reason, '')}"


def unseen(
    view: TaskView, found: tuple[Reason, ...], acknowledged: Collection[str]
) -> tuple[Reason, ...]:
    """Return the reasons in `found` that are not acknowledged in their current form."""
    return tuple(reason for reason in found if seen(view, reason) not in acknowledged)


def _ended_at(record: TaskRecord) -> float | None:
    return moment(record.ended_at) or moment(record.created_at)


def _is_recent(record: TaskRecord, now_ms: float) -> bool:
    ended = _ended_at(record)
    # A failure without a usable time stays visible.
    return ended is None or now_ms - ended < FAILED_RECENTLY_MS


def _is_over_budget(record: TaskRecord, now_ms: float) -> bool:
    """Return whether a budget is exceeded, also by time alone; for an ended task only for a day."""
    if record.is_terminal:
        return record.budget_status == "exceeded" and _is_recent(record, now_ms)
    if record.budget_status == "exceeded":
        return True
    out = _budget_ends(record)
    return out is not None and now_ms >= out


def _budget_ends(record: TaskRecord) -> float | None:
    if not record.is_live or not record.policy:
        return None
    ours = record.engine
    return runs_out_at(
        {
            "kind": record.kind,
            "policy": record.policy,
            "created_at": record.created_at,
            "started_at": record.started_at,
            "engine": {"lasted_ms": ours.lasted_ms, "lasted_at": ours.lasted_at} if ours else {},
        }
    )


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
