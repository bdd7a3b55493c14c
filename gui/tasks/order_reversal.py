"""An order that follows from another one, where few rows are equal by it. Knows no Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress, islice
from operator import eq
from typing import Any, Final

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
