"""The card in the middle of an empty place shows all of its words."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QHBoxLayout, QLabel
from pytestqt.qtbot import QtBot

from gui.style.banners import Card, Choice
from tests.gui.windows import app


@pytest.mark.parametrize("sentence", ["Short.", "A reason that goes on for a while. " * 6])
@pytest.mark.parametrize("wide", [500, 1200])
def test_no_line_of_a_card_is_cut_off(qtbot: QtBot, sentence: str, wide: int) -> None:
    card = Card("warning")
    qtbot.addWidget(card)
    card.show_words("The window could not be made", sentence, "/a/path/that/is/long/" * 4)
    card.show_choices((Choice("Quit", lambda: None),))
    card.resize(wide, 900)
    card.show()
    app().processEvents()
    labels = [one for one in card.findChildren(QLabel) if one.isVisible() and one.text()]
    assert len(labels) == 3
    for label in labels:
        assert label.height() >= label.heightForWidth(label.width())
    (picture,) = [one for one in card.findChildren(QLabel) if not one.pixmap().isNull()]
    assert picture.height() >= picture.sizeHint().height()


def test_rows_of_buttons_that_are_replaced_hold_none_of_them(qtbot: QtBot) -> None:
    card = Card("list")
    qtbot.addWidget(card)
    card.show_choices((Choice("One", lambda: None), Choice("Two", lambda: None)))
    rows = [one for one in card.findChildren(QHBoxLayout) if one.count() > 3]
    assert rows
    card.show_choices((Choice("Three", lambda: None),))
    assert [one.count() for one in rows] == [0] * len(rows), "they would outlive their buttons"
