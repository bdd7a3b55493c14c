"""A sort of very many in steps of a millisecond or two, for while nobody waits. Knows no Qt.

In all it takes longer than a sort at once, and it can be given up or left for a while.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, MutableSequence, Sequence
from itertools import compress
from operator import not_
from typing import Any, Final, TypeAlias

from engine.query import by_values

Part = tuple[Sequence[int], Sequence[Any]]  # numbers, and the value of each
Run: TypeAlias = "tuple[array[int], MutableSequence[Any]]"  # the same, in order
_BUCKET: Final = 800  # so many are put together at a time, but for those that are equal


def sorted_slowly(
    parts: Iterable[Part], *, descending: bool = False
) -> Generator[None, None, array[int]]:
    """Numbers by their values, equals as they came, those with the value None last.

    Each step takes one of the `parts` or makes one of the result, which is what this returns.
    To be `descending` the last of the parts has to come first: what is made ascending is then
    turned round as a whole, and equals stand as they came again.
    """
    runs, last = list[Run](), array("i")
    for numbers, values in map(_turned, parts) if descending else parts:
        has = [value is not None for value in values]
        last.extend(compress(numbers, map(not_, has)))
        runs.append(_run(list(compress(numbers, has)), list(compress(values, has))))
        yield
    cuts: list[list[int]] = []
    marks = _marks(runs)
    for _, values in runs:
        both = [cut(values, mark) for mark in marks for cut in (bisect_left, bisect_right)]
        cuts.append([0, *both, len(values)])
        yield
    found = array("i")
    for place in range(2 * len(marks) + 1):
        # by turns what lies between two marks, and what is equal to one: that is in order
        if place % 2:
            for (numbers, _), cut in zip(runs, cuts, strict=True):
                found += numbers[cut[place] : cut[place + 1]]
        else:
            found.extend(_joined(runs, cuts, place))
        yield
    if descending:
        found.reverse()
        last.reverse()
    return found + last


def _turned(part: Part) -> Part:
    numbers, values = part
    return numbers[::-1], values[::-1]


def _run(numbers: list[int], values: list[Any]) -> Run:
    order = by_values(range(len(values)), values, descending=False)
    sorted_values: MutableSequence[Any] = [values[at] for at in order]
    if set(map(type, values)) == {float}:
        sorted_values = array("d", sorted_values)
    return array("i", [numbers[at] for at in order]), sorted_values


def _marks(runs: Sequence[Run]) -> list[Any]:
    """Values that part all of them into buckets; one that many have is surely among them."""
    total = sum(len(values) for _, values in runs)
    some = sorted(value for _, values in runs for value in values[::50])
    return list(dict.fromkeys(some[:: max(1, len(some) * _BUCKET // max(1, total))]))


def _joined(runs: Sequence[Run], cuts: list[list[int]], place: int) -> list[int]:
    numbers: list[int] = []
    values: list[Any] = []
    for (some, theirs), cut in zip(runs, cuts, strict=True):
        numbers.extend(some[cut[place] : cut[place + 1]])
        values.extend(theirs[cut[place] : cut[place + 1]])
    return by_values(numbers, values, descending=False)
