"""Sort values of computed columns for all rows at once, without Qt.

Each function equals the column's function in `gui.tasks.cells` at a third of its cost: common
values are computed in one comprehension over 100,000 rows, and only unusual ones by that function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from engine.model.records import TASK_RUN, TaskRecord
from engine.model.status import LAST_MS, moment
from gui.tasks import cells
from gui.tasks.row import Row

_NO_RECORD: Final = TaskRecord(task_id="")
_NUMBERS: Final = frozenset({float, int})


def _records(rows: Sequence[Row]) -> list[TaskRecord]:
    entries = [row.view.entry for row in rows]
    return [entry if type(entry) is TaskRecord else _NO_RECORD for entry in entries]


def newness(rows: Sequence[Row]) -> list[float | None]:
    return [-at if (at := row.created_at) else None for row in rows]


def updated(rows: Sequence[Row]) -> list[float | None]:
    return [row.updated_at for row in rows]


def host(rows: Sequence[Row]) -> list[str | None]:
    return [row.about.host or None for row in rows]


# Valid times are used directly; only others need the function of the cell.


def started(rows: Sequence[Any]) -> list[float | None]:
    return [
        float(at)
        if type(at := row.started_at) in _NUMBERS and 0 < at < LAST_MS
        else cells.started_at(row)
        for row in rows
    ]


def ended(rows: Sequence[Any]) -> list[float | None]:
    return [
        float(at)
        if not row.live and type(at := row.ended_at) in _NUMBERS and 0 < at < LAST_MS
        else cells.ended_at(row)
        for row in rows
    ]


def lasted(rows: Sequence[Any]) -> list[float | None]:
    return [
        float(end - began)
        if not row.live
        and type(began := row.started_at) in _NUMBERS
        and type(end := row.ended_at) in _NUMBERS
        and 0 < began <= end < LAST_MS
        else cells.lasted(row)
        for row in rows
    ]


def average(rows: Sequence[Row]) -> list[float | None]:
    return [
        done / ms * 1000 if ms and (done := row.done) else None
        for row, ms in zip(rows, lasted(rows), strict=True)
    ]


def failures(rows: Sequence[Row]) -> list[int | None]:
    units = [row.view.units for row in rows]
    return [None if each is None else each.failed or None for each in units]


def error(rows: Sequence[Row]) -> list[str | None]:
    errors = [record.error for record in _records(rows)]
    return [None if each is None else each.message.casefold() for each in errors]


def phase(rows: Sequence[Row]) -> list[str | None]:
    return [record.phase or None for record in _records(rows)]


def contract(rows: Sequence[Row]) -> list[int | None]:
    return [
        cells.contract_of(row) if record.engine is not None or record.kind == TASK_RUN else None
        for row, record in zip(rows, _records(rows), strict=True)
    ]


def forced(rows: Sequence[Row]) -> list[float | None]:
    ours = [record.engine for record in _records(rows)]
    return [None if each is None else moment(each.forced_at) for each in ours]


def parent(rows: Sequence[Row]) -> list[str | None]:
    ours = [record.engine for record in _records(rows)]
    return [None if each is None else each.parent_task_id for each in ours]


def owner(rows: Sequence[Row]) -> list[str | None]:
    return [
        None if record.pid is None else cells.owner_of(row)
        for row, record in zip(rows, _records(rows), strict=True)
    ]


def doing(rows: Sequence[Row]) -> list[str | None]:
    return [cells.doing_of(row) if row.live else None for row in rows]


VALUES: Final[Mapping[str, Callable[[Sequence[Row]], list[Any]]]] = {
    "age": newness,
    "updated": updated,
    "host": host,
    "started": started,
    "ended": ended,
    "took": lasted,
    "average": average,
    "failures": failures,
    "error": error,
    "phase": phase,
    "contract": contract,
    "forced": forced,
    "parent": parent,
    "owner": owner,
    "doing": doing,
}
