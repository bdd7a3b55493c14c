"""Open the result viewer by shortcut, double click or from the details."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.export.exporter import Comparison, Keep
from engine.model.ledger_ids import plain_id
from engine.model.records import ENVELOPE, Status, TaskRecord, TaskView
from engine.results.units import Unit
from engine.text.messages import say
from gui.commands.exporting import Wanted
from gui.context.window_context import WindowContext
from gui.details.panel import is_task
from gui.style.questions import show_folder
from gui.tasks.row import Row

if TYPE_CHECKING:
    from gui.details.result_window import ResultWindow


class Viewing(QObject):
    """Owner of the window's single result viewer, created on first use."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._viewer: ResultWindow | None = None
        text = self.tr("O&pen the result")
        self._action = ctx.actions.add("open_result", text, ["Ctrl+Return"])
        self._action.triggered.connect(self._open_chosen)
        ctx.scope.changed.connect(self._allow)
        ctx.table.activated_task.connect(self._open_ended)
        ctx.services.wishes.result.connect(self.open)
        self._allow()

    def open(self, task_id: str, unit: Unit | None = None) -> None:
        """Show the result of a task at a unit, after importing the viewer once."""
        if self._viewer is None:
            self._ctx.bridge.ask(
                lambda _: asyncio.to_thread(import_module, "gui.details.result_window"),
                lambda _: self._show(task_id, unit),
                name="read the viewer",
            )
        else:
            self._show(task_id, unit)

    def _show(self, task_id: str, unit: Unit | None) -> None:
        view = self._ctx.model.view_of(task_id)
        if view is None:
            return
        viewer = self._viewer = self._viewer or self._made()
        viewer.show_task(view, unit)
        viewer.show()
        viewer.raise_()
        viewer.activateWindow()

    def _made(self) -> ResultWindow:
        from gui.details.result_window import ResultWindow, ViewerCallbacks

        around = ViewerCallbacks(
            self._neighbour,
            self._known,
            self._export,
            self._export_differences,
            self._show_folder,
        )
        return ResultWindow(self._ctx.services, around, self._ctx.parent)

    def _open_chosen(self) -> None:
        views = self._ctx.scope.views()
        if len(views) == 1:
            self.open(views[0].task_id)

    def _open_ended(self, task_id: str) -> None:
        """Open the result of an ended task on Enter; live tasks show their details."""
        view = self._ctx.model.view_of(task_id)
        if view is not None and has_result(view):
            self.open(task_id)

    def _allow(self) -> None:
        views = self._ctx.scope.views() if len(self._ctx.scope) == 1 else []
        self._ctx.actions.suggest("open_result", bool(views) and has_units(views[0]))
        self._action.setEnabled(bool(views) and is_task(views[0]) and has_begun(views[0]))

    def _neighbour(self, task_id: str, way: int) -> TaskView | None:
        """Return the task above (-1) or below (1) in the current list."""
        model = self._ctx.model
        (row,) = model.rows_of([task_id]) or (-1,)
        if row < 0 or not 0 <= row + way < model.rowCount():
            return None
        return model.view_of(model.id_at(row + way))

    def _known(self) -> Sequence[Row]:
        return self._ctx.model.all_rows()

    def _export(self, view: TaskView, keep: Keep | None, report: str) -> None:
        from gui.commands.exporting import ExportDialog

        words = self.tr("Only the rows that are shown") if keep is not None else ""
        if report:
            title = self.tr("The report “{0}”").format(say(f"audit.{report}"))
            words = f"{title}. {words}" if words else title
        wanted = Wanted((view,), words, keep=keep, report=report)
        ExportDialog(self._ctx.services, wanted, self._viewer).show()

    def _export_differences(self, compared: Comparison) -> None:
        from gui.commands.exporting import ExportDialog

        words = self.tr("Compared with task {0}").format(plain_id(compared.before))
        if len(compared.shown) < len(compared.all.found):
            words = f"{words}. {self.tr('Only the rows that are shown')}"
        wanted = Wanted((compared.after,), words, compared=compared)
        ExportDialog(self._ctx.services, wanted, self._viewer).show()

    def _show_folder(self, task_id: str) -> None:
        show_folder(self._ctx.bridge.engine.tasks.folder_of(task_id))


def has_begun(view: TaskView) -> bool:
    """Return whether the task runs or has ended: until then there is nothing to show."""
    entry = view.entry
    return isinstance(entry, TaskRecord) and entry.status != Status.PENDING


def has_units(view: TaskView) -> bool:
    """Return whether the task leaves a result, or units of one, or may still do so."""
    entry = view.entry
    if not isinstance(entry, TaskRecord) or entry.kind == ENVELOPE:
        return False  # the calls of an agent are events
    if not entry.is_terminal or entry.status == Status.COMPLETED:
        return True
    return view.units is not None and view.units.done > 0


def has_result(view: TaskView) -> bool:
    """Return whether the task has ended, so that it may have a result."""
    entry = view.entry
    return is_task(view) and isinstance(entry, TaskRecord) and entry.is_terminal
