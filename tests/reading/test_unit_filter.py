"""The search field of a list of units: words, terms with fields, and mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.query import BadComparison, MissingPart, UnclosedMark, UnknownField, UnknownValue
from engine.results.unit_filter import UNIT_FIELDS, UnitFilter
from engine.results.units import unit_of

FACTS = {
    "content_type": "text/html",
    "charset": "utf-8",
    "language": "de-AT",
    "canonical": "http://site.test/a",
    "description": "All about <b>shoes</b>",
    "robots": "noindex, follow",
    "h1": "Big news",
    "h1_count": 2,
    "words": 99,
    "links_internal": 12,
    "links_external": 3,
    "links_nofollow": 1,
    "images": 4,
    "images_without_alt": 0,
    "structured_data": ["Product", "Offer"],
    "content_hash": "00ff00ff00ff00ff",
}
PAGE: dict[str, Any] = {
    "url": "http://site.test/a",
    "status": 200,
    "title": "Notes",
    "depth": 3,
    "bytes": 120_000,
    "transferred_bytes": 30_000,
    "response_ms": 620.0,
    "render_ms": 80.0,
    "links_found": 15,
    "redirects": [{"url": "http://site.test/", "status": 301}],
    "facts": FACTS,
}
BARE: dict[str, Any] = {"url": "http://site.test/b", "error": "net::ERR_TIMED_OUT", "depth": 1}


def passes(text: str, row: dict[str, Any] = PAGE) -> bool:
    found = UnitFilter.of(frozenset(), text)
    assert found.mistake is None, found.mistake
    return found.wants(row)


@pytest.mark.parametrize(
    "text",
    [
        "words:<100",
        "words:99",
        "words:>=99",
        "h1_count:>1",
        "images_without_alt:0",
        "language:de",
        "language:de-at",
        "language:*AT",
        "status:200",
        "status:2xx",
        "status:<400",
        "state:done",
        "depth:>2",
        "redirects:>0",
        "redirects:1",
        "links:15",
        "links_internal:12 links_external:3 links_nofollow:>0",
        "transferred:30000",
        "transferred:<=30kB",
        "size:>100kB",
        "size:<0.2MB",
        "response:>500ms",
        "render:<1s",
        'h1:"big news"',
        "H1:news",
        "description:shoes",
        "description:*",
        "robots:noindex",
        "canonical:site.test",
        "content_type:html",
        "charset:UTF-8",
        "structured_data:offer",
        "content_hash:00ff",
        "images:4",
        "url:/a",
        "title:notes",
        "-status:404",
        "status:404 OR words:<100",
        "(depth:1 OR depth:3) notes",
        'error:""',
        'attempts:""',
    ],
)
def test_a_term_finds_the_pages_with_this_value(text: str) -> None:
    assert passes(text)
    assert not passes(f"-({text})")


@pytest.mark.parametrize(
    "text",
    [
        "words:>=100",
        "words:<99",
        "h1_count:0",
        "language:en",
        "language:d",
        "charset:utf",
        "status:404",
        "status:4xx",
        "redirects:0",
        "size:>1MB",
        'description:""',
        "-description:*",
        "words:<100 status:404",
    ],
)
def test_a_term_hides_the_pages_with_other_values(text: str) -> None:
    assert not passes(text)


def test_what_a_page_does_not_have_is_found_by_its_absence_only() -> None:
    for field in ("description", "h1", "words", "redirects", "transferred", "title", "status"):
        assert passes(f'{field}:""', BARE)
        assert passes(f"-{field}:*", BARE)
        assert not passes(f"{field}:*", BARE)
    for text in ("words:<100", "words:>=0", "h1_count:0", "redirects:0", "size:<1MB"):
        assert not passes(text, BARE), "unknown is no number"


def test_a_count_of_nothing_is_a_number() -> None:
    row = {**PAGE, "redirects": [], "facts": {**FACTS, "h1_count": 0, "words": 0}}
    assert passes("redirects:0 h1_count:0 words:0 words:*", row)
    assert not passes('words:""', row)


def test_words_are_searched_in_the_heading_and_the_description_too() -> None:
    assert passes("NEWS shoes site.test/a 200")
    assert passes('"about <b>shoes</b>"')
    assert not passes('"news all"'), "a phrase is within one of the texts"
    assert not passes("news absent")
    assert not passes("noindex"), "not in every fact"


@pytest.mark.parametrize("word", ["net::ERR_TIMED_OUT", "net::err", "::err", "http://site.test/b"])
def test_an_error_of_chromium_and_an_address_are_words(word: str) -> None:
    assert passes(word, BARE)
    assert not passes(word)


def test_an_address_with_a_port_is_a_word() -> None:
    row = {"url": "http://localhost:8123/p/1"}
    assert passes("localhost:8123/p", row)
    assert not passes("localhost:8124", row)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("wrods:<100", UnknownField),
        ("nosuch:1", UnknownField),
        ("words:many", BadComparison),
        ("words:<", MissingPart),
        ("depth:>2.5", BadComparison),
        ("response:>fast", BadComparison),
        ("response:500ms", BadComparison),
        ("size:>1XB", BadComparison),
        ("description:<a", BadComparison),
        ("status:6xx", BadComparison),
        ("state:gone", UnknownValue),
        ('h1:"open', UnclosedMark),
    ],
)
def test_a_mistake_is_named_and_filters_nothing(text: str, mistake: type[Exception]) -> None:
    found = UnitFilter.of(frozenset(), f"absent {text}")
    assert type(found.mistake) is mistake
    assert found.matches_all
    assert found.wants(PAGE)
    kinds = UnitFilter.of(frozenset({"4xx"}), text, by_answer=True)
    assert not kinds.matches_all
    assert not kinds.wants(PAGE), "the chips filter all the same"


def test_a_mistaken_field_is_told_with_the_one_that_was_meant() -> None:
    mistake = UnitFilter.of(frozenset(), "wrods:<100").mistake
    assert mistake is not None
    assert mistake.fields["near"] == "words"


@pytest.mark.parametrize("name", UNIT_FIELDS)
def test_the_example_of_each_field_is_right(name: str) -> None:
    assert UnitFilter.of(frozenset(), f"{name}:{UNIT_FIELDS[name].example}").mistake is None


PIECES = [*(f"{name}:" for name in UNIT_FIELDS), "nosuch:", "<", ">=", "1", "2xx", "5kB", "-", "("]
PIECES += [")", '"', "*", " ", " OR ", " NOT ", "shoes", "::", "//", "localhost:80"]


@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_nothing_that_is_typed_fails(text: str) -> None:
    found = UnitFilter.of(frozenset(), text)
    assert found.wants(PAGE) in (True, False)
    assert found.wants(BARE) in (True, False)
    if found.mistake is not None:
        assert found.wants(PAGE)


@given(
    st.sampled_from(("words", "h1_count", "images", "links_internal")),
    st.sampled_from(("", "=", "<", "<=", ">", ">=")),
    st.integers(0, 300),
    st.none() | st.integers(0, 300),
)
def test_numbers_are_compared_as_numbers(
    name: str, comparison: str, limit: int, value: int | None
) -> None:
    row = {"url": "u", "facts": {} if value is None else {name: value}}
    rules = {
        "": lambda one: one == limit,
        "=": lambda one: one == limit,
        "<": lambda one: one < limit,
        "<=": lambda one: one <= limit,
        ">": lambda one: one > limit,
        ">=": lambda one: one >= limit,
    }
    wanted = value is not None and rules[comparison](value)
    assert passes(f"{name}:{comparison}{limit}", row) is wanted
    assert passes(f"-{name}:{comparison}{limit}", row) is not wanted


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())


@given(st.dictionaries(st.sampled_from(sorted(FACTS)), anything))
def test_no_fact_of_a_stranger_is_too_odd(facts: dict[str, Any]) -> None:
    unit = unit_of({**PAGE, "facts": facts}, 0)
    for name in UNIT_FIELDS:
        UnitFilter.of(frozenset(), f"{name}:* {name}:{UNIT_FIELDS[name].example}").passes(unit)
    assert (unit.facts is None) is (not facts)


@pytest.mark.parametrize("facts", [None, "none", ["words"], 5, {}])
def test_facts_of_another_form_count_as_none(facts: object) -> None:
    assert unit_of({**PAGE, "facts": facts}, 0).facts is None


def test_equal_texts_of_pages_are_held_once() -> None:
    rows = [json.loads(json.dumps(PAGE)) for _ in range(2)]
    first, second = (unit_of(row, 0).facts for row in rows)
    assert first is not None
    assert second is not None
    for name in ("content_type", "charset", "language", "robots"):
        assert getattr(first, name) is getattr(second, name)


def test_a_long_fact_is_cut_as_other_texts_are() -> None:
    facts = {"description": "x" * 2_000, "robots": "noindex " * 200, "structured_data": ["T" * 999]}
    unit = unit_of({**PAGE, "facts": facts}, 0)
    assert unit.facts is not None
    texts = (unit.facts.description, unit.facts.robots, unit.facts.structured_data)
    assert [len(one) for one in texts] == [300, 300, 300]
