"""Orders of all rows that were worked out once, and are mended where rows have changed since.

A row has a number here, by when it came: it settles what is equal by all keys, and an order
of numbers takes 0.4 MB for 100,000 rows, half of what one of names does. Knows no Qt.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice, repeat
from math import isnan, nan
from operator import eq, sub
from typing import Any, Final, TypeVar

from engine.query import Order, SortKey, are_alike, by_values, names_in_order, place
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.incremental_sort import Part, sorted_slowly
from gui.tasks.row import Row
from gui.tasks.sort_values import VALUES, averages

# An order that follows from another one, where few rows are equal by it. Knows no Qt.

_MANY: Final = 8  # more than an 8th of the rows with an equal beside them: sort them all


def turned(names: Sequence[int], values: Sequence[Any]) -> list[int] | None:
    """`names` in the order of their `values` the other way round: what has none stays last, and
    equals stand as they did. None where a sort is quicker."""
    has = len(values)
    while has and values[has - 1] is None:
        has -= 1
    runs = _few_runs(values[:has])
    if runs is None:
        return None
    found = list(reversed(names[:has]))
    for start, end in runs:
        found[has - end : has - start] = reversed(found[has - end : has - start])
    return found + list(names[has:])


def settled(
    names: Sequence[int], values: Sequence[Any], ordered: Callable[[Sequence[int]], list[int]]
) -> list[int] | None:
    """`names` in the order of their `values`, and those of one value as `ordered` puts them.
    None where a sort is quicker."""
    runs = _few_runs(values)
    if runs is None:
        return None
    run_of = {names[at]: run for run, (start, end) in enumerate(runs) for at in range(start, end)}
    # All of them by the rest at once, then each run of them in its turn: its rows stay as they are.
    rest = iter(sorted(ordered(list(run_of)), key=run_of.__getitem__))
    return [next(rest) if name in run_of else name for name in names]


def _few_runs(values: Sequence[Any]) -> list[tuple[int, int]] | None:
    """Where equals stand together: start and end of each run; None for more than a few."""
    same = list(map(eq, values, islice(values, 1, None)))
    if sum(same) * _MANY > len(values):
        return None
    found: list[tuple[int, int]] = []
    for at in compress(range(len(same)), same):
        start = found.pop()[0] if found and found[-1][1] == at + 1 else at
        found.append((start, at + 2))
    return found


# The numbers that rows are ordered by most, side by side in memory. Knows no Qt.
#
# To read a number of each of 100,000 rows where these lie takes 10 to 60 ms, nearly all of it
# waiting for memory; here it takes 2, and 0.8 MB a column.

PACKED: Final = ("age", "updated", "started", "ended", "took")
_BATCH: Final = 500  # rows are read together: their memory is still at hand then


class Packed:
    """By the number of a row, from 0. Whoever is gone leaves what it had."""

    def __init__(self) -> None:
        self._columns = {key: array("d") for key in PACKED}
        self._numbers: list[int] = []  # of those that are still to be read
        self._rows: list[Row] = []

    def note(self, number: int, row: Row) -> None:
        """This is the row with this number now."""
        self._numbers.append(number)
        self._rows.append(row)
        if len(self._rows) >= _BATCH:
            self._read()

    def column(self, key: str) -> array[float]:
        """Not to be changed; not-a-number stands for no value."""
        self._read()
        return self._columns[key]

    def keep(self, kept: Sequence[object]) -> None:
        """Only those for which something is true in `kept` are left, and get new numbers."""
        self._read()
        for key, column in self._columns.items():
            self._columns[key] = array("d", compress(column, kept))

    def _read(self) -> None:
        numbers, rows = self._numbers, self._rows
        if not rows:
            return
        self._numbers, self._rows = [], []
        end = max(numbers) + 1
        for key, column in self._columns.items():
            column.extend(repeat(nan, end - len(column)))
            for number, value in zip(numbers, VALUES[key](rows), strict=True):
                column[number] = nan if value is None else value


def valued(column: array[float]) -> Sequence[Any]:
    """The same with None where there is no value; as it is where each has one."""
    if not isnan(sum(column)):
        return column
    return [value if value == value else None for value in column]


# Rows by number, as they came, and what they are ordered by. Knows no Qt.

_STEP: Final = 500  # rows in one of the `parts`
_NOBODY: Final = ""  # whoever had this number is gone


class Numbered:
    """Numbers for `rows`, which stand in the order of these. A number is not given twice."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows
        self.arrival: dict[str, int] = {}  # the number of each
        self.names: list[str] = []  # by number
        self._packed = Packed()

    def note(self, row: Row) -> int:
        """The number of a row that has come or is another now."""
        task_id = row.task_id
        number = self.arrival.get(task_id)
        if number is None:
            number = self.arrival[task_id] = len(self.names)
            self.names.append(task_id)
        self._packed.note(number, row)
        return number

    def forget(self, task_id: str) -> int:
        """The number of a row that is gone, from `rows` as well."""
        number = self.arrival.pop(task_id)
        self.names[number] = _NOBODY
        return number

    @property
    def has_many_gaps(self) -> bool:
        return len(self.names) > 2 * len(self._rows) + 1000

    def begin_anew(self) -> None:
        """Give all of them new numbers, without gaps."""
        self._packed.keep(self.names)
        self.names = list(self._rows)
        self.arrival.clear()
        self.arrival.update({task_id: number for number, task_id in enumerate(self.names)})

    def everyone(self) -> Sequence[int]:
        """The numbers of all rows."""
        # Those that `arrival` holds lie scattered in memory, in whatever order they are read.
        everyone = range(len(self.names))
        return everyone if self._is_whole else list(compress(everyone, self.names))

    def named(self, numbers: Iterable[int]) -> list[str]:
        names = self.names
        return [names[number] for number in numbers]

    def values(self, key: str, order: Order) -> Sequence[Any]:
        """What each of all rows has by this column, None where it has nothing."""
        found = self.quick_values(key, order)
        return valued(found) if isinstance(found, array) else found

    def quick_values(self, key: str, order: Order) -> Sequence[Any]:
        """The same for `by_values`: in an array not-a-number stands for None."""
        if key == "average":
            return averages(list(self._rows.values()), self._column("took"))
        return self._column(key) if key in PACKED else order.values(list(self._rows.values()))

    def at(self, numbers: Iterable[int], values: Sequence[Any]) -> list[Any]:
        """The value of each of these rows; `values` are in the order of the rows."""
        if not self._is_whole:
            spread = [None] * len(self.names)
            for number, value in zip(self.arrival.values(), values, strict=True):
                spread[number] = value
            values = spread
        return [values[number] for number in numbers]

    def took(self, running: Iterable[str], now_ms: float) -> list[float]:
        """How long each of the rows ran, ms, and these until now; not-a-number: nobody knows."""
        started = self._packed.column("started")
        found = list(map(sub, self._packed.column("ended"), started))
        for number in map(self.arrival.__getitem__, running):
            found[number] = now_ms - started[number]
        return found if self._is_whole else list(compress(found, self.names))

    def parts(self, key: str, order: Order) -> Iterator[Part]:
        """Numbers and values of all, a few with each step; to be descending, the last first."""
        starts = range(0, len(self.names), _STEP)
        for start in reversed(starts) if order.descending else starts:
            names = self.names[start : start + _STEP]
            numbers = [start + at for at, name in enumerate(names) if name]
            if key in PACKED:
                column = self._packed.column(key)[start : start + _STEP]
                yield numbers, valued(array("d", compress(column, names)))
            else:
                yield numbers, order.values([self._rows[name] for name in names if name])

    @property
    def _is_whole(self) -> bool:
        return len(self.names) == len(self._rows)

    def _column(self, key: str) -> array[float]:
        """In the order of the rows."""
        column = self._packed.column(key)
        return column if self._is_whole else array("d", compress(column, self.names))


Keys = tuple[SortKey, ...]
N = TypeVar("N", str, int)
_MOST: Final = 6  # orders that are kept beside those that are wanted, the latest used
_MENDED: Final = 64  # more than a 64th of the rows are not mended one by one: a sort is quicker
_RESORT_SHARE: Final = 8


def orders_of(keys: Keys) -> tuple[Order, ...]:
    """How to compare rows by these columns."""
    return tuple(Order(COLUMNS[COLUMN_AT[key]].sort, down, VALUES.get(key)) for key, down in keys)


@dataclass(slots=True)
class _Known:
    """Names or numbers of all rows in an order, or both, but for those that are `stale`."""

    orders: tuple[Order, ...]
    ids: list[str] | None = None
    numbers: array[int] | None = None
    stale: dict[int, str] = field(default_factory=dict)  # by number


class KnownOrders:
    """Of `rows`. `wanted` are the orders that are worth to be made beforehand, and kept."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows
        self._numbered = Numbered(rows)
        self.arrival = self._numbered.arrival  # the number of each
        self.wanted: tuple[Keys, ...] = ()
        self._known: dict[Keys, _Known] = {}
        self._begun: dict[Keys, _Known] = {}  # is being made: what changes meanwhile is noted

    def note(self, before: Row | None, after: Row) -> None:
        """A row has come (`before` is None) or is another now."""
        number = self._numbered.note(after)
        for keys, known in (*self._known.items(), *self._begun.items()):
            if before is None or any(
                each.value(before) != each.value(after) for each in known.orders
            ):
                self._spoil(keys, known, number, after.task_id)

    def forget(self, task_id: str) -> None:
        """A row is gone, from `rows` as well."""
        number = self._numbered.forget(task_id)
        for keys, known in (*self._known.items(), *self._begun.items()):
            self._spoil(keys, known, number, task_id)
        if self._numbered.has_many_gaps:
            self.forget_all()
            self._numbered.begin_anew()

    def has(self, keys: Keys) -> bool:
        """Is this order known, so that no sort is needed for it?"""
        return keys in self._known

    def of(self, keys: Keys) -> list[str]:
        """Every id in this order."""
        known = self._fresh(keys)
        if known is None:
            known = _Known(orders_of(keys), ids=self._made(keys))
            self._keep(keys, known)
        if known.ids is not None:
            return known.ids.copy()
        return self._numbered.named(known.numbers or ())

    def only(self, some: Sequence[Row], keys: Keys) -> list[str]:
        """The ids of these in this order; they stand as they do in the rows."""
        wanted, names = bytearray(len(self._numbered.names)), self._numbered.names
        if len(some) * _RESORT_SHARE < len(self._rows):
            for row in some:
                wanted[self.arrival[row.task_id]] = 1
        else:  # to look for very many names costs more than to look at every row
            rest = iter(some)
            sought = next(rest, None)
            for number, row in zip(self.arrival.values(), self._rows.values(), strict=True):
                if row is sought:
                    wanted[number] = 1
                    sought = next(rest, None)
        return [names[number] for number in self._numbers(keys) if wanted[number]]

    def took(self, running: Iterable[str], now_ms: float) -> list[float]:
        """How long each of the rows ran, ms, and these until now: see `Numbered.took`."""
        return self._numbered.took(running, now_ms)

    def lacks(self) -> bool:
        """Is there an order that is wanted and not known?"""
        return not all(map(self.has, self.wanted))

    def make_wanted(self) -> Iterator[None]:
        """Make what is wanted, some 2 ms with each step: it can be left at any of them."""
        for keys in self.wanted:
            if not self.has(keys):
                yield from self._make_slowly(keys)

    def _make_slowly(self, keys: Keys) -> Iterator[None]:
        known = _Known(orders_of(keys))
        self._begun = {keys: known}
        first = known.orders[0]
        parts = self._while_begun(keys, known)
        numbers = yield from sorted_slowly(parts, descending=first.descending)
        if self._begun.pop(keys, None) is known and not self.has(keys):
            known.numbers = numbers
            self._keep(keys, known)

    def _while_begun(self, keys: Keys, known: _Known) -> Iterator[Part]:
        """What is to be put in order, until that is given up: numbers may be others then."""
        for part in self._numbered.parts(keys[0][0], known.orders[0]):
            yield part
            if self._begun.get(keys) is not known:
                return

    def _spoil(self, keys: Keys, known: _Known, number: int, task_id: str) -> None:
        known.stale[number] = task_id
        if len(known.stale) * _MENDED > len(self._rows) + 16 * _MENDED:
            for known_so_far in (self._known, self._begun):
                if known_so_far.get(keys) is known:
                    del known_so_far[keys]

    def forget_all(self) -> None:
        """Know no order any more."""
        self._known.clear()
        self._begun.clear()

    def _keep(self, keys: Keys, known: _Known) -> None:
        self._known.pop(keys, None)
        self._known[keys] = known  # the latest used is the last
        others = [each for each in self._known if each not in self.wanted]
        for each in others[:-_MOST]:
            del self._known[each]

    def _fresh(self, keys: Keys) -> _Known | None:
        """What is known of this order, mended."""
        known = self._known.get(keys)
        if known is not None:
            self._keep(keys, known)
            if known.stale:
                self._mend(known)
        return known

    def _numbers(self, keys: Keys) -> array[int]:
        """The number of every row in this order."""
        known = self._fresh(keys)
        if known is None:
            known = _Known(orders_of(keys), numbers=array("i", self._made_numbers(keys)))
            self._keep(keys, known)
        if known.numbers is None:
            known.numbers = array("i", map(self.arrival.__getitem__, known.ids or ()))
        return known.numbers

    # from scratch, and from what is known

    def _made(self, keys: Keys) -> list[str]:
        found = self._derived(keys)
        return (
            self._sorted(list(self._rows), keys) if found is None else self._numbered.named(found)
        )

    def _made_numbers(self, keys: Keys) -> Sequence[int]:
        found = self._derived(keys)
        return self._sorted(self._numbered.everyone(), keys) if found is None else found

    def _sorted(self, names: Sequence[N], keys: Keys) -> list[N]:
        """From scratch; `names` are those of all rows."""
        orders = orders_of(keys)
        if len(keys) > 1:
            return names_in_order(names, list(self._rows.values()), orders)
        values = self._numbered.quick_values(keys[0][0], orders[0])
        return by_values(names, values, descending=orders[0].descending)

    def _derived(self, keys: Keys) -> Sequence[int] | None:
        """Numbers in this order where that is quicker than a sort; else None."""
        (key, down), *others = keys
        first = orders_of(keys[:1])[0]
        around = self._known.get(((key, not down),)) if not others else None
        if not others and (around is None or around.numbers is None):
            return None
        values = self._numbered.values(key, first)
        if others and are_alike(values):
            # By the rest first, which may be known or is wanted again: few values keep it.
            before = self._numbers(keys[1:])
            return by_values(before, self._numbered.at(before, values), descending=down)
        if others:
            if not self.has(keys[:1]):
                found = by_values(self._numbered.everyone(), values, descending=down)
                self._keep(keys[:1], _Known((first,), numbers=array("i", found)))
            numbers = self._numbers(keys[:1])
            return settled(
                numbers, self._numbered.at(numbers, values), self._by_rest(orders_of(keys[1:]))
            )
        if are_alike(values):
            return None
        numbers = self._numbers(((key, not down),))
        return turned(numbers, self._numbered.at(numbers, values))

    def _by_rest(self, orders: Sequence[Order]) -> Callable[[Sequence[int]], list[int]]:
        def ordered(some: Sequence[int]) -> list[int]:
            rows = [self._rows[name] for name in self._numbered.named(some)]
            return names_in_order(some, rows, orders)

        return ordered

    def _mend(self, known: _Known) -> None:
        """What has not changed stays; for each of the others its place is looked for."""
        stale, names, rows = known.stale, self._numbered.names, self._rows
        number_of, orders = self.arrival.__getitem__, known.orders

        def at(number: int) -> tuple[object, ...]:
            return (*place(orders, rows[names[number]]), number)

        fresh = sorted((number for number in stale if names[number]), key=at)
        if known.ids is not None:
            gone = set(stale.values())
            kept = [task_id for task_id in known.ids if task_id not in gone]
            found = _merged(kept, [names[number] for number in fresh], lambda id: at(number_of(id)))
            known.ids, known.numbers = found, None
        else:
            rest = [number for number in known.numbers or () if number not in stale]
            known.numbers = array("i", _merged(rest, fresh, at))
        known.stale = {}


def _merged(rest: list[N], fresh: list[N], at: Callable[[N], tuple[object, ...]]) -> list[N]:
    """Both in the order that `at` says, which each is in already; `fresh` are few."""
    found: list[N] = []
    start = 0
    for one in fresh:
        end = bisect_right(rest, at(one), start, key=at)
        found += rest[start:end]
        found.append(one)
        start = end
    return found + rest[start:]
