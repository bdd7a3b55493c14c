"""Drag, copy and "show in folder" for a task's file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from engine.service.engine import Engine
from gui.engine_link.services import Desk
from gui.style.drag_and_drop import DragGesture, carried, carry

Wanted = Callable[[QPoint | None], tuple[str, str] | None]


class FileHandle(QObject):
    """File actions of a widget; `wanted` returns the file (task, name) at a point, or the current.

    Files outside the task's folder (a link, a folder) are neither dragged nor copied.
    """

    def __init__(self, desk: Desk, widget: QWidget, wanted: Wanted) -> None:
        super().__init__(widget)
        self._desk, self._widget, self._wanted = desk, widget, wanted
        place = widget.viewport() if isinstance(widget, QAbstractScrollArea) else widget
        self.grip = DragGesture(place, lambda at: wanted(at) is not None)
        self.grip.pulled.connect(self._pull)
        self.copy = self._action(self.tr("&Copy the file"), self._copy)
        self.copy.setShortcut(QKeySequence.StandardKey.Copy)
        self.copy.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.show = self._action(self.tr("&Show in folder"), self._show)
        widget.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def _action(self, words: str, act: Callable[[Path], object]) -> QAction:
        action = QAction(words, self._widget)
        action.triggered.connect(lambda: self._find(self._wanted(None), act))
        self._widget.addAction(action)
        return action

    def _find(self, file: tuple[str, str] | None, then: Callable[[Path], object]) -> None:
        if file is None:
            return
        task_id, name = file

        def tell(place: Path | None) -> None:
            if place is not None:
                then(place)

        async def look(engine: Engine) -> Any:
            return await engine.reading.place(task_id, name)

        self._desk.bridge.ask(look, tell, name=f"file {id(self)}")

    def _pull(self, at: QPoint) -> None:
        self._find(
            self._wanted(at), lambda one: QTimer.singleShot(0, self, lambda: self._carry(one))
        )

    def _carry(self, place: Path) -> None:
        if self.grip.is_pulled:  # the mouse button is still down
            carry(self._widget, carried(str(place), [place]), place.name)
        self.grip.let_go()

    def _copy(self, place: Path) -> None:
        QGuiApplication.clipboard().setMimeData(carried(str(place), [place]))

    def _show(self, place: Path) -> None:
        from gui.style.folders import show_folder

        show_folder(place.parent)
