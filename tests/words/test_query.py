from __future__ import annotations

import itertools
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from engine.model.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Unreadable
from engine.query import Order, haystack, in_order, keep, match, place, terms
from engine.text import words


@dataclass(frozen=True)
class Thing:
    haystack: str = ""
    number: float | None = None
    text: str = ""


THINGS = st.lists(
    st.builds(
        Thing,
        number=st.none() | st.integers(-5, 5) | st.floats(-5, 5),
        text=st.text("ab\u00e9\u7d00z", max_size=4),
    ),
    max_size=30,
)
KEYS = st.tuples(st.sampled_from(["number", "text"]), st.booleans())


def order_of(key: str, descending: bool) -> Order:
    return Order(lambda thing: getattr(thing, key), descending)


def test_every_word_must_occur_and_case_does_not_count() -> None:
    things = [Thing("crawl example.com timeout"), Thing("crawl example.org")]
    assert keep(things, "CRAWL timeout") == things[:1]
    assert keep(things, "") == things


def test_words_in_quotes_belong_together() -> None:
    assert terms('a "two words" "open') == ("a", "two words", "open")


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    test = match(text)
    assert test is None or test(Thing(" ".join(terms(text))))


def test_the_text_searched_holds_id_address_name_and_error() -> None:
    record = TaskRecord(
        task_id="00000000000000aa",
        kind="crawl",
        status="FAILED",
        args_summary={"url": "https://Example.com/"},
        error=ErrorInfo("Disk Full", "no_space"),
        engine=EngineFields(name="Nightly"),
    )
    text = haystack(TaskView(record))
    for part in (
        "00000000000000aa",
        "crawl",
        "failed",
        "example.com",
        "disk full",
        "no_space",
        "nightly",
    ):
        assert part in text
    assert "not json" in haystack(TaskView(Unreadable("00000000000000bb", "Not JSON", "")))


@given(THINGS, st.lists(KEYS, min_size=1, max_size=3))
def test_missing_values_sort_last(things: list[Thing], keys: list[tuple[str, bool]]) -> None:
    orders = [order_of(*key) for key in keys]
    ordered = in_order(things, orders)
    places = [place(orders, thing) for thing in ordered]
    assert places == sorted(places)
    assert sorted(map(id, ordered)) == sorted(map(id, things))


@given(THINGS, KEYS)
def test_ties_stay_as_they_came(things: list[Thing], key: tuple[str, bool]) -> None:
    ordered = in_order(things, [order_of(*key)])
    came = {id(thing): number for number, thing in enumerate(things)}
    for before, after in itertools.pairwise(ordered):
        if getattr(before, key[0]) == getattr(after, key[0]):
            assert came[id(before)] < came[id(after)]


def test_words_find_a_task_by_what_the_list_calls_it() -> None:
    for said in ({"label": "Order two lamps"}, {"objective": "Two lamps"}):
        record = TaskRecord(task_id="00000000000000aa", kind="recording", args_summary=said)
        found = TaskView(record)
        assert "two lamps" in haystack(found)
        assert words.task_name(found).casefold() in haystack(found)
