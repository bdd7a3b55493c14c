"""Orders of all rows that were worked out once, and are mended where rows have changed since.

A row has a number here, by when it came: it settles what is equal by all keys, and an order
of numbers takes 0.4 MB for 100,000 rows, half of what one of names does. Knows no Qt.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from engine.query import Order, SortKey, are_alike, by_values, names_in_order, place
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.incremental_sort import Part, sorted_slowly
from gui.tasks.order_reversal import settled, turned
from gui.tasks.row import Row
from gui.tasks.row_numbers import Numbered
from gui.tasks.sort_values import VALUES

Keys = tuple[SortKey, ...]
N = TypeVar("N", str, int)
_MOST: Final = 6  # orders that are kept beside those that are wanted, the latest used
_MENDED: Final = 64  # more than a 64th of the rows are not mended one by one: a sort is quicker
_MANY: Final = 8


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
