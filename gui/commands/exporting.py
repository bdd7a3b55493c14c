"""Export of results and lists to files, with progress and a stop button."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from engine.export.exporter import (
    FORMATS,
    PACKED,
    WACZ,
    Comparison,
    ExportProgress,
    Keep,
    Order,
)
from engine.export.output import Exported
from engine.export.table import iso
from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskRecord, TaskView
from engine.query import host_of
from engine.service.engine import Engine
from engine.text.messages import retold
from engine.text.words import count, task_name
from gui.context.window_context import Desk, WindowContext
from gui.details.panel import is_task
from gui.engine_link.bridge import Bridge
from gui.i18n import language
from gui.i18n.names import name_with_ledger
from gui.style.accessibility import InOrder
from gui.style.questions import ask_folder, documents, show_folder
from gui.style.theme import heading, plain_label, plain_title
from gui.style.widgets import arrange

MOST_LOOKED_AT = 500  # Tasks examined to enable the action; with more it is enabled
# Formats of a recording, which are no tables.
RECORDING_ENDINGS = {"task": ".task.json", "variables": ".variables.json", "trace": ".trace.zip"}
ENDINGS = {**{name: f".{name}" for name in (*FORMATS, *PACKED)}, **RECORDING_ENDINGS}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Contents of an export: results with a unit filter `keep`, a report, differences, the list."""

    views: tuple[TaskView, ...]
    words: str
    as_list: bool = False
    keep: Keep | None = None
    report: str = ""  # about the pages of a crawl, instead of them
    compared: Comparison | None = None

    @property
    def is_table(self) -> bool:
        """Whether only the formats of tables can hold it."""
        is_filtered = self.keep is not None or self.compared is not None
        return self.as_list or is_filtered or bool(self.report)

    @property
    def file_part(self) -> str:
        """The part of a file's name that tells it from the whole result."""
        return "differences" if self.compared is not None else self.report


class Refused(NamedTuple):
    """An error of one task, or of the whole export with None."""

    error: EngineError
    view: TaskView | None = None


@dataclass(slots=True)
class Outcome:
    """Result of an export: files, number of rows and errors."""

    files: list[Exported] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    place: Path = Path()
    stopped: bool = False

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.files)


class Job(QObject):
    """A running export; `moved` carries finished files and the progress of the current one."""

    moved = Signal(int, float)
    ended = Signal(object)
    _told = Signal(float)  # Emitted on a worker thread

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._done = 0
        self._outcome = Outcome()
        self._told.connect(lambda share: self.moved.emit(self._done, share))

    def begin(self, wanted: Wanted, form: str, place: Path, *, many: bool) -> None:
        """Write to the file `place`, or with `many` one file per task into that folder."""
        self._outcome, self._done = Outcome(place=place), 0
        self._bridge.spawn_once(self._run(wanted, form, place, many), name=self._name)

    def stop(self) -> None:
        """Stop without partial files; complete files are kept."""
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
            if wanted.as_list or wanted.compared is not None:
                outcome.files.append(await self._rows(engine, wanted, form, place))
            else:
                await self._results(engine, wanted, form, place if many else None)
        except EngineError as error:
            outcome.refused.append(Refused(error))
        self.ended.emit(outcome)

    async def _rows(self, engine: Engine, wanted: Wanted, form: str, place: Path) -> Exported:
        order, watch = _order("", form), self._watch(None)
        if wanted.compared is not None:
            return await engine.exports.comparison_to_file(
                wanted.compared, order, place, force=True, watch=watch
            )
        return await engine.exports.list_to_file(
            wanted.views, order, place, force=True, watch=watch
        )

    async def _results(
        self, engine: Engine, wanted: Wanted, form: str, folder: Path | None
    ) -> None:
        for view in wanted.views:
            place = (
                self._outcome.place
                if folder is None
                else folder / file_name(view, form, wanted.file_part)
            )
            order = _order(view.task_id, form, wanted.report)
            watch = self._watch(wanted.keep)
            try:
                if form in RECORDING_ENDINGS:
                    done = await self._recording(engine, view.task_id, form, place, folder is None)
                else:
                    force = folder is None
                    done = await engine.exports.to_file(order, place, force=force, watch=watch)
                self._outcome.files.append(done)
            except EngineError as error:
                self._outcome.refused.append(Refused(error, view))
            self._done += 1
            self.moved.emit(self._done, 0.0)

    async def _recording(
        self, engine: Engine, task_id: str, form: str, place: Path, force: bool
    ) -> Exported:
        """Write a recording for another program.

        The notes name what a replay needs, and count what it lacks.
        """
        made = await engine.exports.recording_to_file(task_id, form, place, force=force)
        notes = []
        if form != "trace" and made.variables:
            names = display(", ".join(made.variables), 200)
            notes.append(self.tr("A replay asks for: {0}").format(names))
        if form == "task" and made.not_replayed:
            left_out = count(len(made.not_replayed))
            notes.append(self.tr("Actions that no command can replay: {0}").format(left_out))
        rows = len(made.variables) if form == "variables" else made.commands
        return Exported(task_id, form, str(place), rows, False, "", notes)

    def _watch(self, keep: Keep | None) -> ExportProgress:
        return ExportProgress(lambda _, done, size: self._told.emit(done / max(1, size)), keep)


def _order(task_id: str, form: str, report: str = "") -> Order:
    """Return the order of a file: a report is in the language of the window, data in English."""
    spoken = language.current_language() if form == "html" else ""
    return Order(task_id, form, bom=form == "csv", report=report, language=spoken)


def file_name(view: TaskView, form: str, part: str = "") -> str:
    """Return a portable file name: kind, host, date (UTC) and id; copies differ by ledger."""
    entry = view.entry
    kind, date = "task", ""
    if isinstance(entry, TaskRecord):
        kind, date = entry.kind, iso(entry.started_at or entry.created_at)[:10]
    named = (_portable(kind) or "task", _portable(host_of(view)), date, plain_id(view.task_id))
    where = f"-{view.ledger}" if view.ledger else ""
    about = f"-{part}" if part else ""
    return f"{'-'.join(filter(None, named))}{where}{about}{ENDINGS[form]}"


def _portable(text: str) -> str:
    """Replace what a file system may refuse in a name."""
    return "".join(
        sign if sign.isascii() and (sign.isalnum() or sign == ".") else "-" for sign in text
    )[:40]


def _is_recording(view: TaskView) -> bool:
    return traits_of(getattr(view.entry, "kind", "")).replayable


def _has_archive(view: TaskView) -> bool:
    summary = getattr(view.entry, "args_summary", {})
    return bool(summary.get("archive", "none") != "none")


class Exporting(QObject):
    """The window's export actions, each of which opens a dialog."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        acts = ctx.actions
        results = self.tr("&Export results…")
        acts.add("export_tasks", results, ["Ctrl+E"], "export", self.tr("Export…"))
        acts.add("export_list", self.tr("Export the l&ist…"))
        acts["export_tasks"].triggered.connect(self.export_results)
        acts["export_list"].triggered.connect(self.export_list)
        ctx.scope.changed.connect(self._allow)
        ctx.services.wishes.export.connect(self.export_result_of)
        self._allow()

    def export_results(self) -> None:
        """Export the results of the selected tasks."""
        views = [view for view in self._ctx.scope.views() if is_task(view)]
        if views:
            self._open(Wanted(tuple(views), self._ctx.scope.describes()))

    def export_result_of(self, task_id: str) -> None:
        view = self._ctx.model.view_of(task_id)
        if view is not None:
            self._open(Wanted((view,), ""))

    def export_list(self) -> None:
        """Export the filtered list in its order, or several selected tasks."""
        ctx = self._ctx
        chosen = ctx.scope.views()
        if len(chosen) > 1:
            self._open(Wanted(tuple(chosen), ctx.scope.describes(), as_list=True))
            return
        views = tuple(view for view in map(ctx.model.view_of, ctx.model.ids) if view is not None)
        self._open(Wanted(views, self.tr("The list as it is shown"), as_list=True))

    def _open(self, wanted: Wanted) -> None:
        ExportDialog(self._ctx.services, wanted, self._ctx.parent).show()

    def _allow(self) -> None:
        scope, view_of = self._ctx.scope, self._ctx.model.view_of
        chosen = map(view_of, scope.ids()[:MOST_LOOKED_AT])
        able = len(scope) > MOST_LOOKED_AT or any(view and is_task(view) for view in chosen)
        why_not = self.tr("Task runs have no result of their own. Export the list instead.")
        self._ctx.actions.allow_chosen("export_tasks", able, why_not, chosen=len(scope))


# Dialog for format and place, then progress, then result.

WIDTH = 460
_MOST_SAID = 5
_STEPS = 1000


class ExportDialog(InOrder, QDialog):
    """Modeless dialog, so that the window stays usable during a long export."""

    def __init__(self, desk: Desk, wanted: Wanted, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setMinimumWidth(WIDTH)
        self._desk, self._wanted = desk, wanted
        self._outcome = Outcome()
        self.job = Job(desk.bridge, self)
        self._running = False
        self._headline = heading("", self, grow=1.15)
        self._text = plain_label("", self, tone="muted", wrap=True)
        self._problems = plain_label("", self, tone="warning", wrap=True)
        self._formats = QButtonGroup(self)
        self._choices = QWidget(self)
        self.bar = QProgressBar(self)
        self.go = QPushButton(self.tr("Export…"), self)
        self.folder = QPushButton(self.tr("Show in folder"), self)
        self.close_ = QPushButton(self.tr("Cancel"), self)
        self._lay_out()
        self._connect()
        self._say()
        if (chosen := self._formats.checkedButton()) is not None:
            chosen.setFocus()  # Arrows choose a format, Enter continues

    def _lay_out(self) -> None:
        self._offer_formats()
        row = arrange(QHBoxLayout(), 0, self.folder, self.go, self.close_)
        column = arrange(QVBoxLayout(self), margins=(20, 18, 20, 16), spacing=12)
        self._headline.setWordWrap(True)
        for widget in (self._headline, self._text, self._choices, self.bar, self._problems):
            column.addWidget(widget)
        column.addStretch()
        column.addLayout(row)
        for widget in (self.bar, self.folder, self._problems):
            widget.hide()
        self.go.setDefault(True)
        self.bar.setRange(0, _STEPS)
        self.bar.setAccessibleName(self.tr("How far the export is"))

    def _offer_formats(self) -> None:
        column = QVBoxLayout(self._choices)
        column.setContentsMargins(0, 0, 0, 0)
        last = self._desk.preferences.get("export.format", str)
        for form, words in self._words().items():
            button = QRadioButton(words, self._choices)
            button.setProperty("form", form)
            self._formats.addButton(button)
            column.addWidget(button)
            if form == last or not self._formats.checkedButton():
                button.setChecked(True)

    def _words(self) -> dict[str, str]:
        words = {
            "csv": self.tr("CSV, for spreadsheets"),
            "xlsx": self.tr("XLSX, an Excel workbook"),
            "json": self.tr("JSON, one document"),
            "jsonl": self.tr("JSON lines, an object a line"),
            "html": self.tr("HTML report, to read or print"),
            "zip": self.tr("Zip of the task's folder, with its pictures"),
        }
        if self._wanted.is_table:
            del words["zip"]
        elif all(map(_has_archive, self._wanted.views)):
            words[WACZ] = self.tr("Web archive (WACZ), for ReplayWeb.page")
        elif all(map(_is_recording, self._wanted.views)):
            words |= {
                "task": self.tr("Task that replays it, for octask run (JSON)"),
                "variables": self.tr("Variables of the replay, to fill in (JSON)"),
                "trace": self.tr("Playwright trace (zip)"),
            }
        return words

    def _connect(self) -> None:
        self.go.clicked.connect(self._ask_place)
        self.close_.clicked.connect(self.reject)
        self.folder.clicked.connect(self._show_folder)
        self.job.moved.connect(self._show_progress)
        self.job.ended.connect(self._show_end)

    @property
    def form(self) -> str:
        """The chosen format."""
        button = self._formats.checkedButton()
        return str(button.property("form")) if button is not None else "csv"

    def choose(self, form: str) -> None:
        for button in self._formats.buttons():
            button.setChecked(button.property("form") == form)

    def _form_of(self, place: Path) -> str:
        """Return the format of the file extension, if it is offered."""
        suffix = place.suffix.lower()
        if ENDINGS[self.form].endswith(suffix or " "):
            return self.form  # Several formats are JSON or zip
        forms = (form for form in self._words() if ENDINGS[form] == suffix)
        return next(forms, self.form)

    @property
    def _many(self) -> bool:
        return len(self._wanted.views) > 1 and not self._wanted.as_list

    def _say(self) -> None:
        wanted = self._wanted
        number = len(wanted.views)
        if wanted.as_list:
            headline = self.tr("Export the list")
            rows = self.tr("{0}: 1 row.") if number == 1 else self.tr("{0}: {1} rows.")
            text = rows.format(wanted.words, count(number))
        elif self._many:
            headline = self.tr("Export {0} results").format(count(number))
            text = self.tr("A file for each task, in a folder of your choice.")
        else:
            headline = self.tr("Export the result")
            if wanted.compared is not None:
                headline = self.tr("Export the differences")
            text = display(wanted.words or task_name(wanted.views[0]), 200)
        self.setWindowTitle(plain_title(headline))
        self._headline.show_text(headline)
        self._text.show_text(text)

    def _ask_place(self) -> None:
        start = documents(self._desk.preferences.get("export.folder", str))
        if self._many:
            title = self.tr("Folder for the exported files")
            ask_folder(self, title, start, self.export_to)
            return
        form = self.form
        name = f"tasks{ENDINGS[form]}"
        if not self._wanted.as_list:
            name = file_name(self._wanted.views[0], form, self._wanted.file_part)
        dialog = QFileDialog(self, self.tr("Export to"), start)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(ENDINGS[form].removeprefix("."))
        dialog.selectFile(name)
        dialog.fileSelected.connect(lambda path: self.export_to(Path(path)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def export_to(self, place: Path) -> None:
        """Start the export; the file extension decides the format."""
        if not self._many:
            self.choose(self._form_of(place))
        preferences = self._desk.preferences
        preferences.set("export.format", self.form)
        preferences.set("export.folder", str(place if self._many else place.parent))
        self._running = True
        self._choices.hide()
        self.go.hide()
        self.bar.show()
        self.bar.setValue(0)
        self._text.show_text(self.tr("Writing {0}").format(display(str(place), 300)))
        self.job.begin(self._wanted, self.form, place, many=self._many)

    def _show_progress(self, done: int, share: float) -> None:
        files = len(self._wanted.views) if self._many else 1
        self.bar.setValue(round((done + share) * _STEPS / files))

    def _show_end(self, outcome: Outcome) -> None:
        self._running, self._outcome = False, outcome
        self.bar.hide()
        self.folder.setVisible(bool(outcome.files))
        self.close_.setText(self.tr("Close"))
        self._headline.show_text(self._ending(outcome))
        self._text.show_text(display(str(outcome.place), 300) if outcome.files else "")
        notes = [note for one in outcome.files[:_MOST_SAID] for note in one.notes]
        said = [self._refusal(one) for one in outcome.refused[:_MOST_SAID]]
        if more := len(outcome.refused) - len(said):
            said.append(self.tr("… and {0} more").format(count(more)))
        self._problems.show_text("\n".join([*said, *map(retold, notes)]))
        self._problems.setVisible(bool(said or notes))

    def _refusal(self, refused: Refused) -> str:
        """Return the error text, with the task's name and ledger if there are several."""
        said = language.sentence(refused.error)
        if refused.view is None or len(self._wanted.views) < 2:
            return said
        return self.tr("{0}: {1}").format(name_with_ledger(refused.view), said)

    def _ending(self, outcome: Outcome) -> str:
        if outcome.stopped:
            return self.tr("The export was stopped")
        if not outcome.files:
            return self.tr("Nothing was exported")
        number, rows = count(len(outcome.files)), count(outcome.rows)
        if outcome.files[0].format in (*RECORDING_ENDINGS, WACZ):
            one = len(outcome.files) == 1
            return self.tr("Exported") if one else self.tr("Exported: {0} files").format(number)
        if outcome.files[0].format == "zip":  # A zip counts its files as rows
            return self._zips(len(outcome.files), outcome.rows)
        one = outcome.rows == 1
        if len(outcome.files) == 1:
            said = self.tr("Exported: 1 row") if one else self.tr("Exported: {0} rows")
            return said.format(rows)
        many = self.tr("Exported: {0} files with {1} rows")
        said = self.tr("Exported: {0} files with 1 row") if one else many
        return said.format(number, rows)

    def _zips(self, number: int, files: int) -> str:
        said = self.tr("Exported: {0} zip with {1} files")
        if files == 1:
            said = self.tr("Exported: {0} zip with 1 file")
        return said.format(count(number), count(files))

    def _show_folder(self) -> None:
        place = self._outcome.place
        show_folder(place if self._many else place.parent)

    def reject(self) -> None:
        """Stop a running export, or close the dialog (button, Esc and window frame).

        Calling `close` here would call this method again and never close.
        """
        if self._running:
            self.job.stop()
        else:
            super().reject()
