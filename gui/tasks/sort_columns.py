"""Sort values of all rows as numpy columns, and the sort orders made from them. No Qt.

A column holds one number for each row, so that a stable sort of 100,000 rows by three columns takes
some 20 ms. Texts are held as their rank. A column is read on its first use; afterwards only rows
that have changed are read again.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.model.records import TASK_RUN, TaskRecord
from engine.model.status import LAST_MS, moment
from engine.query import Order, SortKey
from gui.tasks import columns
from gui.tasks.columns import COLUMN_AT, COLUMNS
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
        else columns.started_at(row)
        for row in rows
    ]


def ended(rows: Sequence[Any]) -> list[float | None]:
    return [
        float(at)
        if not row.live and type(at := row.ended_at) in _NUMBERS and 0 < at < LAST_MS
        else columns.ended_at(row)
        for row in rows
    ]


def lasted(rows: Sequence[Any]) -> list[float | None]:
    return [
        float(end - began)
        if not row.live
        and type(began := row.started_at) in _NUMBERS
        and type(end := row.ended_at) in _NUMBERS
        and 0 < began <= end < LAST_MS
        else columns.lasted(row)
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
        columns.contract_of(row) if record.engine is not None or record.kind == TASK_RUN else None
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
        None if record.pid is None else columns.owner_of(row)
        for row, record in zip(rows, _records(rows), strict=True)
    ]


def doing(rows: Sequence[Row]) -> list[str | None]:
    return [columns.doing_of(row) if row.live else None for row in rows]


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


Keys = tuple[SortKey, ...]
Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.intp]
_STEP: Final = 500  # rows read in one step of `prepare`


def orders_of(keys: Keys) -> tuple[Order, ...]:
    """Return the orders of rows by these columns."""
    return tuple(Order(COLUMNS[COLUMN_AT[key]].sort, down, VALUES.get(key)) for key, down in keys)


@dataclass(slots=True)
class _Texts:
    """Ranks of the texts of a column. `codes` holds the code of each row, -1 without a text."""

    code_of: dict[str, int] = field(default_factory=dict)
    runs: list[list[str]] = field(default_factory=list)  # each sorted
    rank_of: Floats = field(default_factory=lambda: np.empty(0))
    codes: Numbers = field(default_factory=lambda: np.empty(0, np.intp))

    def encode(self, texts: Iterable[str | None]) -> list[int]:
        """Return the codes of texts, -1 for None; new texts become a sorted run."""
        code_of, known = self.code_of, len(self.code_of)
        codes = [-1 if one is None else code_of.setdefault(one, len(code_of)) for one in texts]
        if len(code_of) > known:
            self.runs.append(sorted(islice(code_of, known, None)))
        return codes

    def rank(self) -> Iterator[None]:
        """Merge the sorted runs in steps and rank all texts."""
        while len(self.runs) > 1:
            self.runs.append(sorted(self.runs.pop(0) + self.runs.pop(0)))
            yield
        if self.runs and len(self.rank_of) < len(self.code_of):
            codes = map(self.code_of.__getitem__, self.runs[0])
            self.rank_of = np.empty(len(self.code_of))
            self.rank_of[np.fromiter(codes, np.intp)] = np.arange(len(self.code_of))

    def write(self, size: int, numbers: Numbers, codes: Sequence[int]) -> Floats:
        """Store the codes of these rows and return the ranks of all rows."""
        self.codes = np.append(self.codes, np.full(size - len(self.codes), -1, np.intp))
        self.codes[numbers] = codes
        return np.append(self.rank_of, np.nan)[self.codes]


@dataclass(slots=True)
class _Column:
    """Values by row number, NaN without one; changes at tick `since` or later are pending."""

    values: Floats
    since: int = 0
    texts: _Texts | None = None


class SortColumns:
    """Sort columns of `rows`. A row's number is its arrival, which breaks ties."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows
        self.arrival: dict[str, int] = {}
        self._names: list[str] = []  # by number, empty after the removal of a row
        self._changed = array("q")  # tick of the last change of each row
        self._live = bytearray()
        self._tick = self._generation = 0
        self._columns: dict[str, _Column] = {}
        self._latest: tuple[Keys, Numbers] | None = None  # until a row changes

    def note(self, row: Row) -> None:
        """Record that a row was added or changed."""
        number = self.arrival.get(row.task_id)
        if number is None:
            self.arrival[row.task_id] = len(self._names)
            self._names.append(row.task_id)
            self._changed.append(self._tick)
            self._live.append(1)
        else:
            self._changed[number] = self._tick
        self._latest = None

    def forget(self, task_id: str) -> None:
        """Record that a row was removed, from `rows` too."""
        number = self.arrival.pop(task_id)
        self._names[number] = ""
        self._live[number] = 0
        self._latest = None
        if len(self._names) > 2 * len(self._rows) + 1000:
            self._renumber()

    def of(self, keys: Keys) -> list[str]:
        """Return the ids of all rows in this order."""
        return self._named(self._ordered(keys))

    def only(self, some: Sequence[Row], keys: Keys) -> list[str]:
        """Return the ids of some rows in this order."""
        wanted = np.zeros(len(self._names), np.bool_)
        wanted[[self.arrival[row.task_id] for row in some]] = True
        ordered = self._ordered(keys)
        return self._named(ordered[wanted[ordered]])

    def took(self, running: Iterable[str], now_ms: float) -> list[float]:
        """Return the duration of each row in ms, NaN if unknown; `running` rows count until now."""
        started = self._column("started")
        found = self._column("ended") - started
        numbers = [self.arrival[task_id] for task_id in running]
        found[numbers] = now_ms - started[numbers]
        durations: list[float] = found[self._numbers()].tolist()
        return durations

    def lacks(self, keys: Iterable[str]) -> bool:
        """Return whether any of these columns has not been read."""
        return not self._columns.keys() >= set(keys)

    def prepare(self, keys: Iterable[str]) -> Iterator[None]:
        """Read these columns in short steps, so that a later sort is fast."""
        for key in keys:
            if key not in self._columns:
                yield from self._prepare(key)

    def drop(self) -> None:
        """Drop all columns and the latest order."""
        self._columns.clear()
        self._latest = None

    def _prepare(self, key: str) -> Iterator[None]:
        (order,), numbers = orders_of(((key, False),)), self._numbers()
        generation, self._tick = self._generation, self._tick + 1
        column, values = _Column(np.empty(0), self._tick), list[Any]()
        for start in range(0, len(numbers), _STEP):
            names = self._named(numbers[start : start + _STEP])
            if not all(names):
                return  # A row was removed, so the column is left to its first use.
            part = order.values([self._rows[name] for name in names])
            if column.texts is None and any(isinstance(value, str) for value in part):
                column.texts = _Texts()
                values = column.texts.encode(values)
            values += part if column.texts is None else column.texts.encode(part)
            yield
            if generation != self._generation:
                return
        if column.texts is not None:
            yield from column.texts.rank()
        if key not in self._columns and generation == self._generation:
            self._write(column, numbers, values)
            self._columns[key] = column
            yield

    def _column(self, key: str) -> Floats:
        """Return the current values by row number; callers must not modify them."""
        column = self._columns.get(key)
        if column is None or (column.texts and self._is_worn(column.texts)):
            column = self._columns[key] = _Column(np.empty(0))
        numbers = np.flatnonzero(np.frombuffer(self._changed, np.int64) >= column.since)
        numbers = numbers[np.frombuffer(self._live, np.bool_)[numbers]]
        self._tick += 1
        column.since = self._tick
        if len(numbers) or len(column.values) < len(self._names):
            whole = len(numbers) == len(self._rows)
            rows = self._rows.values() if whole else map(self._rows.get, self._named(numbers))
            (order,) = orders_of(((key, False),))
            values = order.values(list(rows))
            if column.texts is None and any(isinstance(value, str) for value in values):
                column.texts = _Texts()
            if column.texts is not None:
                values = column.texts.encode(values)
                deque(column.texts.rank(), 0)
            self._write(column, numbers, values)
        return column.values

    def _write(self, column: _Column, numbers: Numbers, values: Sequence[Any]) -> None:
        size = len(self._names)
        if column.texts is not None:
            column.values = column.texts.write(size, numbers, values)
            return
        rest = np.full(size - len(column.values), np.nan)
        column.values = np.append(column.values, rest)
        column.values[numbers] = np.array(values, np.float64)

    def _is_worn(self, texts: _Texts) -> bool:
        return len(texts.code_of) > 2 * len(self._rows) + 1000

    def _ordered(self, keys: Keys) -> Numbers:
        if self._latest is None or self._latest[0] != keys:
            numbers = self._numbers()
            columns = [self._column(key)[numbers] * (-1.0 if down else 1.0) for key, down in keys]
            # NaN sorts last in either direction, and both sorts are stable.
            first = columns[0]
            ordered = (
                np.argsort(first, kind="stable") if not columns[1:] else np.lexsort(columns[::-1])
            )
            self._latest = keys, numbers[ordered]
        return self._latest[1]

    def _numbers(self) -> Numbers:
        return np.flatnonzero(np.frombuffer(self._live, np.bool_))

    def _named(self, numbers: Numbers) -> list[str]:
        names = self._names
        return [names[number] for number in numbers.tolist()]

    def _renumber(self) -> None:
        """Number the rows again without gaps."""
        kept = self._numbers()
        size, self._generation = len(self._names), self._generation + 1
        for column in self._columns.values():
            column.values = np.append(column.values, np.full(size - len(column.values), np.nan))[
                kept
            ]
            if (texts := column.texts) is not None:
                missing = np.full(size - len(texts.codes), -1, np.intp)
                texts.codes = np.append(texts.codes, missing)[kept]
        self._names = list(self._rows)
        self._changed = array("q", np.frombuffer(self._changed, np.int64)[kept].tobytes())
        self._live = bytearray(b"\1" * len(self._names))
        self.arrival.clear()
        self.arrival.update({task_id: number for number, task_id in enumerate(self._names)})
