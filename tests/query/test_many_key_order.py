"""The order by several keys equals a comparison key by key, also for equal values."""

import functools
from array import array
from math import inf, nan
from operator import itemgetter
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from engine.query import Order, by_values, in_order, names_in_order

VALUES = st.none() | st.integers(0, 6) | st.integers(0, 10**6)
TABLES = st.integers(0, 3).flatmap(
    lambda width: st.tuples(
        st.lists(st.tuples(*[VALUES] * width), max_size=60),
        st.lists(st.booleans(), min_size=width, max_size=width),
    )
)


def compared(downwards: list[bool], one: tuple, other: tuple) -> int:
    for down, a, b in zip(downwards, one, other, strict=True):
        if a != b:
            if a is None or b is None:
                return 1 if a is None else -1
            return (1 if a > b else -1) * (-1 if down else 1)
    return 0


def orders(downwards: list[bool]) -> list[Order]:
    return [Order(cast(Any, itemgetter(at)), down) for at, down in enumerate(downwards)]


@given(TABLES, st.integers(1, 12))
def test_rows_stand_as_their_keys_say_and_equals_as_they_came(table, times: int) -> None:
    rows, downwards = table
    rows = rows * times  # many alike, too
    wanted = sorted(rows, key=functools.cmp_to_key(functools.partial(compared, downwards)))
    found = in_order(rows, orders(downwards))
    assert list(map(id, found)) == list(map(id, wanted))


@given(TABLES, st.integers(1, 12))
def test_what_cannot_be_hashed_is_put_in_order_as_well(table, times: int) -> None:
    rows, downwards = table
    rows = [list(row) for row in rows * times]
    wanted = sorted(rows, key=functools.cmp_to_key(functools.partial(compared, downwards)))
    assert in_order(rows, orders(downwards)) == wanted


@given(TABLES, st.integers(1, 12))
def test_names_go_where_their_rows_go(table, times: int) -> None:
    rows, downwards = table
    rows = [(*row, at) for at, row in enumerate(rows * times)]
    names = [f"task {row[-1]}" for row in rows]
    found = names_in_order(names, rows, orders(downwards))
    assert found == [f"task {row[-1]}" for row in in_order(rows, orders(downwards))]


NUMBERS = st.none() | st.sampled_from((0.0, -0.0, 1.5, inf, -inf)) | st.floats(allow_nan=False)


@given(st.lists(NUMBERS, max_size=60), st.integers(1, 12), st.booleans())
def test_numbers_side_by_side_say_the_same_order(values, times: int, down: bool) -> None:
    values = values * times
    side_by_side = array("d", [nan if value is None else value for value in values])
    names = range(len(values))
    wanted = by_values(names, values, descending=down)
    assert by_values(names, side_by_side, descending=down) == wanted
