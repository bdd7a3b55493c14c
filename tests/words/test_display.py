from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.display import clipboard_cell, display, display_lines, elide_middle, elide_right

ANY_TEXT = st.text(st.characters())  # surrogates included


@pytest.mark.case("R36", "R85")
@given(ANY_TEXT)
def test_what_is_displayed_is_one_line_that_every_encoder_takes(text: str) -> None:
    shown = display(text)
    shown.encode("utf-8")
    assert len(shown.splitlines()) <= 1
    assert not any(
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown
    )


@given(ANY_TEXT)
def test_displaying_twice_changes_nothing_more(text: str) -> None:
    assert display(display(text)) == display(text)


def test_a_direction_override_cannot_dress_up_a_file_name() -> None:
    assert display("invoice\u202egpj.exe") == "invoice\ufffdgpj.exe"


def test_line_breaks_of_every_sort_become_one_space() -> None:
    assert display("a\r\n\tb\u2028c\u2029d\x85e") == "a b c d e"


def test_letters_that_need_joiners_keep_them() -> None:
    family = "👨\u200d👩\u200d👧"
    assert display(family) == family


def test_half_a_pair_is_shown_as_the_replacement() -> None:
    assert display("\ud83d") == "\ufffd"


@given(ANY_TEXT)
def test_a_block_keeps_its_lines_and_nothing_unsafe(text: str) -> None:
    shown = display_lines(text)
    shown.encode("utf-8")
    assert set(shown) & {"\x1b", "\r", "\u2028", "\u202e", "\x00"} == set()


@given(st.text(), st.integers(1, 40))
def test_nothing_elided_is_longer_than_allowed(text: str, limit: int) -> None:
    assert len(elide_right(text, limit)) <= limit
    assert len(elide_middle(text, limit)) <= limit


def test_a_path_keeps_both_its_ends() -> None:
    assert (
        elide_middle("https://example.com/a/very/long/path/index.html", 21)
        == "https://ex…index.html"
    )


@pytest.mark.case("R84")
@given(st.sampled_from(["=", "+", "-", "@", "\t=", "\r=", " =", "\n@"]), st.text())
def test_a_spreadsheet_never_calculates_what_a_page_said(start: str, rest: str) -> None:
    cell = clipboard_cell(start + rest)
    assert cell.startswith("'")
    assert "\t" not in cell
    assert "\n" not in cell
