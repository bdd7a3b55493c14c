"""Copy selected tasks to the clipboard, as text or as links that open the monitor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QCoreApplication, QObject, Signal
from PySide6.QtGui import QGuiApplication

from engine.model.display import clipboard_cell
from engine.model.ledger_ids import plain_id
from gui.context.scope import Scope
from gui.context.window_context import WindowContext
from gui.desktop.launch_request import link_to
from gui.engine_link.sliced_work import SlicedWork
from gui.tasks.columns import Column, columns_there
from gui.tasks.row import Row
from gui.tasks.task_model import TaskModel

_SLICE_MS = 4
_AT_ONCE = 50  # Rows, which take ten milliseconds


class Copying(QObject):
    """Copy the tasks of a scope, in slices for thousands; `copied` carries their number."""

    copied = Signal(int)

    def __init__(self, scope: Scope, model: TaskModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._scope, self._model = scope, model
        self._columns = columns_there(several=False)
        self._lines: list[str] = []
        self._work = SlicedWork(self, budget_ms=_SLICE_MS)
        self._work.done.connect(self._copy)

    def show_several(self, several: bool) -> None:
        """Add the ledger column when `several` ledgers are open."""
        self._columns = columns_there(several=several)

    def ids(self) -> None:
        """Copy the ids, one per line, spelled like the task folders."""
        self._work.cancel()
        QGuiApplication.clipboard().setText("\n".join(map(plain_id, self._scope.ids())))

    def rows(self) -> None:
        """Copy the rows as a table, once all are formatted."""
        ids = self._scope.ids()
        self._lines = [_titles(self._columns)]
        self._work.start(self._write(ids))
        if len(ids) <= _AT_ONCE:
            self._work.finish()

    def _write(self, ids: Sequence[str]) -> Iterator[None]:
        for task_id in ids:
            row = self._model.row_by_id(task_id)
            if row is not None:
                self._lines.append(_line(self._columns, row, self._model.now_ms()))
            yield

    def _copy(self) -> None:
        lines, self._lines = self._lines, []
        QGuiApplication.clipboard().setText("\n".join(lines))
        self.copied.emit(len(lines) - 1)


def _titles(columns: Sequence[Column]) -> str:
    return "\t".join(column.long_title for column in columns)


def _line(columns: Sequence[Column], row: Row, now_ms: float) -> str:
    """Return one row as tab-separated cells.

    A cell that a spreadsheet would read as a formula gets an apostrophe, and control characters are
    escaped, because addresses and titles are untrusted.
    """
    return "\t".join(clipboard_cell(column.text(row, now_ms)) for column in columns)


def add_link_action(ctx: WindowContext) -> None:
    """Add the action that copies a link for each selected task, one per line."""
    text = QCoreApplication.translate("TaskLinks", "Copy &link")
    act = ctx.actions.add("copy_link", text, ["Ctrl+Alt+C"])

    def copy() -> None:
        links = map(link_to, map(plain_id, ctx.scope.ids()))
        QGuiApplication.clipboard().setText("\n".join(links))

    act.triggered.connect(copy)
    ctx.scope.changed.connect(lambda: act.setEnabled(len(ctx.scope) > 0))
    act.setEnabled(False)
