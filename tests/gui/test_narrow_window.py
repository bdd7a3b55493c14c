"""The smallest window in German: no text displaces its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from engine.service.router.ledger_paths import Beside
from gui.commands.ledger_actions import LedgerTrouble
from gui.details.events import Events
from gui.style.banners import Banner, Choice
from gui.window.main_window import MIN_HEIGHT, MIN_WIDTH
from tests.gui.side_ledgers import LAPTOP, a_ledger, side_by_side
from tests.gui.test_result_tabs import settled
from tests.gui.windows import app

LONG = "Die Datei wurde nicht gespeichert, denn " + "dieser Ordner ist kein guter Ort " * 8


def place_in(bar: Banner, button: QWidget) -> QRect:
    return QRect(button.mapTo(bar, button.rect().topLeft()), button.size())


@pytest.mark.usefixtures("german")
async def test_a_lost_ledger_takes_no_room_from_the_sidebar(tmp_path: Path) -> None:
    laptop = Beside(a_ledger(tmp_path / LAPTOP, 1, 3), LAPTOP)
    async with side_by_side(tmp_path, laptop) as session:
        window = session.window
        window.resize(MIN_WIDTH, MIN_HEIGHT)
        trouble = window.findChild(LedgerTrouble)
        assert trouble is not None
        side = window.sidebar
        await settled(lambda: window.width() == MIN_WIDTH and side.width() >= side.content_width)
        await settled(lambda: side.content_width > 0)
        before = window.sidebar.width()
        laptop.path.rename(tmp_path / "away")
        await settled(trouble.bar.isVisible)
        await settled(lambda: trouble.bar.width() > 1 and window.area.height() > 0)
        buttons = [one for one in trouble.bar.findChildren(QPushButton) if one.isVisible()]
        assert len(buttons) == 3
        assert window.sidebar.width() >= before
        assert window.width() == MIN_WIDTH


@pytest.mark.parametrize("letters", [30, 60, 90, 200])
def test_banner_buttons_wrap_below_the_text(qtbot: QtBot, letters: int) -> None:
    bar = Banner()
    qtbot.addWidget(bar)
    choices = tuple(Choice(words, lambda: None) for words in ("Look again", "Take it away"))
    bar.tell("The folder of “laptop” is gone", "The others go on. " * 6, choices)
    character = bar.fontMetrics().averageCharWidth()
    bar.resize(max(bar.minimumSizeHint().width(), letters * character), 300)
    app().processEvents()  # a layout is made anew with the next turn
    buttons = [place_in(bar, one) for one in bar.findChildren(QPushButton)]
    assert all(bar.rect().contains(one) for one in buttons)
    words = place_in(bar, bar._sentence)
    beside = all(one.left() > words.right() for one in buttons)
    below = all(one.top() > words.bottom() for one in buttons)
    assert beside or below
    assert beside == (letters == 200)
    assert words.width() >= 15 * character


@pytest.mark.usefixtures("german")
async def test_event_notes_do_not_widen_the_panel(tmp_path: Path) -> None:
    async with side_by_side(tmp_path) as session:
        window = session.window
        window.resize(MIN_WIDTH, MIN_HEIGHT)
        tab = window.details.findChild(Events)
        assert tab is not None
        before = tab.minimumSizeHint().width()
        tab._saved.show_text(LONG)
        tab._skipped.show_text(LONG)
        tab._skipped.show()
        assert tab.minimumSizeHint().width() == before
        assert "kein guter Ort" in tab._saved.toolTip() or tab._saved.width() > before
        field = tab.finding.field
        assert field.minimumWidth() >= 20 * field.fontMetrics().averageCharWidth()


def test_the_field_to_find_events_has_the_room_that_is_there(qtbot: QtBot) -> None:
    tab = Events()
    qtbot.addWidget(tab)
    tab.resize(200 * tab.fontMetrics().averageCharWidth(), 300)
    tab.show()
    field = tab.finding.field
    most = 40 * field.fontMetrics().averageCharWidth()
    app().processEvents()
    assert field.width() == most
    tab.resize(tab.minimumSizeHint().width(), 300)
    app().processEvents()
    assert 20 * field.fontMetrics().averageCharWidth() <= field.width() < most
