"""A headline is not repeated by the sentence below it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QApplication, QLabel

from engine.model.errors import BrowserGone, BrowserMissing, EngineError, LedgerWriteFailed
from gui.i18n import language
from gui.style.banners import Banner, Card, without_repetition


@pytest.mark.parametrize(
    ("title", "sentence", "shown"),
    [
        ("Not now", "Not now: disk full. Make room.", ("Not now", "Disk full. Make room.")),
        ("Cannot write", "Cannot write: /a/b", ("Cannot write", "/a/b")),
        ("Cannot write", "Cannot write: meta.json is gone", ("Cannot write", "meta.json is gone")),
        ("It stopped", "It stopped while x was loading.", ("", "It stopped while x was loading.")),
        ("No browser", "It failed: no browser (looked).", ("", "It failed: no browser (looked).")),
        ("It stays.", "It stays", ("It stays.", "")),
        ("It stays", "It stays.\nWhy not.", ("It stays", "Why not.")),
        ("No", "Nothing was found.", ("No", "Nothing was found.")),
        ("Gone", "", ("Gone", "")),
    ],
)  # fmt: skip
def test_what_is_left_of_each(title: str, sentence: str, shown: tuple[str, str]) -> None:
    assert without_repetition(title, sentence) == shown


@given(st.text(max_size=20), st.text(max_size=40))
def test_nothing_is_lost_but_the_repetition(title: str, sentence: str) -> None:
    head, below = without_repetition(title, sentence)
    assert head in ("", title)
    assert (head, below) == (title, sentence) or title.strip()
    assert below.casefold() in sentence.casefold() or below == ""
    if not head and title:
        assert below == sentence


ERRORS: tuple[EngineError, ...] = (
    LedgerWriteFailed(reason="disk full", path="/x"),
    BrowserMissing(reason="/a"),
    BrowserGone(url="https://a.example/"),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
@pytest.mark.parametrize("code", ["en", "de"])
def test_titles_appear_once(qapp: QApplication, qtbot: Any, error: EngineError, code: str) -> None:
    language.speak(qapp, code)
    try:
        title, told = language.title(error), language.told(error)
        banner, card = Banner(), Card("warning")
        for widget in (banner, card):
            qtbot.addWidget(widget)
        banner.tell(title, told)
        card.show_words(title, told)
        card.show()
    finally:
        language.speak(qapp, "en")
    for widget in (banner, card):
        said = [one.text() for one in widget.findChildren(QLabel) if not one.isHidden()]
        assert " ".join(said).casefold().count(title.casefold()) == 1
    assert banner.title == title
    assert banner.accessibleName().casefold().count(title.casefold()) == 1
