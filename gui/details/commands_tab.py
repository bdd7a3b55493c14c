"""Commands tab: each step with state and time; the selected one with arguments and result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import clipboard_cell, display, display_lines
from engine.model.errors import EngineError
from engine.model.records import TaskRecord, TaskView
from engine.service.engine import Engine
from engine.text.messages import retold
from engine.text.words import took
from gui.context.window_context import Desk
from gui.details.details_tab import EDGES, DetailTab, PartBar
from gui.details.screenshots import PicturePane
from gui.details.unit_columns import TONES, kind_word, longest_state
from gui.engine_link.scheduling import Throttle
from gui.i18n import language
from gui.style.editors import read_only_text
from gui.style.menu import Menu
from gui.style.questions import open_in_browser
from gui.style.tables import (
    COLOUR,
    DISPLAY,
    ROOT,
    SPOKEN,
    TOOL_TIP,
    AnyIndex,
    PlainTable,
    marked_rows,
)
from gui.style.theme import plain_label, plain_tip, tone
from gui.style.widgets import arrange

# Table of a command task's commands: number, state, tool, intention and duration.

Step = Mapping[str, Any]

_CHARS = 300
_KINDS = {"success": "done", "error": "failed", "pending": "waiting"}
_KIND_AT, _SAID_AT = 1, 5
_PROSE = (_KIND_AT, 3, _SAID_AT)


class StepModel(QAbstractTableModel):
    """Commands of a task; `show_steps` emits only changed rows, so the selection is kept."""

    widths = (3, 11, 19, 26, 10, 0)
    least = (2, 9, 7, 8, 5, 8)  # in characters, for a narrow panel

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._steps: list[Step] = []
        self._cells: list[tuple[str, ...]] = []

    def show_steps(
        self, steps: Sequence[Step], wanted: Callable[[Step], bool] = lambda _: True
    ) -> None:
        """Show the steps that pass `wanted`, numbered among all steps."""
        shown = [(number, step) for number, step in enumerate(steps, 1) if wanted(step)]
        steps, cells = [step for _, step in shown], [_cells(*one) for one in shown]
        if len(cells) != len(self._cells):
            self.beginResetModel()
            self._steps, self._cells = list(steps), cells
            self.endResetModel()
            return
        before, self._cells = self._cells, cells
        self._steps = list(steps)
        for row, (old, new) in enumerate(zip(before, cells, strict=True)):
            if old != new:
                self.dataChanged.emit(self.index(row, 0), self.index(row, len(new) - 1))

    def step_at(self, row: int) -> Step:
        return self._steps[row]

    def most_telling(self) -> int:
        """Return the row of the failed step, else 0."""
        kinds = [step.get("status") for step in self._steps]
        return kinds.index("error") if "error" in kinds else 0

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._cells)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self.widths)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        cells = self._cells[index.row()]
        if role == DISPLAY:
            return cells[index.column()]
        if role == TOOL_TIP:
            return plain_tip(cells[index.column()])
        kind = _kind(self._steps[index.row()])
        failed_text = index.column() == _SAID_AT and kind == "failed"
        if role == COLOUR and (index.column() == _KIND_AT or failed_text):
            return tone(TONES.get(kind, "muted"), QApplication.palette())
        return ", ".join(filter(None, cells)) if role == SPOKEN else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or role not in (DISPLAY, TOOL_TIP):
            return None
        titles = (
            *(self.tr("#"), self.tr("State"), self.tr("Tool"), self.tr("What for")),
            *(self.tr("Time"), self.tr("Arguments or error")),
        )
        return titles[section]


def _kind(step: Step) -> str:
    status = step.get("status")
    return _KINDS.get(status, status) if isinstance(status, str) else "waiting"


def _lasted(began: object, ended: object) -> str:
    if isinstance(began, int | float) and isinstance(ended, int | float):
        return took(ended - began)
    return ""


def _in_words(args: object) -> str:
    """Format arguments, the action first for narrow cells: `check, selector #agree`."""
    if not isinstance(args, Mapping):
        return json.dumps(args, ensure_ascii=False, default=str)
    told = [str(args["action"])] if "action" in args else []
    for name, value in args.items():
        if name != "action":
            text = value if isinstance(value, str) else None
            told.append(f"{name} {text or json.dumps(value, ensure_ascii=False, default=str)}")
    return ", ".join(told)


def _cells(number: int, step: Step) -> tuple[str, ...]:
    warning, said = step.get("warning"), _error_words(step)
    if not said and isinstance(warning, str):
        said = f"⚠ {retold(warning)}"
    said = said or _in_words(step.get("args", {}))
    return (
        str(number),
        display(kind_word(_kind(step)), 40),
        # All tools have this prefix, for which narrow columns have no room.
        display(str(step.get("tool_name", "")).removeprefix("browser_"), 80),
        display(str(step.get("intention", "")), _CHARS),
        _lasted(step.get("startedAt"), step.get("completedAt")),
        display(said, _CHARS),
    )


def _error_words(step: Step) -> str:
    """Return why a command failed, with its code; "" for others."""
    error = step.get("error")
    if not isinstance(error, Mapping):
        return ""
    return f"{retold(str(error.get('message', '')))} [{error.get('code', '')}]"


AGAIN_MS = 400
_MOST_CHARS = 60_000


class Commands(DetailTab):
    """Steps of a command task, updated live."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id = ""
        self._shown = -1
        self._steps: list[Mapping[str, Any]] = []
        self.model = StepModel(self)
        number, state, *rest = self.model.widths
        widths = (number, max(state, longest_state()), *rest)
        name, least = self.tr("Commands"), self.model.least
        self.table = PlainTable(self.model, name, widths, self, least=least)
        self.table.elide_right(_PROSE)
        self.text = read_only_text(self, self.tr("The command in full"), fixed=True)
        self.picture = PicturePane(desk, self)
        self.retry = QPushButton(self.tr("Retry failed…"), self)
        self._problem = plain_label("", self, tone="warning", wrap=True)
        self.part = PartBar(self)
        self._again = Throttle(self, AGAIN_MS, self._look)
        self._lay_out()
        self.table.selectionModel().currentRowChanged.connect(self._choose)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._open_menu)
        QShortcut(QKeySequence.StandardKey.Copy, self.table, self.copy).setContext(
            Qt.ShortcutContext.WidgetShortcut
        )
        self.retry.clicked.connect(lambda: self.desk.wishes.retry.emit(self._task_id, ""))
        self.part.all_time.connect(desk.span.clear)
        desk.span.changed.connect(self._apply_time_range)
        self.part.show_span(desk.span.range)

    def _lay_out(self) -> None:
        side = QWidget(self)
        beside = QVBoxLayout(side)
        beside.setContentsMargins(0, 0, 0, 0)
        whole = QSplitter(Qt.Orientation.Horizontal, self)
        whole.addWidget(self.table)
        whole.addWidget(side)
        beside.addWidget(self.text, 1)
        beside.addWidget(self.picture, 1)
        whole.setStretchFactor(0, 3)
        whole.setStretchFactor(1, 2)
        whole.setChildrenCollapsible(False)
        self._put_together(whole)

    def _put_together(self, whole: QWidget) -> None:
        row = QHBoxLayout()
        row.addWidget(self._problem, 1)
        row.addStretch(0)
        row.addWidget(self.retry, 0, Qt.AlignmentFlag.AlignRight)
        arrange(QVBoxLayout(self), row, self.part, (whole, 1), margins=EDGES)
        self._problem.hide()
        self.retry.hide()
        self.picture.hide()
        self.setFocusProxy(self.table)

    def show_task(self, view: TaskView) -> None:
        if view.task_id != self._task_id:
            self.desk.bridge.call_off(self._name("step"))
            self._task_id, self._shown, self._steps = view.task_id, -1, []
            self.model.show_steps(())
            self._show_text("")
            self._look()
        else:
            self._again.request()
        entry = view.entry
        failed = isinstance(entry, TaskRecord) and entry.status == "FAILED"
        self.retry.setVisible(failed)

    def leave(self) -> None:
        self._again.cancel()
        self._task_id = ""
        for name in ("steps", "step"):
            self.desk.bridge.call_off(self._name(name))

    def _name(self, what: str) -> str:
        return f"{what} {id(self)}"

    def _look(self) -> None:
        task_id = self._task_id
        self.desk.bridge.ask(
            lambda engine: engine.tasks.command_task(task_id, results=False),
            self._show,
            self._show_error,
            name=self._name("steps"),
        )

    def _show(self, task: Mapping[str, Any] | None) -> None:
        steps: Sequence[Any] = (task or {}).get("commands") or ()
        self._problem.hide()
        self._steps = [one for one in steps if isinstance(one, Mapping)]
        self._fill()

    def _apply_time_range(self) -> None:
        """Show only steps that ran in the time range selected in the Timeline."""
        self.part.show_span(self.desk.span.range)
        self._shown = -1
        self.table.setCurrentIndex(QModelIndex())
        self._show_text("")
        self._show_picture("")
        self._fill()

    def _fill(self) -> None:
        self.model.show_steps(self._steps, lambda step: _touches(step, self.desk.span.range))
        if self.model.rowCount() and not self.table.currentIndex().isValid():
            self.table.selectRow(self.model.most_telling())
            QTimer.singleShot(0, self.table, self._show_current)  # once it has its height
        elif self._shown >= 0:
            self._open(self._shown)

    def _show_current(self) -> None:
        self.table.scrollTo(self.table.currentIndex())

    def _show_error(self, error: EngineError) -> None:
        self._problem.show_text(language.sentence(error))
        self._problem.show()

    def _choose(self, current: QModelIndex, _: QModelIndex) -> None:
        if current.isValid():
            self._shown = -1
            self._open(current.row())

    def _open(self, row: int) -> None:
        """Show this step; its result is read on demand, once the step has ended."""
        if row >= self.model.rowCount():
            return
        step = self.model.step_at(row)
        over = step.get("status") in ("success", "error", "skipped")
        self._shown = -1 if over else row
        self._show_text(step_text(step))
        self._show_picture("")
        if over and self._task_id:
            task_id, wanted = self._task_id, step.get("id")
            self.desk.bridge.ask(
                lambda engine: _with_result(engine, task_id, wanted),
                self._show_result,
                self._show_error,
                name=self._name("step"),
            )

    def _show_result(self, step: Mapping[str, Any] | None) -> None:
        if step is not None:
            self._show_text(step_text(step))
            self._show_picture(_picture_of(step))

    def copy(self) -> None:
        """Copy the selected rows as tab-separated text."""
        columns = range(self.model.columnCount())
        lines = [
            "\t".join(clipboard_cell(self.model.index(row, at).data()) for at in columns)
            for row in marked_rows(self.table)
        ]
        QGuiApplication.clipboard().setText("\n".join(lines))

    def menu(self, row: int) -> QMenu:
        """Return the menu of a step; the caller deletes it."""
        step, menu = self.model.step_at(row), Menu(self)
        if address := _address_of(step):
            menu.addAction(self.tr("Copy &address")).triggered.connect(
                lambda: QGuiApplication.clipboard().setText(address)
            )
            menu.addAction(self.tr("Open in &browser")).triggered.connect(
                lambda: open_in_browser(address)
            )
        menu.addAction(self.tr("Copy &row")).triggered.connect(self.copy)
        text = step_text(step)
        menu.addAction(self.tr("Copy &step in full")).triggered.connect(
            lambda: QGuiApplication.clipboard().setText(text)
        )
        return menu

    def _open_menu(self, at: QPoint) -> None:
        index = self.table.indexAt(at)
        index = index if index.isValid() else self.table.currentIndex()
        if index.isValid():
            menu = self.menu(index.row())
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(self.table.viewport().mapToGlobal(at))

    def _show_picture(self, name: str) -> None:
        self.picture.setVisible(bool(name))
        if name:
            self.picture.show_picture(self._task_id, name)

    def _show_text(self, text: str) -> None:
        if self.text.toPlainText() != text:
            self.text.setPlainText(text)


async def _with_result(engine: Engine, task_id: str, wanted: object) -> Mapping[str, Any] | None:
    """Read the step with its result."""
    async for part in engine.reading.units(task_id):
        for unit in part.units:
            found = await engine.reading.unit(task_id, unit)
            if found is not None and found.get("id") == wanted:
                return found
    return None


def _address_of(step: Mapping[str, Any]) -> str:
    """Return the web address at which a step failed, or that it opened; empty without one."""
    for part in ("failure", "result", "args"):
        found = step.get(part)
        url = found.get("url") if isinstance(found, Mapping) else None
        if isinstance(url, str) and url.startswith(("http://", "https://")):
            return display(url, _MOST_CHARS)
    return ""


def _picture_of(step: Mapping[str, Any]) -> str:
    """Return the picture that a step took, or that was taken when it failed."""
    for part, name in (("failure", "screenshot"), ("result", "path")):
        found = step.get(part)
        path = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(path, str):
            return path
    return ""


def _touches(step: Mapping[str, Any], span: tuple[float, float] | None) -> bool:
    """Return whether the step ran in this time range (ms since 1970); unstarted steps did not."""
    began, ended = step.get("startedAt"), step.get("completedAt")
    if span is None:
        return True
    if not isinstance(began, int | float):
        return False
    return began <= span[1] and (not isinstance(ended, int | float) or ended >= span[0])


def step_text(step: Mapping[str, Any]) -> str:
    """Format a command in full as plain text."""
    began, ended = step.get("startedAt"), step.get("completedAt")
    told = [display(str(step.get("tool_name", "")), 80)]
    if isinstance(began, int | float) and isinstance(ended, int | float):
        told.append(took(ended - began))
    parts = [" · ".join(told)]
    if said := _error_words(step):  # first, where there is little room
        parts[0] = f"{display_lines(said, 2_000)}\n{parts[0]}"
    if intention := step.get("intention"):
        parts[0] += f"\n{display_lines(str(intention), 2_000)}"
    if isinstance(warning := step.get("warning"), str):
        parts.append(f"⚠ {display_lines(retold(warning), 2_000)}")
    shown = (name for name in ("error", "failure", "args", "result") if step.get(name) is not None)
    parts += [f"{name}:\n{_pretty(step[name])}" for name in shown]
    return "\n\n".join(parts)


def _pretty(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return display_lines(text, _MOST_CHARS)
