"""The numbers that rows are ordered by most, side by side in memory. Knows no Qt.

To read a number of each of 100,000 rows where these lie takes 10 to 60 ms, nearly all of it
waiting for memory; here it takes 2, and 0.8 MB a column.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress, repeat
from math import isnan, nan
from typing import Any, Final

from gui.tasks.row import Row
from gui.tasks.sort_values import VALUES

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
