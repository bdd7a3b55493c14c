"""Multi-key order of a list: stable, fast, with missing values last."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress
from math import isnan
from operator import not_
from typing import Any, Final, TypeVar

SortKey = tuple[str, bool]
"""Key of a column, and whether it is descending."""

V = TypeVar("V")
N = TypeVar("N")

_SAMPLE: Final = 500  # values in the sample that decides whether many are equal
_ALIKE: Final = 8  # grouping pays from this many subjects per value


@dataclass(frozen=True, slots=True)
class Order:
    """Key of an order: a value to compare, None where a subject has none.

    Missing values come last in both directions. Values are numbers or texts. `many` computes the
    values of many subjects at once, where that is faster.
    """

    value: Callable[[Any], str | float | None]
    descending: bool = False
    many: Callable[[Sequence[Any]], list[Any]] | None = None

    def values(self, subjects: Sequence[Any]) -> list[Any]:
        """Compute the value of each of `subjects`."""
        return list(map(self.value, subjects)) if self.many is None else self.many(subjects)


def in_order(subjects: Sequence[V], orders: Sequence[Order]) -> list[V]:
    """Sort `subjects` by the first order, ties by the next, further ties as given."""
    return names_in_order(subjects, subjects, orders)


def names_in_order(names: Sequence[N], subjects: Sequence[V], orders: Sequence[Order]) -> list[N]:
    """Sort the names by their `subjects`: see `in_order`.

    Only the names move: reading 100,000 subjects again in an order that is random in memory costs
    as much as half a sort.
    """
    if not orders:
        return list(names)
    values = orders[0].values(subjects)  # computed once, because some are expensive
    if len(orders) == 1:
        return by_values(names, values, descending=orders[0].descending)
    if are_alike(values):
        return _grouped(names, subjects, values, orders)
    has = [value is not None for value in values]
    if all(has):
        return _ordered(names, subjects, values, orders)
    if not any(has):
        return names_in_order(names, subjects, orders[1:])
    lacks = [not each for each in has]
    known, without = list(compress(subjects, has)), list(compress(subjects, lacks))
    values = list(compress(values, has))
    last = names_in_order(list(compress(names, lacks)), without, orders[1:])
    return _ordered(list(compress(names, has)), known, values, orders) + last


def by_values(names: Sequence[N], values: Sequence[Any], *, descending: bool) -> list[N]:
    """Sort `names` by the value of each, ties as given; those without a value last.

    In an array NaN represents None.
    """
    if isinstance(values, array) and isnan(sum(values)):
        has = [value == value for value in values]
        known, some = list(compress(names, has)), array("d", compress(values, has))
        if len(known) < len(names):  # always, except for infinities of both signs
            found = by_values(known, some, descending=descending)
            return found + list(compress(names, map(not_, has)))
    if are_alike(values):
        groups: defaultdict[Any, list[N]] = defaultdict(list)
        for name, value in zip(names, values, strict=True):
            groups[value].append(name)
        last = groups.pop(None, [])
        known = sorted(groups, reverse=descending)
        return [*chain.from_iterable(map(groups.__getitem__, known)), *last]
    if isinstance(values, array):
        return _sorted(names, values, descending)
    has = [value is not None for value in values]
    if all(has):
        return _sorted(names, values, descending)
    found = _sorted(list(compress(names, has)), list(compress(values, has)), descending)
    return found + list(compress(names, map(not_, has)))


def _ordered(
    names: Sequence[N], subjects: Sequence[V], values: list[Any], orders: Sequence[Order]
) -> list[N]:
    """Sort subjects that all have a value; only ties are compared by the other orders."""
    down, tied = orders[0].descending, _tied(values)
    if len(tied) * _ALIKE < len(values):
        # Sort the few ties by the other orders first, then by their common value.
        places = [at for at, value in enumerate(values) if value in tied]
        before = names_in_order(places, [subjects[at] for at in places], orders[1:])
        some = iter(_sorted(before, [values[at] for at in before], down))
        equal = set(places)
        ordered = _sorted(range(len(names)), values, down)
        return [names[next(some) if at in equal else at] for at in ordered]
    before = names_in_order(range(len(subjects)), subjects, orders[1:])
    return _sorted([names[at] for at in before], [values[at] for at in before], down)


def are_alike(values: Sequence[object]) -> bool:
    """Return whether many share one value, such as a state or a host; judged by a sample."""
    some = values[:: max(1, len(values) // _SAMPLE)]
    return len(set(some)) * _ALIKE < len(some)


def _tied(values: Sequence[object]) -> set[object]:
    """Values that more than one subject has."""
    seen: set[object] = set()
    note = seen.add
    return {value for value in values if value in seen or note(value)}


def _grouped(
    names: Sequence[N], subjects: Sequence[V], values: Sequence[Any], orders: Sequence[Order]
) -> list[N]:
    """Sort by few distinct values: group by them, and sort each group by the other orders."""
    groups: defaultdict[Any, list[N]] = defaultdict(list)
    inner: defaultdict[Any, list[V]] = defaultdict(list)
    for name, value in zip(names, values, strict=True):
        groups[value].append(name)
    for subject, value in zip(subjects, values, strict=True):
        inner[value].append(subject)
    last = [None] if None in groups else []
    known = sorted(groups.keys() - {None}, reverse=orders[0].descending)
    return [
        name
        for value in (*known, *last)
        for name in names_in_order(groups[value], inner[value], orders[1:])
    ]


def _sorted(names: Sequence[N], values: Sequence[Any], descending: bool) -> list[N]:
    if isinstance(values, array):
        values = values.tolist()
    elif set(map(type, values)) == {float}:  # contiguous in memory they are compared far faster
        values = array("d", values).tolist()
    # `sorted` calls the key function once per name, in order, before it moves any; the name that it
    # passes becomes the default of `next`, which is never used.
    return sorted(names, key=partial(next, iter(values)), reverse=descending)


def place(orders: Sequence[Order], subject: object) -> tuple[object, ...]:
    """Build a key for bisecting a list that `in_order` sorted."""
    return tuple(part for order in orders for part in _part(order, subject))


def _part(order: Order, subject: object) -> tuple[object, ...]:
    value = order.value(subject)
    if value is None:
        return (True, 0)
    if isinstance(value, str):
        # UTF-8 sorts as code points do; its complement sorts in reverse.
        folded = value.encode("utf-8", "surrogatepass")
        return (
            False,
            folded.translate(_COMPLEMENT) + b"\xff" if order.descending else folded,
        )
    return (False, -value if order.descending else value)


_COMPLEMENT = bytes(255 - byte for byte in range(256))
