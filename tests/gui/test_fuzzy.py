"""The matches of the palette and their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gui.style.fuzzy_match import score

WORDS = st.text("abcdefghij", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("typed", "better", "worse"),
    [("re", "Re-run", "Core"), ("run", "Re-run", "Truncate"), ("fold", "Open folder", "Unfolded")],
)
def test_prefix_matches_precede_other_matches(typed: str, better: str, worse: str) -> None:
    first, second = score(typed, better), score(typed, worse)
    assert first is not None
    assert second is None or first > second


@pytest.mark.parametrize("typed", ["the dar", "dark theme", "thdark", "THEME"])
def test_words_are_found_in_any_order_and_letters_may_be_left_out(typed: str) -> None:
    assert score(typed, "Theme: Dark") is not None


@pytest.mark.parametrize("typed", ["zz", "dark x", "krad"])
def test_what_is_not_there_is_not_found(typed: str) -> None:
    assert score(typed, "Theme: Dark") is None


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_a_text_answers_to_each_of_its_words(words: list[str]) -> None:
    text = " ".join(words)
    assert all(score(word, text) is not None for word in words)
    assert score(" ".join(reversed(words)), text) is not None


@given(WORDS, WORDS)
def test_one_more_word_never_finds_more(one: str, other: str) -> None:
    if score(one, other) is None:
        assert score(f"{one} {other}", other) is None


def test_nothing_typed_finds_everything() -> None:
    assert score("  ", "anything") == 0
