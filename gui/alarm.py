"""What nobody expected: into the log with all its details, to the user in one calm sentence."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from types import TracebackType
from typing import Any

from PySide6.QtCore import (
    QMessageLogContext,
    QObject,
    Qt,
    QtMsgType,
    Signal,
    qInstallMessageHandler,
)
from PySide6.QtWidgets import QWidget

from engine.logs import log_path
from gui.dialogs.question import Question

log = logging.getLogger("gui")
qt_log = logging.getLogger("qt")
_QT_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


class Alarm(QObject):
    """Catches errors wherever they surface: slots, threads, the loop, the bridge.

    One dialog at a time: a defect that repeats must not bury the window.
    """

    _rung = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.window: QWidget | None = None
        self.quit_wanted: Any = None
        self._dialog: Question | None = None
        self._rung.connect(self._tell, Qt.ConnectionType.QueuedConnection)

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
        self._rung.emit(type(error).__name__)

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
        if isinstance(error, Exception):
            self.ring(error)
        else:
            log.error("the loop says: %s", context.get("message"))

    def _tell(self, name: str) -> None:
        if self._dialog is not None or self.window is None:
            return
        dialog = self._dialog = Question(self.window)
        dialog.ask(self.tr("Unexpected error"), self.tr("Something unexpected went wrong"))
        dialog.add_text(
            self.tr(
                "The window goes on, and running tasks with it. If it happens again, quit and "
                "start anew: everything in the ledger is kept."
            )
        )
        where = self.tr("Kind: {0}. The details are in {1}").format(name, log_path())
        dialog.add_text(where, tone="muted")
        dialog.add_button("quit", self.tr("Quit"))
        dialog.add_button("go on", self.tr("Go on"), default=True)
        dialog.when_answered(self._act)
        dialog.open()

    def _act(self, answer: str) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None
        if answer == "quit" and self.quit_wanted is not None:
            self.quit_wanted()


def log_qt_messages() -> None:
    """Send what Qt has to say to the log, not to a terminal."""

    def take(kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
        qt_log.log(_QT_LEVELS.get(kind, logging.INFO), "%s", text)

    qInstallMessageHandler(take)
