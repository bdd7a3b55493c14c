"""All mistakes of a query are reported at once with their positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.query import Filter, QueryError, unknown_values

RIGHT = ("kind:crawl", "shop", '"a b"', "-status:failed", "https://a.example/", "age:<1h")
WRONG = {
    "stat:failed": "unknown_field",
    "status:runing": "unknown_value",
    "age:1h": "bad_comparison",
    "pages:>many": "bad_comparison",
    "qqqq:1": "unknown_field",
}


def told(query: str) -> list[tuple[str, int]]:
    with pytest.raises(QueryError) as caught:
        Filter.of(query)
    return [(one.code, one.position) for one in caught.value.all]


@given(st.lists(st.sampled_from([*RIGHT, *WRONG]), min_size=1, max_size=7))
def test_every_mistake_is_told_once_and_where_it_stands(words: list[str]) -> None:
    query, wanted = "", []
    for word in words:
        if word in WRONG:
            wanted.append((WRONG[word], len(query)))
        query += f"{word} "
    if wanted:
        assert told(query) == wanted
    else:
        assert Filter.of(query).text


@pytest.mark.parametrize(
    ("query", "mistakes"),
    [
        ("(stat:x OR age:1h", [("unclosed_mark", 0), ("unknown_field", 1), ("bad_comparison", 11)]),
        ("stat:x OR", [("unknown_field", 0), ("missing_part", 9)]),
        ('stat:x "open', [("unknown_field", 0), ("unclosed_mark", 7)]),
        ("host: stat:x", [("missing_part", 5), ("unknown_field", 6)]),
        ("status:", [("missing_part", 7)]),
        ("x " * 3000 + "stat:x", [("query_too_long", 4096)]),
    ],
)
def test_all_mistakes_are_reported_at_once(query: str, mistakes: list[tuple[str, int]]) -> None:
    assert told(query) == mistakes


def test_a_value_that_nothing_has_is_found_where_all_values_are_known() -> None:
    there = {"root": ("here", "nas")}
    found = unknown_values("root:nope -root:NAS (root:here OR root:na*) -root:ns", there)
    assert [(one.position, one.fields["given"]) for one in found] == [(0, "nope"), (45, "ns")]
    assert "Known: here, nas." in str(found[0])
    assert "Try root:nas." in str(found[1])
    assert unknown_values('name:"root:nope" "root:nope"', there) == ()
