"""Tabs of the result viewer: contract, preview, source, and differences between two runs.

HTML is shown as text, never rendered.
"""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QCoreApplication,
    QModelIndex,
    QObject,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeySequence, QShortcut, QSyntaxHighlighter, QTextCharFormat
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from engine.contracts.contract_progress import ContractView
from engine.export.exporter import Comparison
from engine.model.display import display, display_lines
from engine.model.errors import EngineError
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskRecord, TaskView
from engine.model.status import moment
from engine.results.file_reader import FileFacts
from engine.results.units import Difference, Differences, Unit
from engine.service.engine import Engine
from engine.text.messages import retold
from engine.text.words import clock, count, status_word
from gui.context.window_context import Desk
from gui.details.details_tab import EDGES
from gui.details.screenshots import PicturePane
from gui.details.unit_bars import KindChips
from gui.details.unit_columns import name_of
from gui.i18n import language
from gui.style.editors import read_only_text
from gui.style.tables import (
    COLOUR,
    DISPLAY,
    ROOT,
    SPOKEN,
    TOOL_TIP,
    AnyIndex,
    PlainTable,
    copy_rows,
)
from gui.style.theme import PlainLabel, plain_label, plain_tip, tone
from gui.style.widgets import EmptyNote, arrange
from gui.tasks.row import Row

# Base class of the result viewer's tabs.


class ViewerTab(QWidget):
    """Viewer tab, updated only while it is current. It reads through `desk.bridge`, never on the
    loop. `empty` is emitted when it has read that it has nothing for the task.
    """

    empty = Signal()

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.desk = desk

    @abstractmethod  # checked by mypy: Qt's metaclass excludes ABC
    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        """Show this task, and this one of its units."""

    def leave(self) -> None:
        """Cancel running reads when the tab is hidden."""


# Contract tab: counts, guard and named items of a task's contract.

_CHARS = 500


class ContractTab(ViewerTab):
    """Contract of the task, or a note that there is none."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.facts = plain_label("", self, wrap=True)
        self.items = read_only_text(self, self.tr("Items of the contract"))
        self.nothing = EmptyNote(self)
        self._ended = False
        arrange(QVBoxLayout(self), self.facts, (self.items, 1), margins=EDGES)
        self.setFocusProxy(self.items)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        link = contract_of(view)
        self._ended = isinstance(view.entry, TaskRecord) and view.entry.is_terminal
        for part in (self.facts, self.items):
            part.setVisible(link is not None)
        self.nothing.tell("" if link is not None else self.tr("No contract."))
        if link is None:
            return
        self.desk.bridge.ask(
            lambda engine: engine.contracts.get(link), self._show, self._show_error, name=self._name
        )

    def leave(self) -> None:
        self.desk.bridge.call_off(self._name)

    @property
    def _name(self) -> str:
        return f"contract {id(self)}"

    def _show(self, found: ContractView) -> None:
        self.facts.show_text("\n".join(_facts(found, ended=self._ended)))
        text = "\n".join(_items(found))
        if self.items.toPlainText() != text:
            self.items.setPlainText(text)

    def _show_error(self, error: EngineError) -> None:
        self.facts.show_text(language.sentence(error))


def contract_of(view: TaskView) -> str | None:
    """Return the id of the task's contract; None without one."""
    engine_fields = view.entry.engine if isinstance(view.entry, TaskRecord) else None
    return engine_fields.contract_id if engine_fields is not None else None


def _tr(text: str) -> str:
    return QCoreApplication.translate("ContractTab", text)


def _facts(found: ContractView, *, ended: bool) -> Iterator[str]:
    one, guard = found.contract, found.guard
    expected = _tr("unknown") if one.expected_total is None else count(one.expected_total)
    counts = _tr("Expected {0} · done {1} · failed {2} · skipped {3}")
    numbers = map(count, (one.completed_total, one.failed_total, one.skipped_total))
    said = counts.format(expected, *numbers)
    if guard.missing_count:
        said += " · " + _tr("missing {0}").format(count(guard.missing_count))
    yield said
    yield display(retold(guard.reason), _CHARS)
    # "Complete it." is no advice for a task that has ended.
    if guard.suggested_next_action and not (ended and guard.allowed):
        yield display(retold(guard.suggested_next_action), _CHARS)
    if one.forced is not None:
        text = _tr("⚑ Forced by {0} at {1}: {2}")
        at = clock(moment(one.forced.at))
        yield text.format(display(one.forced.by, 80), at, display(one.forced.reason, _CHARS))


def _items(found: ContractView) -> Iterator[str]:
    one = found.contract
    for item in found.missing:
        yield _tr("missing: {0}").format(display(item, _CHARS))
    for failed in one.failed:
        text = _tr("failed: {0} ({1})")
        yield text.format(display(failed.item, _CHARS), display(failed.reason, _CHARS))
    for skipped in one.skipped:
        text = _tr("skipped: {0} ({1})")
        yield text.format(display(skipped.item, _CHARS), display(skipped.reason, _CHARS))
    for item in one.completed:
        yield _tr("done: {0}").format(display(item, _CHARS))


# Preview tab: the screenshot of the current unit; for commands also the previous one.


class Preview(ViewerTab):
    """Screenshot of the current unit; without one, the task's first screenshot."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._shown: tuple[str, str] = ("", "")
        self._wanted = ""
        self.title = plain_label("", self, tone="muted", wrap=True)
        self.before, self.now = PicturePane(desk, self), PicturePane(desk, self)
        both = QSplitter(self)
        both.addWidget(_titled(self.tr("Before"), self.before))
        after = _titled(self.tr("After"), self.now)
        self._after = after.findChild(PlainLabel)
        both.addWidget(after)
        both.setChildrenCollapsible(False)
        self._both = both
        self.nothing = EmptyNote(self)
        arrange(QVBoxLayout(self), self.title, (both, 1), margins=EDGES)
        self.setFocusProxy(self.now)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        task_id, wanted = view.task_id, unit.shot if unit is not None else ""
        name = unit.name if unit is not None else ""
        if self._shown == (task_id, f"{wanted} {name}"):
            return
        self._shown, self._wanted = (task_id, f"{wanted} {name}"), wanted
        self.title.show_text(name_of(unit) if unit is not None else "")
        steps = traits_of(getattr(view.entry, "kind", "")).steps
        self.desk.bridge.ask(
            lambda engine: engine.reading.files(task_id),
            lambda files: self._show(task_id, files, steps=steps),
            self._show_error,
            name=f"preview {id(self)}",
        )

    def leave(self) -> None:
        self.desk.bridge.call_off(f"preview {id(self)}")
        self._shown = ("", "")

    def _show(self, task_id: str, files: tuple[FileFacts, ...], *, steps: bool) -> None:
        pictures = [one.name for one in files if one.is_picture]
        wanted = f"artifacts/{self._wanted}"
        at = pictures.index(wanted) if wanted in pictures else -1
        holder = self.before.parentWidget()
        assert holder is not None
        holder.setVisible(steps and at > 0)
        if self._after is not None:
            self._after.setVisible(steps and at > 0)
        if steps and at > 0:
            self.before.show_picture(task_id, pictures[at - 1])
        if not pictures:
            self._tell(
                self.tr("No screenshots were taken. Source has the text; the form has the option.")
            )
            self.empty.emit()
        elif at < 0 and not self._wanted and self.title.text():
            self._tell(self.tr("There is no picture of {0}").format(self.title.text()))
        else:
            self._tell("")
            self.now.show_picture(task_id, wanted if at >= 0 else pictures[0])

    def _tell(self, text: str) -> None:
        """Show this text in place of the pictures, or them."""
        for part in (self.title, self._both):
            part.setVisible(not text)
        self.nothing.tell(text)

    def _show_error(self, error: EngineError) -> None:
        self._tell(language.sentence(error))


def _titled(text: str, pane: QWidget) -> QWidget:
    box = QWidget()
    arrange(QVBoxLayout(box), plain_label(text, box, tone="muted"), (pane, 1), margins=0)
    return box


MOST = 300_000  # characters; an export is not limited
MOST_BYTES = 4 * MOST
_WRAP = 4_000  # characters of one line; Qt needs seconds to lay out a longer one
_TEXTS = ("html", "content", "text")


class Source(ViewerTab):
    """Text of the current unit."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._shown: tuple[str, int] = ("", -1)
        self._title = plain_label("", self, tone="muted", wrap=True)
        self.text = read_only_text(self, self.tr("Source as text"), fixed=True)
        arrange(QVBoxLayout(self), self._title, (self.text, 1), margins=EDGES)
        self.setFocusProxy(self.text)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        if unit is None:
            self.leave()
            self._title.show_text(self.tr("Choose a row in the first tab."))
            self.text.clear()
            return
        if self._shown == (view.task_id, unit.number):
            return
        self._shown, task_id = (view.task_id, unit.number), view.task_id
        self._title.show_text(name_of(unit))
        self.desk.bridge.ask(
            lambda engine: _text(engine, task_id, unit),
            self._show,
            self._show_error,
            name=f"source {id(self)}",
        )

    def leave(self) -> None:
        self.desk.bridge.call_off(f"source {id(self)}")
        self._shown = ("", -1)

    def _show(self, text: str) -> None:
        self.text.setPlainText(text)
        if not text:
            self._title.show_text(self.tr("No text was kept of this one."))

    def _show_error(self, error: EngineError) -> None:
        self._shown = ("", -1)  # so that the next call retries
        self._title.show_text(language.sentence(error))


async def _text(engine: Engine, task_id: str, unit: Unit) -> str:
    row = await engine.reading.unit(task_id, unit) or {}
    with suppress(EngineError, OSError):  # without its file, the record is all there is
        document = await engine.reading.document(task_id, row, MOST_BYTES)
        row = row if document is None else {"text": document}
    return await asyncio.to_thread(source_text, row)


def source_text(row: Mapping[str, Any]) -> str:
    """Return a unit's text, else the unit as JSON, sanitised."""
    inner = row.get("result")
    places = (row, inner) if isinstance(inner, Mapping) else (row,)
    found = (place.get(name) for place in places for name in _TEXTS)
    text = next((one for one in found if isinstance(one, str) and one), None)
    if text is None:
        text = json.dumps(row, ensure_ascii=False, indent=2, default=str) if row else ""
    lines = display_lines(text, MOST).split("\n")
    return "\n".join(
        line[at : at + _WRAP] for line in lines for at in range(0, max(1, len(line)), _WRAP)
    )


KINDS = ("added", "removed", "changed")
MOST_RUNS = 50
_TONES = {"added": "good", "removed": "bad", "changed": "warning"}


class DiffModel(QAbstractTableModel):
    """Differences, filtered by kind of change."""

    widths = (12, 52, 28, 0)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: Sequence[Difference] = ()
        self._shown: Sequence[Difference] = ()

    def difference_at(self, row: int) -> Difference:
        return self._shown[row]

    @property
    def shown(self) -> Sequence[Difference]:
        return self._shown

    def show_differences(self, found: Sequence[Difference], kinds: frozenset[str]) -> None:
        self.beginResetModel()
        self._all = found
        self._shown = [one for one in found if not kinds or one.change in kinds]
        self.endResetModel()

    def keep_to(self, kinds: frozenset[str]) -> None:
        self.show_differences(self._all, kinds)

    def word(self, kind: str) -> str:
        words = {
            "added": self.tr("+ Added"),
            "removed": self.tr("− Removed"),
            "changed": self.tr("≠ Changed"),
        }
        return words[kind]

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self.widths)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        one = self._shown[index.row()]
        if role == COLOUR and index.column() == 0:
            return tone(_TONES[one.change], QApplication.palette())
        after = one.after
        if one.units is not None and one.before == one.after:
            after = self.tr("{0} · other text").format(after)
        cells = (self.word(one.change), one.name, one.before, after)
        if role == DISPLAY:
            return cells[index.column()]
        if role == TOOL_TIP:
            return plain_tip(cells[index.column()])
        return ", ".join(cells) if role == SPOKEN else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or role != DISPLAY:
            return None
        return (self.tr("Change"), self.tr("Item"), self.tr("Before"), self.tr("Now"))[section]


class Diff(ViewerTab):
    """Diff tab; `known` returns the rows of all tasks, to find runs of the same target."""

    compared = Signal()  # `comparison` has changed
    _read = Signal(int)  # from a thread

    def __init__(
        self, desk: Desk, known: Callable[[], Sequence[Row]], parent: QWidget | None = None
    ) -> None:
        super().__init__(desk, parent)
        self._known, self._task_id, self._reached_all = known, "", True
        self._comparison: Comparison | None = None
        self.runs = QComboBox(self)
        self.model = DiffModel(self)
        # The sign before the word is wide.
        longest = max(len(self.model.word(kind)) for kind in KINDS) + 4
        widths = (max(self.model.widths[0], longest), *self.model.widths[1:])
        self.table = PlainTable(self.model, self.tr("Differences"), widths, self, grows=1)
        self.chips = KindChips(KINDS, self.model.word, self)
        self.state = plain_label("", self, tone="muted", wrap=True)
        self.stop = QPushButton(self.tr("Stop"), self)
        self.lines = read_only_text(self, self.tr("What differs in the text of the selected item"))
        self._inks = _LineColours(self.lines)
        self._lay_out()
        self.table.selectionModel().currentRowChanged.connect(self._choose)
        self.model.modelReset.connect(self.lines.hide)
        QShortcut(QKeySequence.StandardKey.Copy, self.table, self._copy).setContext(
            Qt.ShortcutContext.WidgetShortcut
        )
        self.runs.activated.connect(lambda _: self._compare())
        self.chips.changed.connect(self.model.keep_to)
        self.stop.clicked.connect(self._stop)
        self._read.connect(self._show_progress)

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        label = plain_label(self.tr("Compare with"), self)
        label.setBuddy(self.runs)
        self.runs.setAccessibleName(self.tr("The run to compare with"))
        self.runs.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        for widget in (label, self.runs, self.chips, self.stop):
            row.addWidget(widget)
        row.addWidget(self.state, 1)
        self.stop.hide()
        self.lines.hide()
        arrange(QVBoxLayout(self), row, (self.table, 1), (self.lines, 1), margins=EDGES)
        self.setFocusProxy(self.runs)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        if view.task_id == self._task_id:
            return
        self._task_id, self._view = view.task_id, view
        self.runs.clear()
        self._clear()
        self.chips.show_counts({})
        rows = self._known()
        self.desk.bridge.ask(
            lambda _: asyncio.to_thread(runs_of_same_target, view, rows),
            self._offer,
            name=f"runs {id(self)}",
        )

    def _offer(self, others: Sequence[TaskView]) -> None:
        for other in others:
            self.runs.addItem(run_words(other), other.task_id)
        self.runs.setEnabled(self.runs.count() > 0)
        if self.runs.count():
            self._compare()
        else:
            self.state.show_text(self.tr("There is no other run of the same target."))
            self.empty.emit()

    def leave(self) -> None:
        self._stop()
        self._task_id = ""

    @property
    def comparison(self) -> Comparison | None:
        """The shown differences; None unless two runs were compared."""
        made = self._comparison
        return made and replace(made, shown=self.model.shown)

    def _copy(self) -> None:
        copy_rows(self.table, lambda row, column: str(self.model.index(row, column).data()))

    def _clear(self) -> None:
        self._comparison = None
        self.model.show_differences((), frozenset())
        self.compared.emit()

    @property
    def _name(self) -> str:
        return f"diff {id(self)}"

    def _compare(self) -> None:
        other, task_id = str(self.runs.currentData()), self._task_id
        self._clear()
        self.state.show_text(self.tr("Comparing…"))
        self.stop.show()

        async def compare(engine: Engine) -> Differences:
            found = await engine.reading.differences(other, task_id, self._read.emit)
            self._reached_all = await engine.tasks.loaded_all(task_id)
            return found

        self.desk.bridge.ask(compare, partial(self._show, other), self._show_error, name=self._name)

    def _stop(self) -> None:
        for name in (self._name, f"runs {id(self)}", self._lines_name):
            self.desk.bridge.call_off(name)
        self.stop.hide()
        if self.state.text():
            self.state.show_text(self.tr("Not compared."))

    def _show_progress(self, read: int) -> None:
        if self.stop.isVisible():
            self.state.show_text(self.tr("Comparing… {0} read").format(count(read)))

    def _show(self, other: str, found: Differences) -> None:
        self.stop.hide()
        counts = {"added": found.added, "removed": found.removed, "changed": found.changed}
        self.model.show_differences(found.found, self.chips.wanted)
        self._comparison = Comparison(other, self._view, found, (), self._reached_all)
        self.compared.emit()
        self.chips.show_counts(Counter(counts))
        text = self.tr("{0} are the same.")
        if not found.found:
            text = self.tr("Nothing differs: {0} are the same.")
        elif sum(counts.values()) > len(found.found):
            text = self.tr("{0} are the same. Only the first differences are shown.")
        said = text.format(count(found.same))
        if found.removed and not self._reached_all:
            said += " " + self.tr("This run did not load all pages: a removed one may still exist.")
        self.state.show_text(said)

    def _choose(self, current: QModelIndex, _: QModelIndex) -> None:
        """Show by which lines the text of the selected item differs."""
        self.desk.bridge.call_off(self._lines_name)
        one = self.model.difference_at(current.row()) if current.isValid() else None
        if one is None or one.units is None:
            self.lines.hide()
            return
        before, after = str(self.runs.currentData()), self._task_id
        self.desk.bridge.ask(
            lambda engine: engine.reading.text_difference(before, after, one),
            self._show_lines,
            self._show_error,
            name=self._lines_name,
        )

    @property
    def _lines_name(self) -> str:
        return f"diff lines {id(self)}"

    def _show_lines(self, lines: Sequence[str]) -> None:
        said = (display(line, MOST_OF_LINE) for line in lines)
        text = "\n".join(said) or self.tr("Only white space or what is not text differs.")
        self.lines.setPlainText(text)
        self.lines.show()

    def _show_error(self, error: EngineError) -> None:
        self.stop.hide()
        self.state.show_text(language.sentence(error))


MOST_OF_LINE = 2_000


class _LineColours(QSyntaxHighlighter):
    """Lines of one run in the colour of what was added or removed."""

    def __init__(self, text: QPlainTextEdit) -> None:
        super().__init__(text.document())

    def highlightBlock(self, text: str) -> None:
        name = {"+": "good", "-": "bad", "@": "muted"}.get(text[:1])
        if name is not None:
            form = QTextCharFormat()
            form.setForeground(tone(name, QApplication.palette()))
            self.setFormat(0, len(text), form)


def run_words(view: TaskView) -> str:
    """Describe a run in a list: creation time, state, id, and its ledger if it is another one."""
    at = clock(moment(view.entry.created_at))
    told = (at, status_word(view), plain_id(view.task_id)[:8], view.ledger)
    return " · ".join(filter(None, told))


def runs_of_same_target(view: TaskView, rows: Sequence[Row]) -> list[TaskView]:
    """Return tasks of equal kind and address: earlier ones newest first, then later ones.

    Slow with many rows, so call it in a thread.
    """
    entry = view.entry
    if not isinstance(entry, TaskRecord):
        return []
    same = [
        other
        for other in (row.view for row in rows)
        if isinstance(other.entry, TaskRecord)
        and other.task_id != view.task_id
        and (other.entry.kind, other.entry.url) == (entry.kind, entry.url)
    ]
    older = [other for other in same if other.entry.created_at <= entry.created_at]
    newer = [other for other in same if other.entry.created_at > entry.created_at]
    older.sort(key=lambda other: other.entry.created_at, reverse=True)
    newer.sort(key=lambda other: other.entry.created_at)
    return [*older, *newer][:MOST_RUNS]
