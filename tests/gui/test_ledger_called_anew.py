"""Renaming a ledger: a refused name can be corrected in place."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from engine.service.router.ledger_paths import Beside
from gui.commands.ledger_actions import LedgerCard
from gui.filters.views_menu import SaveView
from gui.settings.settings_dialog import SettingsDialog
from tests.gui.side_ledgers import LAPTOP, a_ledger, side_by_side
from tests.gui.test_ledger_dialogs import choose, enabled, page_of, rows_of
from tests.gui.windows import appearing, press, until


def test_enter_on_a_label_that_cannot_be_leaves_the_keys_where_they_were(qtbot: QtBot) -> None:
    card = LedgerCard(Beside(Path("/x"), "fine", watch_only=True), {"ci"})
    qtbot.addWidget(card)
    card.ask_to_change()
    show_with_keys_in(card.label, qtbot)
    type_over(card.label, "Bau Server")
    QTest.keyClick(card.label, Qt.Key.Key_Return)
    assert card.isVisible()
    assert QApplication.focusWidget() is card.label
    type_over(card.label, "bau-server")
    QTest.keyClick(card.label, Qt.Key.Key_Return)
    assert not card.isVisible()
    assert card.chosen == Beside(Path("/x"), "bau-server", watch_only=True)


def test_enter_without_a_name_for_a_view_leaves_the_keys_where_they_were(qtbot: QtBot) -> None:
    saved: list[str] = []
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = SaveView((), lambda name, _: saved.append(name), parent)
    show_with_keys_in(dialog.name, qtbot)
    QTest.keyClick(dialog.name, Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert QApplication.focusWidget() is dialog.name
    type_over(dialog.name, "mine")
    QTest.keyClick(dialog.name, Qt.Key.Key_Return)
    assert saved == ["mine"]


async def test_a_ledger_that_is_called_otherwise_stays_the_chosen_one(tmp_path: Path) -> None:
    laptop = Beside(a_ledger(tmp_path / LAPTOP, 1, 3), LAPTOP)
    async with side_by_side(tmp_path, laptop) as session:
        part = await page_of(session)
        choose(part, 1)
        with appearing(LedgerCard) as shown:
            press(part, "Change…")
            card = await shown
        type_over(card.label, "office")
        QTest.keyClick(card.label, Qt.Key.Key_Return)
        await until(lambda: rows_of(part)[1][0] == "office", session.bridge.batch)
        assert part.list.currentItem() is part.list.topLevelItem(1)
        assert {"Change…", "Test", "Remove"} <= enabled(part)
        dialog = part.window()
        assert isinstance(dialog, SettingsDialog)
        QTest.keyClicks(dialog.findChildren(QLineEdit)[0], "label")
        assert part.isVisible()
        dialog.accept()


def show_with_keys_in(field: QLineEdit, qtbot: QtBot) -> None:
    field.window().show()
    field.window().activateWindow()  # what has not the keys cannot lose them
    qtbot.waitUntil(lambda: QApplication.focusWidget() is field, timeout=60_000)


def type_over(field: QLineEdit, text: str) -> None:
    field.selectAll()
    QTest.keyClicks(field, text)
