"""Rows of the table, their filter, order and facet counts, without Qt.

`rows` holds all tasks, `ids` the filtered ones in order. Positions are not stored: an update
changes no list, and only a moved row needs a search for its place.

Sort values are held as numpy columns with one number for each row, so that a stable sort of 100,000
rows by three columns takes some 20 ms. Texts are held as their rank. A column is read on its first
use; afterwards only rows that have changed are read again.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, merge
from itertools import count, islice, repeat
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.model.records import TASK_RUN, TERMINAL, Status, TaskRecord, TaskView
from engine.model.status import LAST_MS, STALL_MIN_MS, Pace, moment
from engine.query import Filter, Order, SortKey, in_order, place
from engine.query.attention_reasons import changes_at
from engine.text.words import kind_name
from gui.tasks import columns
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.facets import FacetCounts
from gui.tasks.row import FACET_BIT, NO_REASON, Row, asked, make_row, moved_on

_NO_RECORD: Final = TaskRecord(task_id="")
_NUMBERS: Final = frozenset({float, int})


def _records(rows: Sequence[Row]) -> list[TaskRecord]:
    entries = [row.view.entry for row in rows]
    return [entry if type(entry) is TaskRecord else _NO_RECORD for entry in entries]


def newness(rows: Sequence[Row]) -> list[float | None]:
    return [-at if (at := row.created_at) else None for row in rows]


def updated(rows: Sequence[Row]) -> list[float | None]:
    return [row.updated_at for row in rows]


def name(rows: Sequence[Row]) -> list[str]:
    return [row.folded_name for row in rows]


def kind(rows: Sequence[Row]) -> list[str]:
    names = {kind: kind_name(kind) for kind in {row.about.kind for row in rows}}
    return [names[row.about.kind] for row in rows]


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
        if not row.about.live and type(at := row.ended_at) in _NUMBERS and 0 < at < LAST_MS
        else columns.ended_at(row)
        for row in rows
    ]


def lasted(rows: Sequence[Any]) -> list[float | None]:
    return [
        float(end - began)
        if not (about := row.about).live
        and not about.orphan
        and type(began := row.started_at) in _NUMBERS
        and type(end := row.ended_at) in _NUMBERS
        and 0 < began <= end < LAST_MS
        else columns.lasted(row)
        for row in rows
    ]


def average(rows: Sequence[Row]) -> list[float | None]:
    return [
        done / ms * 1000 if ms and (done := row.worked) else None
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


def client(rows: Sequence[Row]) -> list[str | None]:
    abouts = [row.about for row in rows]
    return [
        columns.client_of(row) if about.client or about.route else None
        for row, about in zip(rows, abouts, strict=True)
    ]


def owner(rows: Sequence[Row]) -> list[str | None]:
    return [
        None if record.pid is None else columns.owner_of(row)
        for row, record in zip(rows, _records(rows), strict=True)
    ]


def doing(rows: Sequence[Row]) -> list[str | None]:
    return [columns.doing_of(row) if row.about.live else None for row in rows]


VALUES: Final[Mapping[str, Callable[[Sequence[Row]], list[Any]]]] = {
    "age": newness,
    "updated": updated,
    "task": name,
    "kind": kind,
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
    "client": client,
    "owner": owner,
    "doing": doing,
}


Keys = tuple[SortKey, ...]
Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.intp]
_STEP: Final = 500  # rows read in one step of `prepare`
_MOST_MERGED: Final = 5_000  # texts; sorting two runs of 50,000 would block the window for 40 ms


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

    def rank(self, *, in_steps: bool) -> Iterator[None]:
        """Merge the sorted runs and rank all texts, in short steps or in few long ones."""
        while len(self.runs) > 1:
            if in_steps and min(map(len, self.runs)) > _MOST_MERGED:
                source, whole = merge(*self.runs), list[str]()
                while part := list(islice(source, _MOST_MERGED)):
                    whole += part
                    yield
                self.runs = [whole]
            else:
                self.runs.append(sorted(self.runs.pop(0) + self.runs.pop(0)))
                yield
        if self.runs and len(self.rank_of) < len(self.code_of):
            rank_of = np.empty(len(self.code_of))
            for start in range(0, len(rank_of), _MOST_MERGED):
                part = self.runs[0][start : start + _MOST_MERGED]
                codes = np.fromiter(map(self.code_of.__getitem__, part), np.intp)
                rank_of[codes] = np.arange(start, start + len(codes))
                yield
            self.rank_of = rank_of

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

    def note_new(self, task_ids: Collection[str]) -> None:
        """Record that these rows were added."""
        self.arrival.update(zip(task_ids, count(len(self._names)), strict=False))
        self._names.extend(task_ids)
        self._changed.extend(repeat(self._tick, len(task_ids)))
        self._live.extend(repeat(1, len(task_ids)))
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
        found = self._column("took").copy()
        numbers = [self.arrival[task_id] for task_id in running]
        found[numbers] = np.maximum(now_ms - started[numbers], 0.0)
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
        done = [numbers[:0]]
        for start in range(0, len(numbers), _STEP):
            some = numbers[start : start + _STEP]
            some = some[np.frombuffer(self._live, np.bool_)[some]]  # Others were removed meanwhile
            done.append(some)
            names = self._named(some)
            part = order.values([self._rows[name] for name in names])
            if column.texts is None and any(isinstance(value, str) for value in part):
                column.texts = _Texts()
                values = column.texts.encode(values)
            values += part if column.texts is None else column.texts.encode(part)
            yield
            if generation != self._generation:
                return
        if column.texts is not None:
            yield from column.texts.rank(in_steps=True)
        if key not in self._columns and generation == self._generation:
            self._write(column, np.concatenate(done), values)
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
                deque(column.texts.rank(in_steps=False), 0)
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


_MANY = 4  # A quarter of all rows
FEW_TEXTS = 1_000  # made within one search: 8 ms
NEWEST_FIRST: tuple[SortKey, ...] = (("age", False),)


class TaskOrder:
    """Rows by id, the filtered order of ids, and the facets' counts."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.ids: list[str] = []
        self.shown: set[str] = set()
        # Pending progress: an invisible row is not rebuilt for each report (20 µs), but when it
        # becomes visible, is due or is sorted by.
        self.unread: dict[str, TaskView] = {}
        # Acknowledged reasons by task id: `engine.query.attention_reasons.seen`.
        self.acknowledged: Mapping[str, Collection[str]] = {}
        self.awaited: Collection[str] = ()  # tasks of whose end the user is notified
        self._judge_anew: set[str] = set()
        self._alarms: list[tuple[float, str]] = []
        self._alarm_of: dict[str, float] = {}
        self._paces: dict[str, Pace] = {}
        self._masks: dict[int, int] = {}  # Number of rows with exactly these facets
        self._counts: dict[str, int] | None = None  # Cached until one of them changes
        self._columns = SortColumns(self.rows)
        self.facets = FacetCounts()
        self.filter = Filter.of("")
        self._narrowed = False
        self.sort_keys: tuple[SortKey, ...] = ()
        self.set_sort(NEWEST_FIRST)

    @property
    def counts(self) -> dict[str, int]:
        """The number of tasks of each facet, by its key."""
        if self._counts is None:
            self._counts = {
                facet.value: sum(number for mask, number in self._masks.items() if mask & bit)
                for facet, bit in FACET_BIT.items()
            }
        return self._counts

    @property
    def is_filtered(self) -> bool:
        return bool(self.filter.parts)

    def sift(self, views: Iterable[TaskView], now_ms: float) -> Iterator[TaskView]:
        """Yield views with more than progress, and keep mere progress as pending.

        This runs 20,000 times a second, so it calls no functions. Callers that apply a view before
        they request the next one may receive a task twice.
        """
        rows, unread, judged = self.rows, self.unread, self._judge_anew
        for view in views:
            entry = view.entry
            task_id = entry.task_id
            row = rows.get(task_id)
            if row is None or row.about.stalled or view.units is None or task_id in judged:
                yield view
                continue
            at, old = row.stalls_at, row.view
            same = old.orphaned == view.orphaned and old.foreign == view.foreign
            same = same and old.locked == view.locked and old.stale == view.stale
            same = same and old.away == view.away and old.ours == view.ours
            # From this time on the task may be stalled, so the row is evaluated.
            if at is None or now_ms >= at or not same:
                yield view
            elif old.entry is entry or old.entry == entry:
                unread[task_id] = view
            else:
                yield view

    def add_ended(
        self, views: Iterable[TaskView], now_ms: float
    ) -> tuple[list[Row], list[TaskView]]:
        """Add the new, ended tasks of `views` at once; return their rows, and the other views.

        A ledger that loads has 100,000 of them: each costs a third of `take`.
        """
        known, fresh, others, later = self.rows, dict[str, Row](), list[TaskView](), set[str]()
        acknowledged, awaited = self.acknowledged, self.awaited
        for view in views:
            entry = view.entry
            task_id = entry.task_id
            if task_id in known or task_id in fresh or task_id in later:
                others.append(view)
            elif type(entry) is not TaskRecord or entry.status not in TERMINAL:
                later.add(task_id)
                others.append(view)
            else:
                seen = acknowledged.get(task_id, ()) if acknowledged else ()
                fresh[task_id] = row = make_row(
                    view, None, now_ms, seen, awaited=task_id in awaited
                )
                if row.about.calm < NO_REASON:
                    self._watch(view, now_ms)
        rows = list(fresh.values())
        if fresh:  # A batch of progress alone keeps the cached order
            known.update(fresh)
            self._columns.note_new(fresh)
            self._count_new(rows)
        return rows, others

    def catch_up(self, task_id: str, now_ms: float) -> tuple[Row, Row] | None:
        """Apply pending progress and return the rows before and after, or None without any."""
        view = self.unread.pop(task_id, None)
        if view is None:
            return None
        before, after = self.take(view, now_ms)
        assert before is not None
        return before, after

    def view_of(self, task_id: str) -> TaskView | None:
        unread = self.unread.get(task_id)
        if unread is not None:
            return unread
        row = self.rows.get(task_id)
        return None if row is None else row.view

    def stall_after_ms(self, task_id: str) -> float:
        pace = self._paces.get(task_id)
        return STALL_MIN_MS if pace is None else pace.stall_after_ms

    def take(self, view: TaskView, now_ms: float) -> tuple[Row | None, Row]:
        """Store the latest view of a task and return its rows before and after."""
        task_id = view.entry.task_id
        self.unread.pop(task_id, None)
        before = self.rows.get(task_id)
        pace = self._pace(task_id, view, now_ms)
        after = None
        if before is not None and pace and task_id not in self._judge_anew:
            after = moved_on(before, view, pace, now_ms)
        # Progress delays the alarm; an alarm that expires evaluates the row and sets the next one.
        if after is None or task_id not in self._alarm_of:
            self._watch(view, now_ms)
        if after is None:
            seen, awaited = self.acknowledged.get(task_id, ()), task_id in self.awaited
            after = make_row(view, pace, now_ms, seen, awaited=awaited)
            self._judge_anew.discard(task_id)
            self._count(before, after)
        self.rows[task_id] = after
        self._columns.note(after)
        return before, after

    def forget(self, task_id: str) -> bool:
        """Drop a removed task, without changing `ids`; False for an unknown task."""
        row = self.rows.pop(task_id, None)
        if row is None:
            return False
        self._columns.forget(task_id)
        self._count(row, None)
        self._paces.pop(task_id, None)
        self.unread.pop(task_id, None)
        self._judge_anew.discard(task_id)
        self._alarm_of.pop(task_id, None)
        return True

    def passes(self, row: Row, now_ms: float) -> bool:
        """Return whether this row matches the filter."""
        return not self.filter.parts or self.filter.passes(asked(row), now_ms)

    def due(self, now_ms: float, most: int) -> list[TaskView]:
        """Return at most `most` tasks whose reasons for attention time alone may have changed.

        Fewer than `most` means that no more are due. The limit exists because each row is rebuilt.
        """
        due: list[TaskView] = []
        while self._alarms and self._alarms[0][0] <= now_ms and len(due) < most:
            at, task_id = heappop(self._alarms)
            if self._alarm_of.get(task_id) != at:
                continue
            del self._alarm_of[task_id]
            due.extend(self.to_judge((task_id,)))
        return due

    def to_judge(self, ids: Iterable[str]) -> list[TaskView]:
        """Return the latest views of these tasks, and mark them for evaluation."""
        known = [task_id for task_id in ids if task_id in self.rows]
        self._judge_anew.update(known)
        return [self.unread.get(task_id, self.rows[task_id].view) for task_id in known]

    @property
    def has_running(self) -> bool:
        return bool(self._paces)

    def running_views(self) -> list[TaskView]:
        """Return the latest view of each running task, shown or hidden."""
        return [self.unread.get(task_id) or self.rows[task_id].view for task_id in self._paces]

    def set_filter(self, wanted: Filter) -> None:
        # A narrower filter only removes rows, unless time or progress affects the matches.
        was = self.filter
        self._narrowed = wanted.narrows(was) and not (was.ages or was.counts)
        self.filter = wanted

    def set_sort(self, keys: Sequence[SortKey]) -> None:
        """Sort by these columns, ignoring unknown ones; without any, newest first."""
        known = tuple((key, down) for key, down in keys if key in COLUMN_AT)
        self.sort_keys = known or NEWEST_FIRST
        self._orders = orders_of(self.sort_keys)

    def prepare_columns(self, keys: Sequence[str]) -> Iterator[None]:
        """Read these sort columns in steps, so that a later sort is fast."""
        return self._columns.prepare(keys)

    def lacks_columns(self, keys: Sequence[str]) -> bool:
        """Return whether any of these sort columns has not been read."""
        return self._columns.lacks(keys)

    def drop_columns(self) -> None:
        self._columns.drop()

    def lacks_texts(self, wanted: Filter) -> bool:
        """Return whether this filter searches texts that many rows have not made yet."""
        if not wanted.searches:
            return False
        without = (row for row in self.rows.values() if not row.made_haystack)
        return next(islice(without, FEW_TEXTS, None), None) is not None

    def prepare_texts(self) -> Iterator[None]:
        """Make the texts of all rows in steps, so that a later search is fast."""
        rows = list(self.rows.values())
        for start in range(0, len(rows), _STEP):
            deque(map(attrgetter("haystack"), rows[start : start + _STEP]), 0)
            yield

    @property
    def follows_progress(self) -> bool:
        """True if progress alone moves rows."""
        return any(COLUMNS[COLUMN_AT[key]].moves for key, _ in self.sort_keys)

    def narrowed(self, now_ms: float) -> list[str] | None:
        """Return the `ids` that match a narrower filter, or None if others may match too."""
        if not self._narrowed or self.filter.counts:
            return None
        if self.filter.took and len(self.ids) * _MANY > len(self.rows):
            return None  # Durations of all rows together are faster
        rows = map(self.rows.__getitem__, self.ids)
        return [row.task_id for row in self.filter.keep(rows, now_ms, asked)]

    def passing(self, now_ms: float) -> list[Row]:
        """Return all rows that match the filter, in order of arrival."""
        self._read_all(now_ms)
        took = self._columns.took(self._paces, now_ms) if self.filter.took else None
        return self.filter.keep(self.rows.values(), now_ms, asked, took)

    def _read_all(self, now_ms: float) -> None:
        """Apply all pending progress if the order or the filter depends on it."""
        if self.follows_progress or self.filter.counts:
            for task_id in list(self.unread):
                self.catch_up(task_id, now_ms)

    def arranged(self, now_ms: float) -> list[str]:
        """Return the ids of all matching rows in order."""
        if not self.filter.parts:
            self._read_all(now_ms)
            return self._columns.of(self.sort_keys)
        rows = self.passing(now_ms)
        if len(rows) == len(self.rows):
            return self._columns.of(self.sort_keys)
        return self._columns.only(rows, self.sort_keys)

    def replace(self, ids: list[str]) -> None:
        # Building a set is much faster in memory order.
        self.ids, self.shown = ids, set(self.rows if len(ids) == len(self.rows) else ids)

    def in_batch_order(self, rows: Sequence[Row]) -> list[Row]:
        return in_order(rows, self._orders)

    def moved(self, before: Row, after: Row) -> bool:
        """Return whether this change affects the order."""
        return any(order.value(before) != order.value(after) for order in self._orders)

    def place_of(self, row: Row) -> int:
        """Return the position for this row in `ids`, which must be sorted."""
        return bisect_right(self.ids, self._place(row.task_id), key=self._place)

    def follows(self, row: Row) -> bool:
        """Return whether this row belongs after all of `ids`."""
        return not self.ids or self._place(self.ids[-1]) <= self._place(row.task_id)

    def _place(self, task_id: str) -> tuple[object, ...]:
        return (*place(self._orders, self.rows[task_id]), self._columns.arrival[task_id])

    def _pace(self, task_id: str, view: TaskView, now_ms: float) -> Pace | None:
        entry = view.entry
        if not isinstance(entry, TaskRecord) or entry.status != Status.RUNNING:
            self._paces.pop(task_id, None)
            return None
        pace = self._paces.get(task_id)
        if pace is None:
            pace = self._paces[task_id] = Pace(entry.started_at)
        if view.units is not None:
            worked = max(0, view.units.done - view.units.carried)
            pace.seen(worked, view.last_event_at or now_ms)
        return pace

    def _watch(self, view: TaskView, now_ms: float) -> None:
        """Set the time at which this task must be evaluated again without a change."""
        task_id = view.entry.task_id
        at = changes_at(view, now_ms, self.stall_after_ms(task_id))
        if at is not None and at < self._alarm_of.get(task_id, math.inf):
            self._alarm_of[task_id] = at
            heappush(self._alarms, (at, task_id))

    def _count_new(self, rows: Sequence[Row]) -> None:
        self._counts = None
        for about, number in Counter(map(attrgetter("about"), rows)).items():
            self._masks[about.facets] = self._masks.get(about.facets, 0) + number
            self.facets.add(about, number)
        self.facets.add_times(map(attrgetter("created_at"), rows))

    def _count(self, before: Row | None, after: Row | None) -> None:
        self.facets.move(before, after)
        masks = self._masks
        was = before.about.facets if before is not None else None
        now = after.about.facets if after is not None else None
        if was == now:
            return
        self._counts = None
        if was is not None:
            masks[was] -= 1
        if now is not None:
            masks[now] = masks.get(now, 0) + 1
