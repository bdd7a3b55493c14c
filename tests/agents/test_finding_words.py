"""Which elements words mean: by rule, and the same each time."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.agents.grammar import goal
from engine.agents.tools import best_matches, rank


def one(role: str, name: str = "", **more: Any) -> dict[str, Any]:
    return {"role": role, "name": name, "above": -1, **more}


def best(query: str, *elements: dict[str, Any]) -> list[int]:
    return [match.at for match in rank(query, elements)]


def test_the_whole_name_comes_before_a_part_of_one() -> None:
    assert best("save", one("button", "Save all"), one("button", "Save")) == [1, 0]


def test_more_of_the_words_come_before_better_places_of_fewer() -> None:
    page = (one("heading", "Save"), one("button", "Store", text="save now"))
    assert best("save now", *page) == [1, 0]


def test_a_name_tells_more_than_a_text_and_a_text_more_than_an_id() -> None:
    page = (one("text", hint="price"), one("text", text="the price"), one("cell", "price"))
    assert best("price", *page) == [2, 1, 0]


def test_a_role_is_found_by_what_people_call_it() -> None:
    assert best("dropdown", one("button", "Go"), one("combobox", "Colour")) == [1]


def test_an_element_that_passes_on_the_name_of_another_is_left_out() -> None:
    page = (
        one("listitem", "Item 19"),
        one("link", "Item 19", above=0),
        one("listitem", "Item 190 of 200"),
        one("link", "Item 190", above=2),
    )
    assert best("item", *page) == [1, 2, 3]


def test_what_can_be_used_around_text_of_the_same_name_is_kept() -> None:
    page = (
        one("link", "First result"),
        one("heading", "First result", above=0),
        one("button", "First result"),
        one("image", "First result", above=2),
    )
    assert best("first result", *page) == [0, 1, 2, 3]


def test_what_has_more_of_the_words_is_kept_around_what_has_fewer() -> None:
    page = (one("heading", "First result"), one("link", "First result", above=0))
    assert best("heading first result", *page) == [0, 1]
    assert best("first result", *page) == [1]


def test_equal_ones_keep_the_order_of_the_page() -> None:
    assert best("go", *(one("link", "Go") for _ in range(4))) == [0, 1, 2, 3]


def test_words_that_say_nothing_find_nothing_by_themselves_beside_others() -> None:
    assert best("the price of it", one("text", text="the end of all"), one("cell", "price")) == [1]


def test_other_letters_and_cases_are_words_too() -> None:
    assert best("STRASSE", one("link", "Straße")) == [0]
    assert best("価格", one("link", "価格 表")) == [0]


def meant(said: str, action: str, *elements: dict[str, Any]) -> list[int]:
    return best_matches(goal(said), action, elements)


def test_the_exact_name_wins_over_names_that_hold_it() -> None:
    assert meant("Save", "click", one("button", "Save as"), one("button", "save")) == [1]


def test_an_element_may_be_called_like_its_role() -> None:
    page = (one("button", "Save"), one("link", "Save button"))
    assert meant("Save button", "click", *page) == [1]
    assert meant("Save button", "click", page[0]) == [0]


def test_what_can_be_used_comes_before_plain_text_of_the_same_name() -> None:
    assert meant("Save", "click", one("heading", "Save"), one("button", "Save")) == [1]


def test_of_two_of_which_one_stands_in_the_other_the_inner_one_is_meant() -> None:
    page = (one("listitem", "Save"), one("paragraph", "Save", above=0))
    assert meant("Save", "click", *page) == [1]


def test_two_of_one_name_are_both_named() -> None:
    assert meant("Save", "click", one("button", "Save"), one("button", "Save")) == [0, 1]


def test_text_goes_only_into_what_takes_text() -> None:
    assert meant("Name", "type", one("button", "Name"), one("textbox", "Name")) == [1]
    assert meant("Name", "type", one("button", "Name")) == []


def test_a_role_alone_is_enough_where_there_is_one_of_it() -> None:
    assert meant("the checkbox", "check", one("checkbox", "I agree"), one("button", "Go")) == [0]


ELEMENTS = st.lists(
    st.builds(
        one,
        st.sampled_from(["button", "link", "textbox", "text", "heading", "clickable"]),
        st.text(alphabet="ab cd", max_size=8),
        text=st.text(alphabet="ab cd", max_size=8),
    ),
    max_size=8,
)


@given(ELEMENTS, st.text(alphabet="ab cd", max_size=6))
def test_find_is_deterministic(elements: list[dict[str, Any]], query: str) -> None:
    found = rank(query, elements)
    assert found == rank(query, [dict(element) for element in elements])
    assert [m.at for m in found] == list(dict.fromkeys(m.at for m in found))
    ordered = sorted(found, key=lambda match: (-match.words, -match.score, match.at))
    assert found == ordered
