"""Menus and the overflow of the toolbar can be seen in every theme."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QMenu, QToolButton
from pytestqt.qtbot import QtBot

from gui.style.menu import Menu
from gui.style.theme import MORE_CONTRAST, Theme, apply_theme
from tests.gui.test_contrast import PART
from tests.gui.test_result_tabs import settled
from tests.gui.test_theme import contrast
from tests.gui.windows import opened

LINE = 1.5  # between two groups of entries, which also have more room between them


@pytest.fixture(params=list(product((Theme.LIGHT, Theme.DARK), (False, True))), ids=str)
def dressed(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[None]:
    theme, high = request.param
    qapp.setProperty(MORE_CONTRAST, high)
    apply_theme(qapp, theme)
    yield
    qapp.setProperty(MORE_CONTRAST, False)
    apply_theme(qapp, Theme.LIGHT)


@pytest.mark.usefixtures("dressed")
def test_a_menu_has_an_outline_and_lines_that_can_be_seen(qtbot: QtBot) -> None:
    menu = Menu()
    qtbot.addWidget(menu)
    menu.addAction("One")
    line = menu.addSeparator()
    menu.addAction("Two")
    picture, place = menu.grab().toImage(), menu.actionGeometry(line)
    ground = picture.pixelColor(place.center().x(), place.bottom())
    assert contrast(picture.pixelColor(0, menu.height() // 2), ground) > PART - 0.2
    drawn = picture.pixelColor(place.center().x(), place.top())
    assert contrast(drawn, ground) > LINE


async def test_every_menu_of_the_window_has_such_lines(home: Path) -> None:
    async with opened(home) as session:
        menus = session.window.menuBar().findChildren(QMenu)
        menus += list(session.window.acts.menus.values())
        menus = [one for one in menus if one.title()]  # one without is Qt's own, of a narrow bar
        plain = [one.title() for one in menus if not isinstance(one, Menu)]
        assert plain == []


def best_contrast(button: QToolButton, palette: QPalette) -> float:
    """The best contrast of a pixel of the icon to the window."""
    picture = button.icon().pixmap(QSize(16, 16)).toImage()
    ground = palette.color(QPalette.ColorRole.Window)
    points = product(range(picture.width()), range(picture.height()))
    inks = (picture.pixelColor(x, y) for x, y in points)
    return max(contrast(ink, ground) for ink in inks if ink.alpha() > 200)


async def test_the_overflow_of_the_toolbar_can_be_seen_in_the_dark_theme(
    home: Path, qapp: QApplication
) -> None:
    async with opened(home) as session:
        window = session.window
        (button,) = window.tools.findChildren(QToolButton, "qt_toolbar_ext_button")
        try:
            apply_theme(qapp, Theme.DARK)
            await settled(lambda: best_contrast(button, qapp.palette()) > PART)
        finally:
            apply_theme(qapp, Theme.LIGHT)
