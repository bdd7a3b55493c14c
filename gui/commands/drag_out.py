"""Drag tasks from the list into other programs, as ids and result files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QPoint, QTimer
from PySide6.QtGui import QGuiApplication

from engine.model.errors import EngineError
from engine.model.ledger_ids import plain_id
from engine.model.records import PAGES_NAME, RESULT_NAME, TaskRecord
from engine.service.engine import Engine
from engine.text.words import count
from gui.commands.bulk_work import Reports
from gui.context.window_context import WindowContext
from gui.style.drag_and_drop import DragGesture, carried, carry

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
        self._act = ctx.actions.add("copy_files", self.tr("Copy res&ult files"), ["Ctrl+Alt+F"])
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
