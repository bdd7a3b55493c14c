"""Labels beside buttons give way: no text makes the smallest window larger or its parts smaller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QTabWidget, QWidget

from engine.text import messages
from gui.i18n.language import PSEUDO, speak
from gui.style.widgets import ElidedLabel
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.task_views import task_id
from tests.gui.windows import app, opened

LONG = "a text that is much longer than the room that is left for it beside a button"


@pytest.fixture(params=["de", PSEUDO])
def voice(request: pytest.FixtureRequest, qapp: object) -> Iterator[str]:
    before = QLocale()
    speak(app(), request.param)
    yield request.param
    speak(app(), "en")
    messages.use({})
    QLocale.setDefault(before)


def beside_a_button(qtbot: Any, width: int) -> tuple[QWidget, ElidedLabel]:
    whole = QWidget()
    qtbot.addWidget(whole)
    row = QHBoxLayout(whole)
    label = ElidedLabel("muted", whole)
    row.addWidget(label, 1)
    row.addWidget(QPushButton("Copy", whole))
    label.show_text(LONG)
    whole.resize(width, 40)
    whole.show()
    return whole, label


def inked(label: ElidedLabel) -> int:
    """The last column of its picture in which something is drawn."""
    image = label.grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)
    empty = image.pixel(image.width() - 1, 0)
    columns = range(image.width() - 1, -1, -1)
    rows = range(image.height())
    return next(x for x in columns if any(image.pixel(x, y) != empty for y in rows))


def test_it_shows_what_there_is_room_for_and_says_all_of_it(qtbot: Any) -> None:
    _whole, label = beside_a_button(qtbot, 260)
    assert label.minimumSizeHint().width() == 0
    assert label.text() == LONG
    assert LONG in label.toolTip()
    assert 0 < inked(label) < label.width()


def test_where_there_is_room_nothing_is_left_out(qtbot: Any) -> None:
    _whole, label = beside_a_button(qtbot, 1000)
    assert label.toolTip() == ""
    assert inked(label) > label.fontMetrics().horizontalAdvance(LONG) - 20
    label.show_text("short")
    assert inked(label) < 100


async def test_no_tab_of_the_details_pushes_the_sidebar_aside(voice: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    error = {"code": "E1", "message": "the server did not answer " * 8}
    folder = put_task(home, 1, status="FAILED", error=error)
    put_pages(folder, *(page(at, error="name not found") for at in range(20)), result=False)
    (put_task(home, 2) / "meta.json").write_text('{"task_id": "2", "kind": ')
    async with opened(home) as session:
        window = session.window
        window.resize(900, 560)
        before = window.sidebar.width()
        (tabs, *_) = window.details.findChildren(QTabWidget)
        for number in (1, 2):
            window.table.select_ids([task_id(number)])
            for at in filter(tabs.isTabVisible, range(tabs.count())):
                tabs.setCurrentIndex(at)
                await asyncio.sleep(0.05)
                assert (window.width(), window.sidebar.width()) == (900, before), tabs.tabText(at)
