"""“Save log…”: save the shown events as text, or the whole file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QMenu, QToolButton

from engine.model.errors import EngineError
from engine.model.ledger_ids import plain_id
from engine.service.engine import Engine
from engine.text.sizes import size_words
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.style.folders import documents
from gui.style.labels import ElidedLabel

LOOK_MS = 100


class SaveLog(QToolButton):
    """Button with a menu of two formats; while writing it shows progress and cancels.

    `lines` returns the shown events, `task_id` their task, both on use.
    """

    saved = Signal(str)
    ended = Signal()  # saved or not

    def __init__(
        self,
        desk: Desk | None,
        lines: Callable[[], list[str]],
        task_id: Callable[[], str],
        told: ElidedLabel,
    ) -> None:
        super().__init__()
        self._desk, self._lines, self._task_id, self._told = desk, lines, task_id, told
        self._far = (0, 0)
        self._menu = QMenu(self)
        self._menu.addAction(self.tr("&This view…")).triggered.connect(lambda: self.ask(False))
        self._menu.addAction(self.tr("&Everything…")).triggered.connect(lambda: self.ask(True))
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._show_progress)
        self.clicked.connect(self._click)
        self._rest()

    @property
    def _name(self) -> str:
        return f"save events {id(self)}"

    def ask(self, everything: bool) -> None:
        """Ask for a file name, and write the events."""
        ending = "jsonl" if everything else "txt"
        if self._desk is None:
            return
        folder = documents(self._desk.preferences.get("export.folder", str))
        title = self.tr("Save all events") if everything else self.tr("Save the events shown")
        dialog = QFileDialog(self.window(), title, folder)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(ending)
        dialog.selectFile(f"events-{plain_id(self._task_id())}.{ending}")
        dialog.fileSelected.connect(lambda place: self.save(Path(place), everything))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save(self, place: Path, everything: bool) -> None:
        """Write to `place`; `saved` is emitted when the file is complete."""
        if self._desk is None:
            return
        self._desk.preferences.set("export.folder", str(place.parent))
        task_id, self._far = self._task_id(), (0, 0)
        lines = [] if everything else self._lines()

        async def work(engine: Engine) -> int:
            if everything:
                return await engine.past.save_events(task_id, place, self._note)
            return await engine.past.save_lines(lines, place)

        # None removes the menu, against Qt's stub
        self.setMenu(None)  # type: ignore[arg-type]
        self.setPopupMode(QToolButton.ToolButtonPopupMode.DelayedPopup)
        self.setText(self.tr("Cancel saving"))
        self._look.start()
        then = partial(self._done, place)
        self._desk.bridge.ask(work, then, self._fail, name=self._name)

    def call_off(self) -> None:
        """Cancel writing, when another task is shown; the partial file is deleted."""
        if self._desk is not None and self._look.isActive():
            self._desk.bridge.call_off(self._name)
            self._rest()

    def _note(self, done: int, size: int) -> None:
        self._far = (done, size)  # called in a thread; the timer reads it

    def _click(self) -> None:
        if self._look.isActive():
            self.call_off()
            self._told.show_text(self.tr("Not saved."))

    def _show_progress(self) -> None:
        done, size = self._far
        if size:
            self._told.show_text(self.tr("Saving: {0} %").format(100 * done // size))

    def _done(self, place: Path, size: int) -> None:
        told = self.tr("Saved {0} as {1}").format(size_words(size), place.name)
        self._told.show_text(told, more=str(place))
        self._rest()
        self.saved.emit(str(place))
        self.ended.emit()

    def _fail(self, error: EngineError) -> None:
        self._told.show_text(language.told(error))
        self._rest()
        self.ended.emit()

    def _rest(self) -> None:
        self._look.stop()
        self.setMenu(self._menu)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setText(self.tr("Save log"))
        self.setEnabled(self._desk is not None)
