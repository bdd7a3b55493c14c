"""Handler of unexpected errors: full details in the log, one sentence for the user."""

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
from gui.context.preferences import Memory
from gui.desktop.launch_request import come_forward

if TYPE_CHECKING:
    from gui.startup.failure_reports import CrashDialog

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


class CrashHandler(QObject):
    """Catch errors in slots, threads, the event loop and the bridge.

    One dialog at a time, and one for each place in the code, because a repeated error must not
    block the window. The log records all of them.
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
        """Replace the interpreter's hooks, which print to an unread terminal."""
        sys.excepthook = self._take
        threading.excepthook = lambda args: self._take(
            args.exc_type, args.exc_value, args.exc_traceback
        )

    def watch_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.set_exception_handler(self._take_from_loop)

    def ring(self, error: BaseException) -> None:
        """Log `error` and report it to the user; thread-safe."""
        log.error("unexpected", exc_info=error)
        details = "".join(traceback.format_exception(error, limit=-MOST_FRAMES))
        self._rung.emit(clean(details)[-MOST_CHARS:], _place_of(error))

    def _take(
        self, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
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
        # Deferred, because the failing code may be a slot or a paint event.
        QTimer.singleShot(0, self, lambda: self._tell(details, place))

    def _tell(self, details: str, place: str = "") -> None:
        if self._dialog is not None:
            self._dialog.count_more()
        if self._dialog is not None or self.window is None or place in self._told:
            return
        from gui.startup.failure_reports import CrashDialog  # Rarely needed

        if place:
            self._told.add(place)
        come_forward(self.window)  # The window may be hidden in the tray
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
    """Return whether the error is only asyncio's own future for the end of a child's input.

    No code can await that future, and before Python 3.11.3 asyncio reports it as an error when a
    child dies with unread input.
    """
    future = context.get("future")
    bare = isinstance(future, asyncio.Future) and not isinstance(future, asyncio.Task)
    return bare and isinstance(context.get("exception"), BrokenPipeError | ConnectionResetError)


def crash_file() -> Path:
    """Return the file to which the interpreter writes its stack on a crash."""
    return log_path().with_suffix(".crash")


def has_crashed(memory: Memory) -> bool:
    """Return whether the program crashed since the last call."""
    try:
        size = crash_file().stat().st_size
    except OSError:
        size = 0
    known = memory.text(CRASH_BYTES)
    memory.keep_text(CRASH_BYTES, str(size))
    return known.isdigit() and size > int(known)


def _place_of(error: BaseException) -> str:
    """Return an identifier of a defect: error type and source line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__} {where}"


def log_qt_messages() -> None:
    """Send Qt's messages to the log instead of the terminal."""

    def take(kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
        qt_log.log(_QT_LEVELS.get(kind, logging.INFO), "%s", text)

    qInstallMessageHandler(take)
