"""Rows of a recording read as what the operator did, whoever wrote the record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.results.action_words import action_words
from engine.results.units import unit_of

URL = "http://shop.test/order"
BUTTON = {"role": "button", "name": "Send the order", "selector": "#send"}


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"type": "click", **BUTTON}, "Click button “Send the order”"),
        ({"type": "click", **BUTTON, "count": 2}, "Double-click button “Send the order”"),
        (
            {"type": "click", **BUTTON, "button": "right"},
            "Click button “Send the order” with the right button",
        ),
        ({"type": "click", "selector": "#send"}, "Click #send"),
        (
            {"type": "type", "role": "textbox", "name": "E-mail: *", "text": "{{email}}"},
            "Type {{email}} into textbox “E-mail”",
        ),
        ({"type": "type", "role": "textbox", "name": "E-mail"}, "Empty textbox “E-mail”"),
        ({"type": "select", "name": "Size", "values": ["M"]}, "Select M in element “Size”"),
        ({"type": "check", "name": "Terms", "on": True}, "Check element “Terms”"),
        ({"type": "check", "name": "Terms"}, "Uncheck element “Terms”"),
        ({"type": "key", "key": "Enter", "selector": "#q", "tag": "input"}, "Press Enter in #q"),
        ({"type": "key", "key": "F5"}, "Press F5"),
        ({"type": "navigate", "asked": URL}, f"Go to {URL}"),
        ({"type": "navigate", "how": "back"}, "Back"),
        ({"type": "navigated"}, f"The page changed to {URL}"),
        ({"type": "scroll", "dy": -300}, "Scroll up by 300 pixels"),
        ({"type": "upload", "name": "CV", "files": ["a.pdf"]}, "Upload a.pdf into element “CV”"),
        ({"type": "dialog", "answer": "accepted", "name": "Sure?"}, "Accept the dialog “Sure?”"),
        ({"type": "close_tab", "tab": 1}, "Close tab 2"),
    ],
)
def test_an_action_is_told_in_words(action: dict[str, Any], words: str) -> None:
    row = {"n": 1, "ts": 1, "url": URL, **action}
    assert action_words(row) == words
    unit = unit_of(row, 0)
    assert (unit.name, unit.title, unit.address) == (words, URL, unit.address)
    assert unit.address == URL


def test_pages_commands_and_unknown_types_keep_their_own_names() -> None:
    assert unit_of({"url": URL, "title": "Order"}, 0).name == URL
    assert (
        unit_of({"tool_name": "x", "intention": "To click", "type": "click"}, 0).name == "To click"
    )
    assert unit_of({"n": 1, "type": "shrug", "url": URL}, 0).name == URL


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
FIELDS = (
    *("role", "name", "selector", "text", "values", "files", "count", "button", "dy", "dx", "how"),
    *("key", "on", "answer", "dialog", "tab", "url", "asked", "tag"),
)
TYPES = ("click", "type", "select", "key", "scroll", "upload", "dialog", "navigate", "close_tab")


@given(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(FIELDS), JSON))
@example("navigate", {"how": []})
def test_no_record_breaks_the_words(kind: str, fields: dict[str, Any]) -> None:
    assert action_words({"n": 1, **fields, "type": kind})
