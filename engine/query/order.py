"""The multi-key order of a list: stable, quick, and the valueless last."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, Final, TypeVar

SortKey = tuple[str, bool]
"""A column's key, and whether it runs downwards."""

V = TypeVar("V")
N = TypeVar("N")

_SAMPLE: Final = 500  # values that tell whether many are alike
_ALIKE: Final = 8  # so many subjects to a value make a group of them worth while


@dataclass(frozen=True, slots=True)
class Order:
    """One key of an order: a value to compare, None where a subject has none.

    What has no value comes last in both directions. Values are numbers or texts. `many` says
    the same of many subjects at once, where that is quicker.
    """

    value: Callable[[Any], str | float | None]
    descending: bool = False
    many: Callable[[Sequence[Any]], list[Any]] | None = None

    def values(self, subjects: Sequence[Any]) -> list[Any]:
        """The value of each of `subjects`."""
        return list(map(self.value, subjects)) if self.many is None else self.many(subjects)


def in_order(subjects: Sequence[V], orders: Sequence[Order]) -> list[V]:
    """`subjects` by the first order, ties by the next, further ties as they came."""
    return names_in_order(subjects, subjects, orders)


def names_in_order(names: Sequence[N], subjects: Sequence[V], orders: Sequence[Order]) -> list[N]:
    """The name of each of `subjects`, in the order of these: see `in_order`.

    Only the names move: to read 100,000 subjects once more in an order that memory does not
    have costs as much as half a sort.
    """
    if not orders:
        return list(names)
    values = orders[0].values(subjects)  # once: some are worked out
    if len(orders) > 1 and _are_alike(values):
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


def _ordered(
    names: Sequence[N], subjects: Sequence[V], values: list[Any], orders: Sequence[Order]
) -> list[N]:
    """All have a value by the first order; only what shares one is asked for the rest."""
    tied = _tied(values) if len(orders) > 1 else set()
    few = len(tied) * _ALIKE < len(values)
    if tied and not few:
        before = names_in_order(range(len(subjects)), subjects, orders[1:])
        names, values = [names[at] for at in before], [values[at] for at in before]
    ordered = _sorted(names, values, orders[0].descending)
    if tied and few:
        places = [at for at, value in enumerate(values) if value in tied]
        return _settled(ordered, names, subjects, places, orders)
    return ordered


def are_alike(subjects: Sequence[object], order: Order) -> bool:
    """Do many of `subjects` share one value? Judged by a few of them."""
    some = subjects[:: max(1, len(subjects) // _SAMPLE)]
    return _are_alike(order.values(some))


def _are_alike(values: Sequence[object]) -> bool:
    """Do many share one value, as of a state or a host? Judged by a few of them."""
    some = values[:: max(1, len(values) // _SAMPLE)]
    return len(set(some)) * _ALIKE < len(some)


def _tied(values: Sequence[object]) -> set[object]:
    """The values that more than one subject has."""
    seen: set[object] = set()
    note = seen.add
    return {value for value in values if value in seen or note(value)}


def _settled(
    ordered: list[N],
    names: Sequence[N],
    subjects: Sequence[V],
    places: list[int],
    orders: Sequence[Order],
) -> list[N]:
    """`ordered` by the first order, and the few that it leaves equal (at `places`) by all."""
    some, few = [names[at] for at in places], [subjects[at] for at in places]
    # Few enough to be put in order pass by pass: the rest first, then by what they share.
    before = names_in_order(range(len(some)), few, orders[1:])
    shared = [orders[0].value(few[at]) for at in before]
    some = _sorted([some[at] for at in before], shared, orders[0].descending)
    tied, rest = set(some), iter(some)
    return [next(rest) if name in tied else name for name in ordered]


def _grouped(
    names: Sequence[N], subjects: Sequence[V], values: Sequence[Any], orders: Sequence[Order]
) -> list[N]:
    """Few values: what shares one goes together, and only within that the rest is asked."""
    rest = orders[1:]
    groups: defaultdict[Any, list[N]] = defaultdict(list)
    inner: defaultdict[Any, list[V]] = defaultdict(list)
    for name, value in zip(names, values, strict=True):
        groups[value].append(name)
    if rest:
        for subject, value in zip(subjects, values, strict=True):
            inner[value].append(subject)
    last = [None] if None in groups else []
    known = sorted(groups.keys() - {None}, reverse=orders[0].descending)
    found: list[N] = []
    for value in (*known, *last):
        group = groups[value]
        found += names_in_order(group, inner[value], rest) if rest else group
    return found


def _sorted(names: Sequence[N], values: Sequence[Any], descending: bool) -> list[N]:
    if set(map(type, values)) == {float}:  # side by side in memory they are compared far quicker
        values = array("d", values).tolist()
    # `sorted` asks for the keys in the names' order, one after another, before it moves any;
    # the name that it asks with is what `next` would say at the end, which never comes.
    return sorted(names, key=partial(next, iter(values)), reverse=descending)


def place(orders: Sequence[Order], subject: object) -> tuple[object, ...]:
    """A key for bisecting a list that `in_order` made: compares as the orders say."""
    return tuple(part for order in orders for part in _part(order, subject))


def _part(order: Order, subject: object) -> tuple[object, ...]:
    value = order.value(subject)
    if value is None:
        return (True, 0)
    if isinstance(value, str):
        # UTF-8 sorts as code points do; its complement sorts the other way round.
        folded = value.encode("utf-8", "surrogatepass")
        return (
            False,
            folded.translate(_COMPLEMENT) + b"\xff" if order.descending else folded,
        )
    return (False, -value if order.descending else value)


_COMPLEMENT = bytes(255 - byte for byte in range(256))
