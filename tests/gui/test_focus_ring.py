"""The focus ring has enough contrast and surrounds one control only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QComboBox,
    QDialog,
    QFrame,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QTableWidget,
    QTabWidget,
    QToolButton,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from gui.details.screenshots import PictureView
from gui.style.accessibility import RING_NAME, RINGED, show_focus_ring
from gui.style.theme import DISTINCT, MORE_CONTRAST, Theme, apply_theme
from tests.gui.result_ledgers import put_task
from tests.gui.task_views import a_view
from tests.gui.test_contrast import PART
from tests.gui.test_theme import contrast
from tests.gui.windows import opened
from tests.support.engines import until

if TYPE_CHECKING:
    pass


@pytest.fixture(params=list(product((False, True), repeat=3)), ids=str)
def dressed(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[None]:
    dark, high, apart = request.param
    qapp.setProperty(MORE_CONTRAST, high)
    qapp.setProperty(DISTINCT, apart)
    apply_theme(qapp, Theme.DARK if dark else Theme.LIGHT)
    yield
    qapp.setProperty(MORE_CONTRAST, False)
    qapp.setProperty(DISTINCT, False)
    apply_theme(qapp, Theme.LIGHT)


def tabs() -> QTabWidget:
    whole = QTabWidget()
    whole.setDocumentMode(True)  # as all of the window are
    whole.addTab(QWidget(), "One")
    whole.addTab(QWidget(), "Two")
    return whole


def made(qtbot: QtBot) -> tuple[QWidget, list[QWidget]]:
    """A window with the controls that a style marks with a tint at most."""
    window = QWidget()
    qtbot.addWidget(window)
    show_focus_ring()  # any window: the application has one mark for all
    column = QVBoxLayout(window)
    raised = QToolButton()
    raised.setText("Export")
    raised.setAutoRaise(True)
    raised.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    parts = [QPushButton("First"), raised, QCheckBox("Tick"), QRadioButton("Choose"), QComboBox()]
    whole = tabs()
    for one in (*parts, whole):
        column.addWidget(one)
    controls: list[QWidget] = [*parts, whole.tabBar()]
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=60_000)
    controls[0].setFocus()
    return window, controls


def _place(control: QWidget) -> QRect:
    return QRect(control.mapTo(control.window(), QPoint()), control.size())


def rings(window: QWidget) -> list[QWidget]:
    return [one for one in window.findChildren(QWidget, RING_NAME) if not one.isHidden()]


def strongest(before: QImage, after: QImage) -> float:
    points = product(range(before.width()), range(before.height()))
    pairs = ((before.pixelColor(x, y), after.pixelColor(x, y)) for x, y in points)
    return max(contrast(one, other) for one, other in pairs if one != other)


def test_it_can_be_seen_in_every_palette(dressed: None, qtbot: QtBot) -> None:
    window, controls = made(qtbot)
    before = [window.grab(_place(one)).toImage() for one in controls]
    for at, control in enumerate(controls[1:], 1):
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        assert QApplication.focusWidget() is control
        after = window.grab(_place(control)).toImage()
        assert strongest(before[at], after) >= PART, type(control)
        assert [one.parent() for one in rings(window)] == [control]


def _more_contrast() -> bool:
    app = QApplication.instance()
    return app is not None and bool(app.property(MORE_CONTRAST))


def lists() -> list[QAbstractItemView]:
    """One of each: full, empty, without a current row, and of several columns."""
    full, empty, table = QListWidget(), QListWidget(), QTableWidget(2, 2)
    full.addItems(["One", "Two"])
    full.setCurrentRow(0)
    frameless = QTreeWidget()
    frameless.setFrameShape(QFrame.Shape.NoFrame)
    return [full, empty, table, frameless]


def test_it_can_be_seen_on_every_list_also_on_an_empty_one(dressed: None, qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    show_focus_ring()
    column, first, shown = QVBoxLayout(window), QPushButton("First"), lists()
    for one in (first, *shown):
        column.addWidget(one)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=60_000)
    first.setFocus()
    before = [window.grab(_place(one)).toImage() for one in shown]
    for at, view in enumerate(shown):
        view.setTabKeyNavigation(False)
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        assert QApplication.focusWidget() is view
        assert {one.parent() for one in rings(window)} == {view}
        assert strongest(before[at], window.grab(_place(view)).toImage()) >= PART, at
        if view.currentIndex().isValid() and not _more_contrast():
            rows = view.viewport().geometry()
            assert not any(rows.intersects(one.geometry()) for one in rings(window))


def test_the_edges_come_back_when_the_rows_go(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    show_focus_ring()
    column, first, full = QVBoxLayout(window), QPushButton("First"), lists()[0]
    column.addWidget(first)
    column.addWidget(full)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=60_000)
    first.setFocus()
    QTest.keyClick(first, Qt.Key.Key_Tab)
    assert {min(one.width(), one.height()) for one in rings(window)} == {full.frameWidth()}
    assert isinstance(full, QListWidget)
    full.clear()
    assert {min(one.width(), one.height()) for one in rings(window)} == {2}


def test_whoever_clicks_needs_none(qtbot: QtBot) -> None:
    window, controls = made(qtbot)
    controls[1].setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    QTest.mouseClick(controls[1], Qt.MouseButton.LeftButton)
    assert QApplication.focusWidget() is controls[1]
    assert rings(window) == []


def test_it_follows_its_control_and_goes_with_it(qtbot: QtBot) -> None:
    window, controls = made(qtbot)
    QTest.keyClick(controls[0], Qt.Key.Key_Tab)
    (ring,) = rings(window)
    window.resize(600, 500)
    assert ring.size() == controls[1].size()
    controls[1].deleteLater()
    qtbot.waitUntil(lambda: not rings(window), timeout=60_000)
    QTest.keyClick(window, Qt.Key.Key_Tab)
    assert len(rings(window)) == 1


async def test_the_window_and_its_dialogs_have_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        window = session.window
        dialog = QDialog(window)
        column = QVBoxLayout(dialog)
        for words in ("One", "Two"):
            column.addWidget(QPushButton(words, dialog))
        dialog.open()
        dialog.activateWindow()
        await until(dialog.isActiveWindow)
        QTest.keyClick(QApplication.focusWidget() or dialog, Qt.Key.Key_Tab)
        assert len(rings(dialog)) == 1
        dialog.close()


async def test_f6_after_a_click_shows_where_the_focus_is(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.model.put_many([a_view(1, "COMPLETED")])
        window.activateWindow()
        await until(window.isActiveWindow)
        window.table.setFocus()
        # A click ends the keyboard mode of a window.
        window.setAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange, False)
        marked = 0
        for _ in range(4):
            window.acts["next_region"].trigger()
            focus = QApplication.focusWidget()
            assert focus is not None
            if isinstance(focus, (*RINGED, QAbstractItemView)):
                assert rings_of(focus), focus
                marked += 1
        assert marked >= 2


async def test_f6_into_the_overview_shows_where_the_focus_is(home: Path) -> None:
    put_task(home, 1)
    async with opened(home) as session:
        window = session.window
        window.activateWindow()
        await until(window.isActiveWindow)
        window.table.select_ids([f"{1:016x}"])
        overview = window.details.overview
        await until(overview.isVisible)
        window.table.setFocus()
        for _ in range(2):  # the tabs, and what the current one shows
            window.acts["next_region"].trigger()
        focus = QApplication.focusWidget()
        assert focus is not None
        assert focus is overview or overview.isAncestorOf(focus)
        (ring,) = rings_of(focus)
        assert ring.isVisible()
        assert ring.rect() == focus.rect()
        window.resize(window.width() + 60, window.height() + 60)
        await until(lambda: ring.rect() == focus.rect())
        window.acts["next_region"].trigger()
        await until(lambda: rings_of(focus) == [])


def test_a_picture_that_has_the_focus_for_its_arrow_keys_is_marked(qtbot: QtBot) -> None:
    show_focus_ring()
    window, first, picture, text = QWidget(), QPushButton(), PictureView(), QPlainTextEdit()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    for one in (first, picture, text):
        column.addWidget(one)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    first.setFocus()
    QTest.keyClick(first, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is picture
    assert len(rings_of(picture)) == 1
    text.setFocus()
    assert not rings(window), "a text has a cursor"


def rings_of(control: QWidget) -> list[QWidget]:
    return [one for one in control.findChildren(QWidget) if one.objectName() == RING_NAME]
