"""Orders of all rows that were worked out once, and are mended where rows have changed since.

Only names are kept: 0.8 MB for each order of 100,000 rows, and few orders. Knows no Qt.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

from engine.query import Order, SortKey, are_alike, names_in_order, place
from gui.columns import COLUMN_AT, COLUMNS
from gui.rows import Row
from gui.sort_values import VALUES

Keys = tuple[SortKey, ...]
_MOST: Final = 6  # orders that are kept, the latest used
_MENDED: Final = 64  # more than a 64th of the rows are not mended one by one: a sort is quicker


def orders_of(keys: Keys) -> tuple[Order, ...]:
    """How to compare rows by these columns."""
    return tuple(Order(COLUMNS[COLUMN_AT[key]].sort, down, VALUES.get(key)) for key, down in keys)


class KnownOrders:
    """Of `rows`, whose `arrival` settles what is equal by all keys."""

    def __init__(self, rows: Mapping[str, Row], arrival: Mapping[str, int]) -> None:
        self._rows, self._arrival = rows, arrival
        self._ids: dict[Keys, list[str]] = {}
        self._stale: dict[Keys, set[str]] = {}
        self._orders: dict[Keys, tuple[Order, ...]] = {}

    def note(self, before: Row | None, after: Row) -> None:
        """A row has come (`before` is None) or is another now."""
        for keys, orders in list(self._orders.items()):
            if before is None or any(each.value(before) != each.value(after) for each in orders):
                self._spoil(keys, after.task_id)

    def forget(self, task_id: str) -> None:
        """A row is gone."""
        for keys in list(self._orders):
            self._spoil(keys, task_id)

    def has(self, keys: Keys) -> bool:
        """Is this order known, so that no sort is needed for it?"""
        return keys in self._ids

    def of(self, keys: Keys) -> list[str]:
        """Every id in this order; a list that is not to be changed."""
        known = self._ids.pop(keys, None)
        if known is None:
            self._orders[keys] = orders_of(keys)
            found = self._made(keys)
        elif self._stale[keys]:
            found = self._mended(known, keys)
        else:
            found = known
        self._ids[keys], self._stale[keys] = found, set()  # the latest used is the last
        while len(self._ids) > _MOST:
            self._drop(next(iter(self._ids)))
        return found

    def _spoil(self, keys: Keys, task_id: str) -> None:
        stale = self._stale.get(keys)
        if stale is None:
            return
        stale.add(task_id)
        if len(stale) * _MENDED > len(self._rows) + 16 * _MENDED:
            self._drop(keys)

    def _drop(self, keys: Keys) -> None:
        del self._ids[keys], self._stale[keys], self._orders[keys]

    def _made(self, keys: Keys) -> list[str]:
        rows, orders = list(self._rows.values()), self._orders[keys]
        if len(keys) > 1 and are_alike(rows, orders[0]):
            # By the rest first, which may be known or is wanted again: few values keep it.
            ids = self.of(keys[1:])
            return names_in_order(ids, list(map(self._rows.__getitem__, ids)), orders[:1])
        return names_in_order(list(self._rows), rows, orders)

    def _mended(self, known: list[str], keys: Keys) -> list[str]:
        """What has not changed stays; for each of the others its place is looked for."""
        stale, rows, orders = self._stale[keys], self._rows, self._orders[keys]

        def at(task_id: str) -> tuple[object, ...]:
            return (*place(orders, rows[task_id]), self._arrival[task_id])

        rest = [task_id for task_id in known if task_id not in stale]
        found: list[str] = []
        start = 0
        for task_id in sorted((one for one in stale if one in rows), key=at):
            end = bisect_right(rest, at(task_id), start, key=at)
            found += rest[start:end]
            found.append(task_id)
            start = end
        return found + rest[start:]
