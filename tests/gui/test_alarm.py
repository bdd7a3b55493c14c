"""Unexpected errors: one dialog, details without secrets, and the window continues."""

from __future__ import annotations

import asyncio
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit

from gui.context.preferences import Memory
from gui.startup import crash_handler as alarms
from gui.startup.crash_handler import has_crashed
from gui.startup.failure_reports import CrashDialog
from gui.startup.session import Session
from tests.gui.windows import dialog_of, opened, press

# none is started for nothing: these tests are over before it would run
NO_BROWSER = {"browser_path": "/nowhere/chromium"}


def a_defect(words: str) -> Exception:
    try:
        raise ValueError(words)
    except ValueError as error:
        return error


async def told(session: Session) -> CrashDialog:
    while not session.window.findChildren(CrashDialog):
        await asyncio.sleep(0)  # the alarm rings through Qt's queue
    dialog = dialog_of(session)
    assert isinstance(dialog, CrashDialog)
    return dialog


async def test_the_details_can_be_copied_and_hold_no_secret(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        session._alarm.ring(a_defect("https://user:hunter2@example.com/?token=abc123def456"))
        dialog = await told(session)
        press(dialog, "&Copy the details")
        assert dialog.isVisible()
        text = QGuiApplication.clipboard().text()
        assert "ValueError" in text
        assert "test_alarm.py" in text
        assert "hunter2" not in text
        assert "abc123def456" not in text


async def test_a_defect_that_repeats_is_one_dialog_and_then_none(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        for _ in range(3):
            session._alarm.ring(a_defect("again"))
        dialog = await told(session)
        shown = session.window.findChildren(CrashDialog)
        assert shown == [dialog]
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        session._alarm.ring(a_defect("and again"))
        await asyncio.sleep(0.05)
        assert [one for one in session.window.findChildren(CrashDialog) if one.isVisible()] == []


async def test_a_pipe_that_a_program_left_is_no_defect_of_ours(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        loop = asyncio.get_running_loop()
        session._alarm.watch_loop(loop)
        for error in (BrokenPipeError(), ConnectionResetError()):
            loop.call_exception_handler({"exception": error, "future": loop.create_future()})
        loop.call_exception_handler({"exception": a_defect("real"), "future": loop.create_future()})
        dialog = await told(session)
        assert "real" in dialog.findChildren(QPlainTextEdit)[0].toPlainText()
        press(dialog, "&Copy the details")
        assert "Pipe" not in QGuiApplication.clipboard().text()


async def test_quit_ends_the_window_in_order(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        leaving = asyncio.ensure_future(session.ended())
        session._alarm.ring(a_defect("bad"))
        press(await told(session), "Quit")
        assert await leaving is None


async def test_markup_in_an_error_is_shown_as_it_is(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        session._alarm.ring(a_defect("<img src=file:///etc/passwd>"))
        (shown,) = (await told(session)).findChildren(QPlainTextEdit)
        assert "<img src=file:///etc/passwd>" in shown.toPlainText()


def test_a_crash_is_reported_once(tmp_path: Path, monkeypatch, qapp: QApplication) -> None:
    file = tmp_path / "monitor.crash"
    monkeypatch.setattr(alarms, "crash_file", lambda: file)
    memory = Memory(tmp_path / "window.ini")
    assert not has_crashed(memory)
    file.write_text("Fatal Python error: Segmentation fault")
    assert has_crashed(memory)
    assert not has_crashed(memory)
