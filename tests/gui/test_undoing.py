"""Ctrl+Z undoes what the bars offer, and leaves text fields alone."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPushButton, QTreeWidget

from gui.commands.deleting import Deleting
from gui.settings.shortcuts import ShortcutSheet
from gui.startup.session import Session
from tests.gui.result_ledgers import put_task
from tests.gui.windows import FAR_MS, opened, patient, until

CTRL = Qt.KeyboardModifier.ControlModifier


def let_go(session: Session, *numbers: int) -> None:
    session.window.table.select_ids([f"{number:016x}" for number in numbers])
    session.window.acts["delete"].trigger()


async def test_ctrl_z_brings_back_what_went_to_the_trash(home: Path) -> None:
    for number in (1, 2, 3):
        put_task(home, number)
    async with opened(home) as session:
        patient(session)
        window, act = session.window, session.window.acts["undo"]
        window.show()
        assert (act.isEnabled(), act.text()) == (False, "&Undo")
        let_go(session, 1)
        assert (act.isEnabled(), act.text()) == (True, "&Undo moving 1 task to the trash")
        let_go(session, 2)
        assert act.text() == "&Undo moving 2 tasks to the trash"
        window.table.setFocus()
        QTest.keyClick(window.table, Qt.Key.Key_Z, CTRL)
        assert window.model.total == 3
        assert (act.isEnabled(), act.text()) == (False, "&Undo")


async def test_a_field_keeps_ctrl_z_for_what_was_typed_in_it(home: Path) -> None:
    put_task(home, 1)
    async with opened(home) as session:
        patient(session)
        window = session.window
        window.show()
        let_go(session, 1)
        (field,) = window.filter_bar.findChildren(QLineEdit)
        field.setFocus()
        QTest.keyClicks(field, "abc")
        QTest.keyClick(field, Qt.Key.Key_Z, CTRL)
        assert field.text() != "abc"
        assert window.model.total == 0
        assert window.acts["undo"].isEnabled()
        session.window.findChildren(Deleting)[0].undo()


async def test_when_the_bar_is_closed_there_is_nothing_to_undo(home: Path) -> None:
    put_task(home, 1)
    async with opened(home) as session:
        patient(session)
        let_go(session, 1)
        session.window.findChildren(Deleting)[0].bar.closed.emit()
        assert not session.window.acts["undo"].isEnabled()


async def test_what_was_done_last_is_undone_first(home: Path) -> None:
    put_task(home, 1)
    async with opened(home) as session:
        patient(session)
        window, act = session.window, session.window.acts["undo"]
        let_go(session, 1)
        window.requests.undo_offered.emit("&Undo cancelling 1 task")
        assert act.text() == "&Undo cancelling 1 task"
        act.trigger()
        assert act.text() == "&Undo moving 1 task to the trash"
        act.trigger()
        assert window.model.total == 1


async def test_the_sheet_of_shortcuts_lists_it(home: Path) -> None:
    async with opened(home) as session:
        session.window.acts["shortcuts"].trigger()
        (sheet,) = session.window.findChildren(ShortcutSheet)
        (tree,) = sheet.findChildren(QTreeWidget)
        found = tree.findItems("Undo", Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive)
        assert [item.text(1) for item in found] == ["Ctrl+Z"]
        sheet.reject()


def seconds_of(button: QPushButton) -> int:
    """The seconds that the button says are left."""
    found = re.fullmatch(r"Undo \((\d+) s\)", button.text())
    assert found is not None, button.text()
    return int(found[1])


async def test_undo_counts_the_seconds_that_are_left(home: Path) -> None:
    put_task(home, 1)
    async with opened(home) as session:
        patient(session)
        deleting = session.window.findChildren(Deleting)[0]
        let_go(session, 1)
        button = next(one for one in deleting.bar.findChildren(QPushButton) if "Undo" in one.text())
        first = seconds_of(button)
        assert button.accessibleName() == "Undo"
        assert FAR_MS / 1000 - 60 < first <= FAR_MS / 1000
        await until(lambda: seconds_of(button) < first, deleting.bar._seconds.timeout)
        assert deleting._over.remainingTime() <= seconds_of(button) * 1000
        deleting.undo()
