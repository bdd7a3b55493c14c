"""Rows by number, as they came, and what they are ordered by. Knows no Qt."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import sub
from typing import Any, Final

from engine.query import Order
from gui.tasks.incremental_sort import Part
from gui.tasks.row import Row
from gui.tasks.sort_keys import PACKED, Packed, valued
from gui.tasks.sort_values import averages

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
