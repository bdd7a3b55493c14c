"""Keys: all of them on a sheet, others can be chosen, and none belongs to two actions."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QKeySequenceEdit, QLineEdit, QTreeWidget

from gui.settings.setting_parts import ACTION_KEY, ShortcutEditor
from gui.settings.settings_dialog import SettingsDialog
from gui.settings.shortcuts import Shortcuts, ShortcutSheet
from gui.startup.session import Session
from tests.gui.windows import opened, press

SHARED = {"Del", "Backspace"}  # cancels what runs, deletes what ended: never both at once


def shortcuts_of(session: Session) -> Shortcuts:
    (found,) = session.window.findChildren(Shortcuts)
    return found


def editor_of(session: Session) -> ShortcutEditor:
    session.window.acts["shortcuts"].trigger()
    press(session.window.findChildren(ShortcutSheet)[-1], "Change…")
    dialog = session.window.findChildren(SettingsDialog)[-1]
    (editor,) = dialog.findChildren(ShortcutEditor)
    assert editor.isVisible(), "the sheet leads to the page of the shortcuts"
    return editor


def choose(editor: ShortcutEditor, key: str, keys: str) -> None:
    """Mark the action, press the keys in the field, and the button."""
    rows = editor.findChildren(QTreeWidget)[0]
    for at in range(rows.topLevelItemCount()):
        item = rows.topLevelItem(at)
        assert item is not None
        if item.data(0, ACTION_KEY) == key:
            rows.setCurrentItem(item)
    editor.findChildren(QKeySequenceEdit)[0].setKeySequence(QKeySequence(keys))
    press(editor, "Use these keys")


async def test_no_keys_belong_to_two_actions(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        acts = session.window.acts
        every = Counter(one.toString() for key in acts for one in acts[key].shortcuts())
        twice = {keys for keys, number in every.items() if number > 1}
        assert twice <= SHARED


async def test_other_keys_hold_at_once_and_the_usual_ones_come_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        await asyncio.sleep(0)
        act, editor = session.window.acts["rescan"], editor_of(session)
        choose(editor, "rescan", "Ctrl+Alt+U")
        assert [one.toString() for one in act.shortcuts()] == ["Ctrl+Alt+U"]
        assert "Ctrl+Alt+U" in act.toolTip()
        kept = session.window.desk.preferences.get("shortcuts.keys", dict)
        assert kept == {"rescan": ["Ctrl+Alt+U"]}
        press(editor, "Reset")
        assert [one.toString() for one in act.shortcuts()] == ["F5"]
        press(editor, "No keys")
        assert act.shortcuts() == []
        shortcuts_of(session).restore("rescan")


async def test_keys_of_another_action_and_single_letters_are_not_taken(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        await asyncio.sleep(0)
        editor, before = editor_of(session), session.window.acts["rescan"].shortcuts()
        choose(editor, "rescan", "Ctrl+K")
        assert "belongs to “Command palette”" in editor.said.text()
        choose(editor, "rescan", "X")
        assert "needed where one types" in editor.said.text()
        assert session.window.acts["rescan"].shortcuts() == before


async def test_keys_from_a_damaged_file_are_left_alone(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        await asyncio.sleep(0)
        chosen = {"rescan": 7, "no-such-action": ["F9"], "find": ["Ctrl+Alt+F"]}
        session.window.desk.preferences.set("shortcuts.keys", chosen)
        acts = session.window.acts
        assert [one.toString() for one in acts["rescan"].shortcuts()] == ["F5"]
        assert [one.toString() for one in acts["find"].shortcuts()] == ["Ctrl+Alt+F"]


async def test_the_sheet_has_every_key_and_is_narrowed_by_words(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        session.window.acts["shortcuts"].trigger()
        sheet = session.window.findChildren(ShortcutSheet)[-1]
        rows = sheet.findChildren(QTreeWidget)[0]
        groups = [rows.topLevelItem(at) for at in range(rows.topLevelItemCount())]
        children = [one.child(at) for one in groups if one for at in range(one.childCount())]
        lines = [line for line in children if line is not None]
        acts = session.window.acts
        with_keys = {
            acts[key].text().replace("&", "").removesuffix("…")
            for key in acts
            if acts[key].shortcuts()
        }
        assert with_keys <= {line.text(0) for line in lines}
        sheet.findChildren(QLineEdit)[0].setText("resc")
        assert [line.text(0) for line in lines if not line.isHidden()] == ["Rescan"]
        sheet.accept()
