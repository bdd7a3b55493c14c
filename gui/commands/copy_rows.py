"""Copy or drag selected tasks into other programs, as text, links or result files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QCoreApplication, QObject, QPoint, QTimer, Signal
from PySide6.QtGui import QGuiApplication

from engine.model.display import clipboard_cell
from engine.model.errors import EngineError
from engine.model.ledger_ids import plain_id
from engine.model.records import PAGES_NAME, RESULT_NAME, TaskRecord
from engine.service.engine import Engine
from engine.text.words import count
from gui.commands.bulk_work import Reports
from gui.context.scope import Scope
from gui.context.window_context import WindowContext
from gui.desktop.launch_request import link_to
from gui.engine_link.scheduling import SlicedWork
from gui.style.drag_and_drop import DragGesture, carried, carry
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
    return "\t".join(clipboard_cell(column.copied(row, now_ms)) for column in columns)


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


MOST: Final = 500  # Limit of tasks with files; exports handle larger numbers
_ASK: Final = "files to carry"


class DragOut(QObject):
    """Find the result files on a thread, then start the drag."""

    def __init__(self, ctx: WindowContext, reports: Reports) -> None:
        super().__init__(ctx.parent)
        self._reports = reports
        self._ctx = ctx
        table = ctx.table
        self._gesture = DragGesture(table.viewport(), table.is_chosen_at, keeps=True)
        self._gesture.gripped.connect(ctx.model.hold)
        self._gesture.pulled.connect(self._pull)
        self._act = ctx.actions.add("copy_files", self.tr("C&opy result files"), ["Ctrl+Alt+F"])
        self._act.triggered.connect(self.copy_files)
        ctx.scope.changed.connect(self._allow)
        self._allow()

    def copy_files(self) -> None:
        """Copy the result files of the selected tasks to the clipboard."""
        self._find(self._copy)

    def _pull(self, _at: QPoint) -> None:
        self._find(lambda files: QTimer.singleShot(0, self, lambda: self._carry(files)))

    def _find(self, then: Callable[[Sequence[Path]], object]) -> None:
        ended = self._ended()
        self._ctx.bridge.ask(
            lambda engine: _results(engine, ended), then, lambda _: then(()), name=_ASK
        )

    def _ended(self) -> list[str]:
        """Return the ended tasks of a selection within the limit."""
        scope, view_of = self._ctx.scope, self._ctx.model.view_of
        if len(scope) > MOST:
            return []
        entries = ((one, view) for one in scope.ids() if (view := view_of(one)) is not None)
        return [one for one, view in entries if _has_ended(view.entry)]

    def _carry(self, files: Sequence[Path]) -> None:
        ids = [plain_id(one) for one in self._ctx.scope.ids()]
        if self._gesture.is_pulled and ids:  # The button may have been released meanwhile
            carry(self._ctx.table, carried("\n".join(ids), files), self._said(len(ids), files))
        self._gesture.let_go()

    def _said(self, tasks: int, files: Sequence[Path]) -> str:
        said = self.tr("1 task") if tasks == 1 else self.tr("{0} tasks").format(count(tasks))
        if not files:
            return said
        number = count(len(files))
        with_files = self.tr("{0}, 1 file") if len(files) == 1 else self.tr("{0}, {1} files")
        return with_files.format(said, number)

    def _copy(self, files: Sequence[Path]) -> None:
        if files:
            QGuiApplication.clipboard().setMimeData(carried("\n".join(map(str, files)), files))
            one = self.tr("1 file was copied; it can be pasted into a folder.")
            many = self.tr("{0} files were copied; they can be pasted into a folder.")
            said = one if len(files) == 1 else many.format(count(len(files)))
        elif len(self._ctx.scope) > MOST:
            said = self.tr("More than {0} tasks: export them instead.").format(count(MOST))
        else:
            said = self.tr("There is no result file yet.")
        self._reports.say(said)

    def _allow(self) -> None:
        self._act.setEnabled(len(self._ctx.scope) > 0)


def _has_ended(entry: object) -> bool:
    return isinstance(entry, TaskRecord) and entry.is_terminal and entry.kind != "task_run"


async def _results(engine: Engine, task_ids: Sequence[str]) -> list[Path]:
    """Return the existing result files; unreadable tasks have none."""
    found: list[Path] = []
    for one in task_ids:
        try:
            place = await engine.reading.place(one, RESULT_NAME)
        except EngineError:
            continue
        if place is not None:
            found.append(place)
            if "pages_file" in await engine.tasks.head(
                one
            ):  # The result file holds only the summary
                pages = await engine.reading.place(one, PAGES_NAME)
                found += [] if pages is None else [pages]
    return found
