"""Results and lists as files: what is exported, one file after another, with a way to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Signal

from engine.export.exporter import Exported, Keep, Order, Watch
from engine.model.errors import EngineError
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskRecord, TaskView
from engine.service.engine import Engine
from gui.engine_link.bridge import Bridge

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

ENDINGS = {"csv": ".csv", "json": ".json", "jsonl": ".jsonl", "xlsx": ".xlsx", "html": ".html"}
ENDINGS["zip"] = ".zip"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to write: results, of which `keep` leaves out units; or the list itself (`as_list`)."""

    views: tuple[TaskView, ...]
    words: str
    as_list: bool = False
    keep: Keep | None = None


class Refused(NamedTuple):
    """What could not be written, and of which task; None: it is about all of them."""

    error: EngineError
    view: TaskView | None = None


@dataclass(slots=True)
class Outcome:
    """What came of an export: the files, the rows in them, and what could not be written."""

    files: list[Exported] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    place: Path = Path()
    stopped: bool = False

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.files)


class Job(QObject):
    """One export under way. `moved` tells files done and the share of the one being written."""

    moved = Signal(int, float)
    ended = Signal(object)
    _told = Signal(float)  # from a thread

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._done = 0
        self._outcome = Outcome()
        self._told.connect(lambda share: self.moved.emit(self._done, share))

    def begin(self, wanted: Wanted, form: str, place: Path, *, many: bool) -> None:
        """Write to the file `place`, or with `many` a file for each task into that folder."""
        self._outcome, self._done = Outcome(place=place), 0
        self._bridge.spawn_once(self._run(wanted, form, place, many), name=self._name)

    def stop(self) -> None:
        """Leave no half file behind, and keep those that are whole."""
        self._bridge.call_off(self._name)
        self._outcome.stopped = True
        self.ended.emit(self._outcome)

    @property
    def _name(self) -> str:
        return f"export {id(self)}"

    async def _run(self, wanted: Wanted, form: str, place: Path, many: bool) -> None:
        outcome = self._outcome
        try:
            engine = self._bridge.engine
            if wanted.as_list:
                order = Order("", form, bom=form == "csv")
                outcome.files.append(
                    await engine.exports.list_to_file(
                        wanted.views, order, place, force=True, watch=self._watch(None)
                    )
                )
            else:
                await self._results(engine, wanted, form, place if many else None)
        except EngineError as error:
            outcome.refused.append(Refused(error))
        self.ended.emit(outcome)

    async def _results(
        self, engine: Engine, wanted: Wanted, form: str, folder: Path | None
    ) -> None:
        for view in wanted.views:
            place = self._outcome.place if folder is None else folder / file_name(view, form)
            order = Order(view.task_id, form, bom=form == "csv")
            watch = self._watch(wanted.keep)
            try:
                done = await engine.exports.to_file(order, place, force=folder is None, watch=watch)
                self._outcome.files.append(done)
            except EngineError as error:
                self._outcome.refused.append(Refused(error, view))
            self._done += 1
            self.moved.emit(self._done, 0.0)

    def _watch(self, keep: Keep | None) -> Watch:
        return Watch(lambda _, done, size: self._told.emit(done / max(1, size)), keep)


def file_name(view: TaskView, form: str) -> str:
    """A name for the file of this task's result, fit for every system; copies have two names."""
    entry = view.entry
    kind = entry.kind if isinstance(entry, TaskRecord) else "task"
    safe = "".join(sign if sign.isalnum() and sign.isascii() else "-" for sign in kind)[:40]
    where = f"-{view.ledger}" if view.ledger else ""
    return f"{safe or 'task'}-{plain_id(view.task_id)}{where}{ENDINGS[form]}"


class Exporting(QObject):
    """The window's two ways to export; each opens its own dialog."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        acts = window.acts
        results = self.tr("&Export results…")
        acts.add("export_tasks", results, ["Ctrl+E"], "export", self.tr("Export…"))
        acts.add("export_list", self.tr("Export the l&ist…"))
        acts["export_tasks"].triggered.connect(self.export_results)
        acts["export_list"].triggered.connect(self.export_list)
        window.scope.changed.connect(self._allow)
        window.desk.wishes.export.connect(self.export_result_of)
        self._allow()

    def export_results(self) -> None:
        """The results of the tasks that are chosen now."""
        views = [view for view in self._window.scope.views() if _has_folder(view)]
        if views:
            self._open(lambda: Wanted(tuple(views), self._window.scope.describes()))

    def export_result_of(self, task_id: str) -> None:
        """The result of this task, chosen or not."""
        view = self._window.model.view_of(task_id)
        if view is not None:
            self._open(lambda: Wanted((view,), ""))

    def export_list(self) -> None:
        """The list as it is filtered and sorted, or what is chosen of it where it is several."""
        window = self._window
        chosen = window.scope.views()
        if len(chosen) > 1:
            self._open(lambda: Wanted(tuple(chosen), window.scope.describes(), as_list=True))
            return
        ids: Sequence[str] = window.model.ids
        views = tuple(view for view in map(window.model.view_of, ids) if view is not None)
        self._open(lambda: Wanted(views, self.tr("The list as it is shown"), as_list=True))

    def _open(self, made: Callable[[], Wanted]) -> None:
        from gui.commands.export_dialog import ExportDialog

        dialog = ExportDialog(self._window.desk, made(), self._window)
        dialog.show()

    def _allow(self) -> None:
        self._window.acts["export_tasks"].setEnabled(len(self._window.scope) > 0)


def _has_folder(view: TaskView) -> bool:
    return isinstance(view.entry, TaskRecord) and view.entry.kind != "task_run"


def attach(window: MainWindow) -> Exporting:
    """Export results and lists from menus, toolbar and keys."""
    return Exporting(window)
