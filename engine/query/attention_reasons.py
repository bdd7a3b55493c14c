"""Reasons why a task needs attention, with the time at which they change."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from engine import budgets
from engine.model.records import Status, TaskRecord, TaskView, Unreadable
from engine.model.status import NEEDS_HELP, STALL_MIN_MS, Reason, moment, stalls_at, updated_at

FAILED_RECENTLY_MS = 24 * 3600 * 1000
REFUSED_CODE: Final = "bulk_incomplete"  # error code of a crawl whose contract's guard refused


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


def budget_at(record: TaskRecord, now_ms: float) -> str:
    """Return the budget status of a record at `now_ms`, "" without one: time runs without calls."""
    stored = record.budget_status or ""
    if (
        stored not in ("ok", "warning")
        or not record.is_live
        or "maxWallMs" not in (record.policy or {})
    ):
        return stored
    status = budgets.at(_timed(record), now_ms).level("maxWallMs")
    return max(stored, status, key=("ok", "warning", "exceeded").index)


def _budget_ends(record: TaskRecord) -> float | None:
    if not record.is_live or not record.policy:
        return None
    return budgets.runs_out_at(_timed(record))


def _timed(record: TaskRecord) -> dict[str, object]:
    """Return the fields that time budgets are computed from, named as in meta.json."""
    ours = record.engine
    return {
        "kind": record.kind,
        "status": record.status,
        "policy": record.policy,
        "created_at": record.created_at,
        "started_at": record.started_at,
        "engine": {"lasted_ms": ours.lasted_ms, "lasted_at": ours.lasted_at} if ours else {},
    }
