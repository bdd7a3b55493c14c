"""Keys that are pressed while the window is still an outline: they are not lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog

from engine.model.config import Settings
from gui.commands.palette import PaletteDialog
from gui.context.preferences import Memory
from gui.engine_link.bridge import Bridge
from gui.start.start_dialog import StartDialog
from gui.startup.crash_handler import CrashHandler
from gui.startup.session import Session
from gui.startup.window_builder import furnish
from gui.window.main_window import MainWindow
from tests.gui.result_ledgers import put_task
from tests.gui.test_result_tabs import settled

CONTROL = Qt.KeyboardModifier.ControlModifier


@asynccontextmanager
async def pressed_early(home: Path, act: Callable[[MainWindow], object]) -> AsyncIterator[Session]:
    """A session whose window was told something while it was an outline, with its list read."""
    settings, memory = Settings.at(home=home), Memory(home.parent / "window.ini")
    window = MainWindow(memory, root=str(settings.root))
    window.show()
    act(window)
    furnish(window, Bridge(settings))
    session = Session(settings, memory, CrashHandler(), window=window)
    session.open()
    try:
        yield session
    finally:
        session.window.remember()
        await session.close()


def dialogs(window: MainWindow, kind: type[QDialog]) -> list[QDialog]:
    return [one for one in window.findChildren(kind) if one.isVisible()]


async def test_an_early_ctrl_n_opens_the_form_once_possible(home: Path) -> None:
    def act(window: MainWindow) -> None:
        for _ in range(3):
            QTest.keyClick(window, Qt.Key.Key_N, CONTROL)

    async with pressed_early(home, act) as session:
        found = await settled(lambda: dialogs(session.window, StartDialog))
        assert len(found) == 1
        found[0].reject()
        assert session.window.pressed_early is None


async def test_ctrl_n_pressed_while_the_ledger_is_opened_is_not_lost_either(home: Path) -> None:
    async with pressed_early(home, lambda _: None) as session:
        window = session.window
        assert not window.acts["new"].isEnabled()
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_N, CONTROL)
        (found,) = await settled(lambda: dialogs(window, StartDialog))
        found.reject()


async def test_the_palette_and_the_filter_are_reached_by_early_keys(home: Path) -> None:
    put_task(home, 1)

    async with pressed_early(
        home, lambda window: QTest.keyClick(window, Qt.Key.Key_K, CONTROL)
    ) as session:
        (palette,) = await settled(lambda: dialogs(session.window, PaletteDialog))
        palette.reject()

    async with pressed_early(
        home, lambda window: QTest.keyClick(window, Qt.Key.Key_F, CONTROL)
    ) as session:
        box = session.window.filter_bar
        await settled(lambda: box.isAncestorOf(QApplication.focusWidget() or session.window))


@pytest.mark.parametrize("key", [Qt.Key.Key_A, Qt.Key.Key_C])
async def test_early_list_keys_are_dropped(home: Path, key: Qt.Key) -> None:
    put_task(home, 1)
    QApplication.clipboard().setText("mine")

    async with pressed_early(home, lambda window: QTest.keyClick(window, key, CONTROL)) as session:
        window = session.window
        await settled(lambda: window.pressed_early is None)
        await settled(lambda: window.model.total == 1)
        assert window.table.selected_ids() == []
        assert QApplication.clipboard().text() == "mine"


async def test_where_nothing_can_be_started_the_key_is_forgotten(home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "tasks").write_text("no folder")

    def act(window: MainWindow) -> None:
        QTest.keyClick(window, Qt.Key.Key_N, CONTROL)

    async with pressed_early(home, act) as session:
        await settled(lambda: session.window.area.state == "trouble")
        await settled(lambda: session.window.pressed_early is None)
        (home / "tasks").unlink()
        session.bridge.rescan()
        await settled(session.window.acts["new"].isEnabled)
        assert not dialogs(session.window, StartDialog)
