"""Orders of all rows that were worked out once, and are mended where rows have changed since.

A row has a number here, by when it came: it settles what is equal by all keys, and an order
of numbers takes 0.4 MB for 100,000 rows, half of what one of names does. Knows no Qt.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from engine.query import Order, SortKey, are_alike, by_values, names_in_order, place
from gui.columns import COLUMN_AT, COLUMNS
from gui.rows import Row
from gui.slow_sort import Part, sorted_slowly
from gui.sort_values import VALUES
from gui.turned import settled, turned

Keys = tuple[SortKey, ...]
N = TypeVar("N", str, int)
_MOST: Final = 6  # orders that are kept beside those that are wanted, the latest used
_MENDED: Final = 64  # more than a 64th of the rows are not mended one by one: a sort is quicker
_MANY: Final = 8
_STEP: Final = 500  # rows that are read in one step of an order that is made beforehand
_NOBODY: Final = ""  # whoever had this number is gone


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
        self.arrival: dict[str, int] = {}  # the number of each
        self.wanted: tuple[Keys, ...] = ()
        self._names: list[str] = []  # by number
        self._known: dict[Keys, _Known] = {}
        self._begun: dict[Keys, _Known] = {}  # is being made: what changes meanwhile is noted

    def note(self, before: Row | None, after: Row) -> None:
        """A row has come (`before` is None) or is another now."""
        task_id = after.task_id
        if before is None:
            self.arrival[task_id] = len(self._names)
            self._names.append(task_id)
        for keys, known in (*self._known.items(), *self._begun.items()):
            if before is None or any(
                each.value(before) != each.value(after) for each in known.orders
            ):
                self._spoil(keys, known, self.arrival[task_id], task_id)

    def forget(self, task_id: str) -> None:
        """A row is gone, from `rows` as well."""
        number = self.arrival.pop(task_id)
        self._names[number] = _NOBODY
        for keys, known in (*self._known.items(), *self._begun.items()):
            self._spoil(keys, known, number, task_id)
        if len(self._names) > 2 * len(self._rows) + 1000:
            self._number_anew()

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
        return self._named(known.numbers or ())

    def only(self, some: Sequence[Row], keys: Keys) -> list[str]:
        """The ids of these in this order; they stand as they do in the rows."""
        wanted, names = bytearray(len(self._names)), self._names
        if len(some) * _MANY < len(self._rows):
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
        numbers = yield from sorted_slowly(self._parts(first), descending=first.descending)
        if self._begun.pop(keys, None) is known and not self.has(keys):
            known.numbers = numbers
            self._keep(keys, known)

    def _parts(self, order: Order) -> Iterator[Part]:
        names = self._names
        starts = range(0, len(names), _STEP)
        for start in reversed(starts) if order.descending else starts:
            end = min(start + _STEP, len(names))
            numbers = [number for number in range(start, end) if names[number]]
            yield numbers, order.values([self._rows[names[number]] for number in numbers])

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

    def _number_anew(self) -> None:
        self.forget_all()
        self._names = list(self._rows)
        self.arrival.clear()
        self.arrival.update({task_id: number for number, task_id in enumerate(self._names)})

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
            known = _Known(orders_of(keys), numbers=array("i", self._numbered(keys)))
            self._keep(keys, known)
        if known.numbers is None:
            known.numbers = array("i", map(self.arrival.__getitem__, known.ids or ()))
        return known.numbers

    # from scratch, and from what is known

    def _made(self, keys: Keys) -> list[str]:
        rows = list(self._rows.values())
        found = self._derived(keys, rows)
        if found is not None:
            return self._named(found)
        return names_in_order(list(self._rows), rows, orders_of(keys))

    def _numbered(self, keys: Keys) -> Sequence[int]:
        rows = list(self._rows.values())
        found = self._derived(keys, rows)
        return found or names_in_order(list(self.arrival.values()), rows, orders_of(keys))

    def _derived(self, keys: Keys, rows: Sequence[Row]) -> Sequence[int] | None:
        """Numbers in this order where that is quicker than a sort; else None."""
        (key, down), *others = keys
        first = orders_of(keys[:1])[0]
        around = self._known.get(((key, not down),)) if not others else None
        if not others and (around is None or around.numbers is None):
            return None
        values = first.values(rows)
        if others and are_alike(values):
            # By the rest first, which may be known or is wanted again: few values keep it.
            before = self._numbers(keys[1:])
            return by_values(before, self._at(before, values), descending=down)
        if others:
            if not self.has(keys[:1]):
                found = by_values(list(self.arrival.values()), values, descending=down)
                self._keep(keys[:1], _Known((first,), numbers=array("i", found)))
            numbers = self._numbers(keys[:1])
            return settled(numbers, self._at(numbers, values), self._by_rest(orders_of(keys[1:])))
        if are_alike(values):
            return None
        numbers = self._numbers(((key, not down),))
        return turned(numbers, self._at(numbers, values))

    def _by_rest(self, orders: Sequence[Order]) -> Callable[[Sequence[int]], list[int]]:
        def ordered(some: Sequence[int]) -> list[int]:
            rows = [self._rows[self._names[number]] for number in some]
            return names_in_order(some, rows, orders)

        return ordered

    def _named(self, numbers: Iterable[int]) -> list[str]:
        names = self._names
        return [names[number] for number in numbers]

    def _at(self, numbers: Iterable[int], values: Sequence[Any]) -> list[Any]:
        """The value of each of these rows; `values` are in the order of `rows`."""
        if len(values) != len(self._names):
            spread = [None] * len(self._names)
            for number, value in zip(self.arrival.values(), values, strict=True):
                spread[number] = value
            values = spread
        return [values[number] for number in numbers]

    def _mend(self, known: _Known) -> None:
        """What has not changed stays; for each of the others its place is looked for."""
        stale, names, rows = known.stale, self._names, self._rows
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
