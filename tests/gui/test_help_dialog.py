"""F1 opens the searchable help; its problem report holds no secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QListWidget, QPlainTextEdit

from engine.model.records import Health
from engine.query import Filter
from gui.commands.help_dialog import HelpDialog, facts, topics
from tests.gui.windows import opened


async def test_f1_opens_the_help_and_typing_searches_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        session.window.acts["help"].trigger()
        dialog = session.window.findChildren(HelpDialog)[-1]
        QTest.keyClicks(dialog.findChildren(QLineEdit)[0], "octask")
        names, text = dialog.findChildren(QListWidget)[0], dialog.findChildren(QPlainTextEdit)[0]
        assert "octask" in text.toPlainText()
        dialog.findChildren(QLineEdit)[0].setText("xyzzy")
        assert all(names.item(at).isHidden() for at in range(names.count()))
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        assert not dialog.isVisible()


async def test_what_to_tell_about_a_problem_is_copied(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        session.window.acts["debug_info"].trigger()
        copied = QGuiApplication.clipboard().text()
        assert str(tmp_path / "home" / "tasks") in copied
        assert "Engine: ready" in copied


def test_facts_name_what_is_wrong_on_one_line_each(qapp: object) -> None:
    told = facts(Health("/r", watcher="polling", watcher_reason="a\nb", read_only="why"))
    assert "Watching: polling a" in told
    assert "Read-only: why" in told
    assert not any(line == "b" for line in told.splitlines())


@pytest.mark.parametrize(
    "line",
    [
        line.strip()
        for _, text in topics()
        for line in text.splitlines()
        if line.startswith("    status:")
    ],
)
def test_the_filter_that_the_help_shows_is_understood(line: str) -> None:
    assert Filter.of(line).parts
