from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.query import FIELDS, Filter, QueryError, as_words, completion, corrected, term
from engine.query.fields import OFFERED

KNOWN = {
    "host": ["shop.example.com", "docs.example.org"],
    "kind": ["crawl", "my kind"],
    "client": ["claude-code", "two words"],
}


def offered(text: str, *, offer_all: bool = False) -> list[str]:
    return [offer.text for offer in completion(text, len(text), KNOWN, offer_all=offer_all).offers]


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("sta", ["status:"]),
        ("er", ["error:"]),
        ("fail", ["failed:", "status:failed"]),
        ("status:fa", ["status:failed"]),
        ("-status:fa", ["status:failed"]),
        ("(host:doc", ["host:docs.example.org"]),
        ("host:EXAMPLE", ["host:docs.example.org", "host:shop.example.com"]),
        ("kind:my", ['kind:"my kind"']),
        ("kind:evi", ["kind:evidence"]),
        ("kind:cr", ["kind:crawl"]),
        ("owner:", ["owner:ours", "owner:foreign", "owner:gone"]),
        ("cli", ["client:"]),
        ("client:", ["client:claude-code", 'client:"two words"']),
        ("client:code", ["client:claude-code"]),
        ("rou", ["route:"]),
        ("-route:", ["route:mcp", "route:cli", "route:http"]),
        ("budget:exceeded", []),
        ('name:"open sta', []),
        ("nothing", []),
        ("nosuch:", []),
        ("", []),
    ],
)
def test_what_may_follow_is_offered(text: str, offers: list[str]) -> None:
    assert offered(text) == offers


def test_every_field_is_offered_to_who_asks_with_nothing_begun() -> None:
    assert set(offered("shop ", offer_all=True)) <= {f"{name}:" for name in FIELDS}
    assert offered("", offer_all=True)[:2] == ["status:", "kind:"]


def test_an_offer_takes_the_place_of_what_was_begun_and_leads_on() -> None:
    text = "shop sta timeout"
    found = completion(text, len("shop sta"), KNOWN)
    assert found.put(text, found.offers[0]) == ("shop status: timeout", len("shop status:"))
    text = "status:fa"
    found = completion(text, len(text), KNOWN)
    assert found.put(text, found.offers[0]) == ("status:failed ", len("status:failed "))


@given(st.text("ab:-() \"'stuhoe", max_size=20), st.integers(0, 20))
def test_what_is_offered_stands_where_it_was_begun(text: str, at: int) -> None:
    cursor = min(at, len(text))
    found = completion(text, cursor, KNOWN)
    assert 0 <= found.start <= cursor <= found.end <= len(text)
    for offer in found.offers:
        taken, where = found.put(text, offer)
        assert taken.startswith(text[: found.start] + offer.text)
        assert where <= len(taken)


def test_every_offered_value_is_understood() -> None:
    for name, field in FIELDS.items():
        for value in field.values:
            Filter.of(f"{name}:{value}")
    assert len(set(OFFERED)) == len(OFFERED)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("kind:crawl stat:failed shop", "kind:crawl status:failed shop"),
        ("status:fialed shop", "status:failed shop"),
        ("(a OR b", "(a OR b)"),
        ("a) b", "a b"),
        ('name:"two words', 'name:"two words"'),
        ("age:soon", ""),
        ("status:", ""),
        ("quux:1", ""),
    ],
)
def test_a_mistake_is_mended_where_one_can_tell_what_was_meant(text: str, right: str) -> None:
    with pytest.raises(QueryError) as caught:
        Filter.of(text)
    assert corrected(text, caught.value) == right
    if right:
        Filter.of(right)


@given(st.text(max_size=40))
def test_any_text_can_be_looked_for_as_it_stands(text: str) -> None:
    assert Filter.of(as_words(text)).words == (text.strip().casefold(),)


@given(st.sampled_from(["kind", "host", "name", "client"]), st.text(min_size=1, max_size=30))
def test_a_value_reads_back_as_itself_whatever_it_is(key: str, value: str) -> None:
    assert Filter.of(term(key, value)).parts == (Filter.of(term(key, value)).text,)
    again = Filter.of(Filter.of(term(key, value)).text)
    assert again.text == Filter.of(term(key, value)).text


@given(st.lists(st.sampled_from(["a", "ab", "-b", "status:failed", "kind:crawl"]), max_size=4))
def test_more_conditions_narrow_and_fewer_do_not(parts: list[str]) -> None:
    wider = Filter.of(" ".join(parts))
    assert Filter.of(" ".join([*parts, "host:x"])).narrows(wider)
    assert not wider.narrows(Filter.of(" ".join([*parts, "host:x"])))


def test_a_longer_word_narrows_and_a_forbidden_one_is_no_word() -> None:
    assert Filter.of("shops").narrows(Filter.of("shop"))
    assert not Filter.of("shop").narrows(Filter.of("shops"))
    assert not Filter.of('"-b"').narrows(Filter.of("-b"))
    assert not Filter.of("a").narrows(Filter.of("a OR b"))
