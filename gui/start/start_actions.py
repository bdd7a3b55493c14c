"""Actions that start tasks: from a file, a list, a drop, or an existing task."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, QObject, QTimer
from PySide6.QtGui import QKeySequence

from engine.model.records import Health, TaskRecord
from gui.context.window_context import WindowContext
from gui.start.starting import Starting
from gui.style.drag_and_drop import DropTarget

WARM_AFTER_MS = 1500  # Delay after loading, because the list and the browser's imports come first


def attach(ctx: WindowContext, starting: Starting) -> StartActions:
    """Add the actions and accept drops on the window."""
    return StartActions(ctx, starting)


class StartActions(QObject):
    """Start actions, disabled while the engine accepts no tasks."""

    def __init__(self, ctx: WindowContext, starting: Starting) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._starting = ctx, starting
        self._accepts = False
        open_key = QKeySequence.StandardKey.Open
        acts = ctx.actions
        acts["open"].setShortcuts([])  # Ctrl+O opens a file, as on every desktop
        self._file = acts.add("open_file", self.tr("Open a &task file…"), [open_key])
        self._list = acts.add("list_mode", self.tr("New tasks from a &list…"), ["Ctrl+Shift+L"])
        self._duplicate = acts.add("duplicate", self.tr("&Duplicate…"), ["Ctrl+Shift+N"])
        self._file.triggered.connect(self._starting.open_file)
        self._list.triggered.connect(lambda _=False: self._starting.open_list())
        self._duplicate.triggered.connect(self._duplicate_chosen)
        dropping = DropTarget(ctx.parent)
        dropping.dropped.connect(self._take_drop)
        ctx.bridge.health.connect(self._hear)
        ctx.scope.changed.connect(self._show_ability)
        self._warming = QTimer(self, singleShot=True, interval=WARM_AFTER_MS)
        self._warming.timeout.connect(self._starting.warm)
        ctx.bridge.loaded.connect(self._warming.start)
        self._show_ability()

    def _hear(self, health: Health) -> None:
        self._accepts = health.engine == "ready" and not health.read_only
        self._show_ability()

    def _show_ability(self) -> None:
        for action in (self._file, self._list):
            action.setEnabled(self._accepts)
        self._duplicate.setEnabled(self._accepts and self._chosen() is not None)

    def _chosen(self) -> TaskRecord | None:
        if len(self._ctx.scope) != 1:
            return None
        view = next(iter(self._ctx.scope.views()), None)
        return view.entry if view is not None and isinstance(view.entry, TaskRecord) else None

    def _duplicate_chosen(self) -> None:
        if self._chosen() is not None:
            self._starting.duplicate(self._ctx.scope.views()[0])

    def _take_drop(self, mime: QMimeData) -> None:
        self._ctx.services.wishes.dropped.emit(mime, lambda: self._start_from(mime))

    def _start_from(self, mime: QMimeData) -> None:
        if self._accepts:
            self._starting.take_drop(mime)
