"""What nobody expected: into the log with all its details, to the user in one calm sentence."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QMessageLogContext,
    QObject,
    QTimer,
    QtMsgType,
    Signal,
    qInstallMessageHandler,
)
from PySide6.QtWidgets import QWidget

from engine.logging.logs import clean, log_path
from gui.desktop.raise_window import come_forward
from gui.state.window_state import Memory

if TYPE_CHECKING:
    from gui.startup.crash_dialog import CrashDialog

log = logging.getLogger("gui")
qt_log = logging.getLogger("qt")
CRASH_BYTES = "crash-bytes"
MOST_FRAMES, MOST_CHARS = 40, 20_000
_QT_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


class Alarm(QObject):
    """Catches errors wherever they surface: slots, threads, the loop, the bridge.

    One dialog at a time, and none twice for the same place: a defect that repeats must not
    bury the window. The log has every one.
    """

    _rung = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self.window: QWidget | None = None
        self.quit_wanted: Any = None
        self._dialog: CrashDialog | None = None
        self._told: set[str] = set()
        self._rung.connect(self._hear)

    def install(self) -> None:
        """Take over from the interpreter; it would print a traceback that nobody reads."""
        sys.excepthook = self._take
        threading.excepthook = lambda args: self._take(
            args.exc_type, args.exc_value, args.exc_traceback
        )

    def watch_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.set_exception_handler(self._take_from_loop)

    def ring(self, error: BaseException) -> None:
        """Log `error` and tell the user; from any thread."""
        log.error("unexpected", exc_info=error)
        details = "".join(traceback.format_exception(error, limit=-MOST_FRAMES))
        self._rung.emit(clean(details)[-MOST_CHARS:], _place_of(error))

    def _take(
        self,
        kind: type[BaseException],
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or issubclass(kind, KeyboardInterrupt | SystemExit):
            return
        self.ring(error.with_traceback(trace))

    def _take_from_loop(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if is_a_pipes_end(context):
            log.info("a program left with words of ours unread: %r", error)
        elif isinstance(error, Exception):
            self.ring(error)
        else:
            log.error("the loop says: %s", context.get("message"))

    def _hear(self, details: str, place: str) -> None:
        # never from inside what failed, be it a slot or a paint event
        QTimer.singleShot(0, self, lambda: self._tell(details, place))

    def _tell(self, details: str, place: str = "") -> None:
        if self._dialog is not None:
            self._dialog.count_more()
        if self._dialog is not None or self.window is None or place in self._told:
            return
        from gui.startup.crash_dialog import CrashDialog  # nobody should need it

        if place:
            self._told.add(place)
        come_forward(self.window)  # it may be in the tray, where nobody would see the dialog
        dialog = self._dialog = CrashDialog(details, log_path(), self.window)
        dialog.when_answered(self._act)
        dialog.open()

    def _act(self, answer: str) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None
        if answer == "quit" and self.quit_wanted is not None:
            self.quit_wanted()


def is_a_pipes_end(context: Mapping[str, Any]) -> bool:
    """Is this only asyncio's own future for the end of a child's input? No code can wait for it,
    and before Python 3.11.3 it is told as an error when the child dies with input unread."""
    future = context.get("future")
    bare = isinstance(future, asyncio.Future) and not isinstance(future, asyncio.Task)
    return bare and isinstance(context.get("exception"), BrokenPipeError | ConnectionResetError)


def crash_file() -> Path:
    """Where the interpreter leaves its stack when it dies."""
    return log_path().with_suffix(".crash")


def has_crashed(memory: Memory) -> bool:
    """Did the program die since this was asked last?"""
    try:
        size = crash_file().stat().st_size
    except OSError:
        size = 0
    known = memory.text(CRASH_BYTES)
    memory.keep_text(CRASH_BYTES, str(size))
    return known.isdigit() and size > int(known)


def _place_of(error: BaseException) -> str:
    """What tells one defect from another: its kind and the line it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__} {where}"


def log_qt_messages() -> None:
    """Send what Qt has to say to the log, not to a terminal."""

    def take(kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
        qt_log.log(_QT_LEVELS.get(kind, logging.INFO), "%s", text)

    qInstallMessageHandler(take)
