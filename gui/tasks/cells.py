"""Cell texts and sort values of the columns, without Qt.

A text is made when its cell is painted. A sort value is a field of the `Row` where that is worth
the memory, otherwise a function here; None means that the task has no such value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.model.display import display
from engine.model.ledger_ids import plain_id
from engine.model.records import TASK_RUN, EngineFields, Status, TaskRecord, Units
from engine.model.status import REFUSED_CODE, moment
from engine.text import words
from engine.text.catalogue import retold
from gui.tasks.budget_gauge import Fullest, fullest_of
from gui.tasks.contract_cache import known
from gui.tasks.row import Row

Text = Callable[[Row, float], str]
_MOST: Final = 300  # Longest text of one cell, in characters
_NO_RECORD: Final = TaskRecord(task_id="")
_NO_FIELDS: Final = EngineFields()
CONTRACTS: Final = ("refused", "forced", "open", "met", "ended")


def record_of(row: Row) -> TaskRecord:
    """Return the task record, or an empty record where it is unreadable."""
    entry = row.view.entry
    return entry if type(entry) is TaskRecord else _NO_RECORD


def _ours(row: Row) -> EngineFields:
    entry = row.view.entry
    return (entry.engine or _NO_FIELDS) if type(entry) is TaskRecord else _NO_FIELDS


def attention(row: Row, now_ms: float) -> str:
    if row.quiet:
        return words.say("attention.acknowledged")
    silence = now_ms - row.updated_at if row.updated_at is not None else 0
    return "; ".join(words.attention(reason, silence) for reason in row.needs)


def progress(row: Row, _now_ms: float) -> str:
    return words.progress(record_of(row).kind, row.view.units)


def time_left(row: Row, now_ms: float) -> str:
    if not row.running:
        return ""
    if row.stalled:
        return words.NONE
    return "" if row.ends_at is None else words.time_left(row.ends_at - now_ms)


def budget_of(row: Row, now_ms: float) -> Fullest | None:
    """Return the fullest budget at `now_ms`, because time budgets run out without calls."""
    return None if row.worst is None else fullest_of(record_of(row), now_ms)


def budget(row: Row, now_ms: float) -> str:
    found = budget_of(row, now_ms)
    return "" if found is None else found.text


def root(row: Row, _now_ms: float) -> str:
    return row.about.ledger or words.say("root.here")


def newness(row: Row) -> float | None:
    """Return the negative creation time, so that ages sort ascending."""
    return -row.created_at if row.created_at else None


def host(row: Row) -> str | None:
    return row.about.host or None


def error_folded(row: Row) -> str | None:
    error = record_of(row).error
    return None if error is None else error.message.casefold()


def error(row: Row, _now_ms: float) -> str:
    entry = row.view.entry
    if isinstance(entry, TaskRecord):
        return display(words.error_text(entry), _MOST) if entry.error is not None else ""
    return display(retold(entry.reason), _MOST)


def failures_of(row: Row) -> int | None:
    return (row.view.units.failed or None) if row.view.units is not None else None


def failures(row: Row, _now_ms: float) -> str:
    number = failures_of(row)
    return "" if number is None else words.count(number)


def contract_of(row: Row) -> int | None:
    """Return the state of the contract as an index into `CONTRACTS`, most urgent first."""
    record, ours = record_of(row), _ours(row)
    if ours.contract_id is None and record.kind != TASK_RUN:
        return None
    if record.error is not None and record.error.code == REFUSED_CODE:
        return 0
    if ours.forced_at is not None:
        return 1
    if not record.is_terminal:
        return 2
    return 3 if record.status == Status.COMPLETED else 4


def contract(row: Row, _now_ms: float) -> str:
    at = contract_of(row)
    if at is None:
        return ""
    state, counted = words.say(f"contract.{CONTRACTS[at]}"), known(_ours(row).contract_id)
    if counted is None:
        return state
    done, failed = counted.completed_count, counted.failed_count
    units = Units(done, counted.expected_total, failed=failed)
    return words.say("contract.counted", state=state, progress=words.progress(TASK_RUN, units))


def forced_at(row: Row) -> float | None:
    return moment(_ours(row).forced_at)


def forced(row: Row, now_ms: float) -> str:
    at = forced_at(row)
    return "" if at is None else words.say("column.forced.at", at=words.clock(at, now_ms))


def phase_of(row: Row) -> str | None:
    return record_of(row).phase or None


def phase(row: Row, _now_ms: float) -> str:
    return display(record_of(row).phase or "", 40)


def parent_of(row: Row) -> str | None:
    return _ours(row).parent_task_id


def parent(row: Row, _now_ms: float) -> str:
    return display(plain_id(parent_of(row) or ""), 40)


def doing_of(row: Row) -> str | None:
    return (row.view.units.message or None) if row.live and row.view.units is not None else None


def doing(row: Row, _now_ms: float) -> str:
    return display(retold(doing_of(row) or ""), _MOST)


def started_at(row: Row) -> float | None:
    entry = row.view.entry
    return moment(entry.started_at) if type(entry) is TaskRecord else None


def started(row: Row, now_ms: float) -> str:
    return _clock(started_at(row), now_ms)


def ended_at(row: Row) -> float | None:
    entry = row.view.entry
    return None if row.live or type(entry) is not TaskRecord else moment(entry.ended_at)


def ended(row: Row, now_ms: float) -> str:
    return _clock(ended_at(row), now_ms)


def _clock(at_ms: float | None, now_ms: float) -> str:
    return "" if at_ms is None else words.clock(at_ms, now_ms)


def lasted(row: Row) -> float | None:
    """Return the duration in ms; for a running task, the time until its last update."""
    entry = row.view.entry
    if type(entry) is not TaskRecord:
        return None
    if row.live:
        until = row.updated_at if row.running else None
    else:
        until = moment(entry.ended_at)
    began = None if until is None else moment(entry.started_at)
    return None if began is None or until is None else max(0.0, until - began)


def took(row: Row, now_ms: float) -> str:
    began = started_at(row)
    ms = now_ms - began if row.running and began is not None else lasted(row)
    return "" if ms is None else words.took(ms)


def average_of(row: Row) -> float | None:
    """Return units per second over the whole duration, including pauses."""
    done = row.done
    ms = lasted(row) if done else None
    return done / ms * 1000 if done and ms else None


def average(row: Row, _now_ms: float) -> str:
    return words.rate(average_of(row))


def owner_of(row: Row) -> str | None:
    """Return host and padded process id, so that owners sort by host, then by number."""
    record = record_of(row)
    if record.pid is None:
        return None
    return f"{record.engine.host or ''} {record.pid:>12}" if record.engine else f"{record.pid:>12}"


def owner(row: Row, _now_ms: float) -> str:
    return "" if record_of(row).pid is None else words.owner(row.view)
