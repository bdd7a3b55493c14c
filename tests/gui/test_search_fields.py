"""Esc clears and then leaves a search field, and Ctrl+E works in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QLineEdit, QListWidget, QTreeWidget, QWidget

from gui.details.result_window import ResultWindow
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.test_audit_tab import audit_of
from tests.gui.test_palette import field, opened_palette
from tests.gui.test_result_tabs import settled
from tests.gui.test_result_viewer import viewer_of
from tests.gui.windows import opened
from tests.support.screens import screen_of_its_own

KEY = Qt.Key


def begin_to_search(viewer: ResultWindow) -> None:
    QTest.keySequence(viewer, QKeySequence(QKeySequence.StandardKey.Find))


def pages(viewer: ResultWindow) -> tuple[QWidget, QWidget]:
    return viewer.pages, viewer.pages.table


def json_file(viewer: ResultWindow) -> tuple[QWidget, QWidget]:
    return viewer.json, viewer.json.view.tree


def log(viewer: ResultWindow) -> tuple[QWidget, QWidget]:
    return viewer.log, viewer.log.events.table


@pytest.mark.parametrize("place", [pages, json_file, log])
async def test_esc_in_a_search_of_the_result_clears_it_then_leaves_it_then_closes(
    home: Path, place: Callable[[ResultWindow], tuple[QWidget, QWidget]]
) -> None:
    put_pages(put_task(home, 1), page(0))
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        tab, table = place(viewer)
        viewer.show_tab(tab)
        begin_to_search(viewer)
        box = viewer.focusWidget()
        assert isinstance(box, QLineEdit)
        QTest.keyClicks(box, "word")
        QTest.keyClick(box, KEY.Key_Escape)
        assert (box.text(), viewer.isVisible(), box.hasFocus()) == ("", True, True)
        QTest.keyClick(box, KEY.Key_Escape)
        assert (viewer.isVisible(), table.hasFocus()) == (True, True)
        QTest.keyClick(table, KEY.Key_Escape)
        assert not viewer.isVisible()


async def test_esc_in_the_search_of_a_report_returns_to_its_rows(home: Path) -> None:
    put_pages(put_task(home, 1), page(0, links=[{"href": page(1)["url"], "text": "x"}]), page(1))
    async with opened(home) as session:
        viewer, tab = await audit_of(session)
        begin_to_search(viewer)
        QTest.keyClick(tab.search, KEY.Key_Escape)
        assert viewer.isVisible()
        assert tab.table is not None
        assert tab.table.hasFocus()


@pytest.mark.parametrize(
    ("action", "kind"), [("settings", QListWidget), ("shortcuts", QTreeWidget)], ids=str
)
async def test_esc_in_the_search_of_a_dialog_clears_it_then_leaves_it_then_closes(
    home: Path, action: str, kind: type[QWidget]
) -> None:
    async with opened(home) as session:
        session.window.acts[action].trigger()
        (dialog,) = await settled(lambda: session.window.findChildren(QDialog))
        box = dialog.focusWidget()
        QTest.keyClicks(box, "e")
        QTest.keyClick(box, KEY.Key_Escape)
        assert (box.text(), dialog.isVisible()) == ("", True)
        QTest.keyClick(box, KEY.Key_Escape)
        assert dialog.isVisible()
        assert isinstance(dialog.focusWidget(), kind)
        QTest.keyClick(dialog.focusWidget(), KEY.Key_Escape)
        assert not dialog.isVisible()


async def test_esc_closes_the_palette_whatever_is_typed(home: Path) -> None:
    async with opened(home) as session:
        dialog = opened_palette(session)
        QTest.keyClicks(field(dialog), "e")
        QTest.keyClick(field(dialog), KEY.Key_Escape)
        assert not dialog.isVisible()


# Only on X11 do Qt's line edits know the keys of Emacs: Ctrl+E is the end of the line there.
ON_X11 = """
from PySide6.QtCore import Qt
from PySide6.QtGui import QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from gui.details.events import _Field
from gui.filters.filter_bar import FilterBox
from gui.style.search_field import search_field

app = QApplication([])
window = QWidget()
heard = []
for keys in ("Ctrl+E", "Ctrl+A", "Ctrl+Z"):
    QShortcut(keys, window, lambda keys=keys: heard.append(keys))
lines = search_field(window, "Search"), FilterBox(window), _Field(window)
column = QVBoxLayout(window)
for line in lines:
    column.addWidget(line)
window.show()
window.activateWindow()
assert QTest.qWaitForWindowActive(window)
control = Qt.KeyboardModifier.ControlModifier
for line in lines:
    heard.clear()
    line.setFocus()
    QTest.keyClicks(line, "word")
    QTest.keyClick(line, Qt.Key.Key_E, control)
    QTest.keyClick(line, Qt.Key.Key_A, control)
    marked = line.selectedText()
    QTest.keyClick(line, Qt.Key.Key_Z, control)
    print(heard, marked, repr(line.text()))
"""


def test_on_x11_search_fields_leave_the_export_to_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with screen_of_its_own(monkeypatch):
        monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
        command = [sys.executable, "-c", ON_X11]
        told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert told.stdout.splitlines() == ["['Ctrl+E'] word ''"] * 3, told.stderr
