"""From a wish to a task: the start dialog, what it is filled with, and the engine's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.again import Asked
from engine.errors import EngineError, InvalidArguments
from engine.records import TaskRecord
from gui.bridge import Bridge
from gui.dialogs.address import address_in

if TYPE_CHECKING:
    from gui.dialogs.start import StartDialog

FIRST_KIND = "crawl"


class Starting(QObject):
    """Owns the one start dialog of a window. `failed` is what came after it was closed."""

    failed = Signal(EngineError)

    def __init__(self, bridge: Bridge, window: QWidget) -> None:
        super().__init__(window)
        self._bridge, self._window = bridge, window
        self._dialog: StartDialog | None = None
        self._token = 0  # of the request that the open dialog made: it hears of no other
        bridge.answered.connect(self._show_answer)

    def new_task(self, args: Mapping[str, Any] | None = None, parent: str | None = None) -> None:
        """Open the start dialog for a crawl with `args`; `parent` is the task that it repeats."""
        self.open(Asked(FIRST_KIND, dict(args or {})), parent)

    def open(self, asked: Asked, parent: str | None = None, *, note: str = "") -> None:
        """Open the start dialog filled with `asked`; `note` says what a person should know of it.

        Nothing is started before they say so.
        """
        if self._dialog is not None:
            self._dialog.raise_()
            return
        from gui.dialogs.start import StartDialog  # few first paints need it

        dialog = self._dialog = StartDialog(self._bridge.problems, self._window)
        dialog.show_request(asked, note)
        dialog.offer_clipboard(QGuiApplication.clipboard().text())
        self._token += 1
        token = self._token
        dialog.wanted.connect(lambda wanted: self._bridge.begin(wanted, parent, token))
        dialog.finished.connect(self._forget_dialog)
        dialog.open()

    def paste(self) -> None:
        """Open the start dialog with the address that was copied; an empty one without one."""
        url = address_in(QGuiApplication.clipboard().text())
        self.new_task({"url": url} if url else None)

    def _show_answer(self, token: int, answer: TaskRecord | EngineError) -> None:
        if self._dialog is None or token != self._token:
            if isinstance(answer, EngineError):  # its dialog was closed meanwhile
                self.failed.emit(answer)
        elif isinstance(answer, TaskRecord):
            self._dialog.accept_task(answer)
        elif isinstance(answer, InvalidArguments):
            self._dialog.show_refusal(answer)
        else:
            self._dialog.show_error(answer)

    def _forget_dialog(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None
