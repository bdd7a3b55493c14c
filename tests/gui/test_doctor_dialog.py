"""The doctor dialog shows checks and problems step by step, and copies its report."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from gui.commands.help_dialog import DoctorDialog
from gui.startup.session import Session
from gui.style.theme import PlainLabel
from tests.gui.windows import opened, press

pytestmark = pytest.mark.usefixtures("patient_browser")


def doctor_of(session: Session) -> DoctorDialog:
    session.window.acts["doctor"].trigger()
    return session.window.findChildren(DoctorDialog)[-1]


def texts(dialog: DoctorDialog) -> list[str]:
    return [label.text() for label in dialog.findChildren(PlainLabel)]


async def until_said(dialog: DoctorDialog, *wanted: str) -> None:
    while not any(word in text for text in texts(dialog) for word in wanted):
        await asyncio.sleep(0.02)


async def test_everything_is_looked_at_and_the_report_can_be_copied(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = doctor_of(session)
        assert any("Looking" in text for text in texts(dialog))
        await until_said(dialog, "Tasks can run", "Everything a task needs")
        subjects = {one.subject for one in dialog.report.findings}
        assert {"browser", "ledger", "program", "log"} <= subjects
        press(dialog, "Copy the report")
        copied = QGuiApplication.clipboard().text()
        assert str(tmp_path / "home" / "tasks") in copied
        dialog.accept()


async def test_a_browser_that_is_missing_is_a_problem_with_a_way_out(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no-browser")
    async with opened(tmp_path / "home", browser_path=nowhere) as session:
        dialog = doctor_of(session)
        await until_said(dialog, "Something keeps tasks from running.")
        assert not dialog.report.healthy
        assert "✖ Problem" in texts(dialog)
        dialog.accept()


async def test_a_look_can_be_stopped_and_begun_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = doctor_of(session)
        press(dialog, "Stop")
        assert any("Stopped" in text for text in texts(dialog))
        await asyncio.sleep(0)
        found = len(dialog.report.findings)
        press(dialog, "Look again")
        await until_said(dialog, "Tasks can run", "Everything a task needs")
        assert len(dialog.report.findings) > found
        stop = next(one for one in dialog.findChildren(QPushButton) if one.text() == "Stop")
        assert stop.isHidden()
        dialog.accept()
