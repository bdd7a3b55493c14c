"""A task's units with search and switches: read in parts, and on as long as the task goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

from PySide6.QtCore import QModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from engine.model.display import clipboard_cell
from engine.model.errors import EngineError
from engine.model.records import TaskRecord, TaskView
from engine.results.unit_rows import UnitPart
from engine.results.units import Unit
from engine.text.words import count
from gui.details.unit_columns import UnitColumn, kind_word, longest_state
from gui.details.unit_model import KEPT, UnitModel
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.results.kind_chips import KindChips
from gui.style.clearable import clearable
from gui.style.elided_label import ElidedLabel
from gui.style.plain_table import PlainTable

AGAIN_MS = 500  # a task that goes on is looked at again no more often
KINDS = ("done", "2xx", "3xx", "4xx", "5xx", "failed", "skipped", "refused", "running", "waiting")
_TYPED_MS = 120


class UnitList(QWidget):
    """`chosen` tells the unit that is current, `activated` one that was opened, `counted` that
    there are other numbers. `more` may yield rows of other kinds behind the units.
    """

    chosen = Signal(object)
    activated = Signal(object)
    counted = Signal()

    def __init__(
        self, desk: Desk, columns: Sequence[UnitColumn], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._desk = desk
        self._task_id = ""
        self._resume = 0
        self._reading = self._live = False
        self._problem = ""
        self.more: Callable[[str, int], AsyncIterator[Sequence[Unit]]] | None = None
        self.model = UnitModel(columns, self)
        widths = [max(one.width, longest_state() * one.is_toned) for one in columns]
        grows = next(at for at, column in enumerate(columns) if column.key in ("name", "url"))
        self.table = PlainTable(self.model, self.tr("Items"), widths, self, grows=grows)
        self.table.let_sort()
        self.table.show_columns(self.model.rare_columns)
        self.search = QLineEdit(self)
        self.chips = KindChips(KINDS, kind_word, self)
        self._state = ElidedLabel("muted", self)
        self._typed = QTimer(self, singleShot=True, interval=_TYPED_MS)
        self._again = QTimer(self, singleShot=True, interval=AGAIN_MS)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        self.search.setPlaceholderText(self.tr("Search items"))
        self.search.setAccessibleName(self.tr("Search items"))
        clearable(self.search)
        self.search.setFixedWidth(26 * self.fontMetrics().averageCharWidth())
        self.top = QHBoxLayout()
        self.top.addWidget(self.search)
        self.top.addWidget(self.chips)
        self.top.addStretch(1)
        self.top.addWidget(self._state)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.setSpacing(6)
        column.addLayout(self.top)
        column.addWidget(self.table, 1)
        self.setFocusProxy(self.table)

    def _connect(self) -> None:
        self.search.textChanged.connect(lambda _: self._typed.start())
        self._typed.timeout.connect(self._filter)
        self.chips.changed.connect(lambda _: self._filter())
        self.model.changed.connect(self._show_state)
        self.table.activated.connect(self._activate)
        self.table.selectionModel().currentRowChanged.connect(self._choose)
        self._again.timeout.connect(self._read)
        QShortcut(QKeySequence.StandardKey.Copy, self.table, self.copy).setContext(
            Qt.ShortcutContext.WidgetShortcut
        )

    @property
    def current(self) -> Unit | None:
        """The unit that the keyboard stands on."""
        index = self.table.currentIndex()
        return self.model.unit_at(index.row()) if index.isValid() else None

    @property
    def is_reading(self) -> bool:
        return self._reading

    def show_task(self, view: TaskView) -> None:
        """Show this task's units; of one that is shown, those that are new."""
        entry = view.entry
        was_live, self._live = self._live, isinstance(entry, TaskRecord) and entry.is_live
        if view.task_id != self._task_id:
            self.leave()
            self._task_id, self._resume, self._problem = view.task_id, 0, ""
            self.model.clear()
            self.chips.clear()
            self.search.clear()
            self._read()
        elif (self._live or was_live) and not self._reading and not self._again.isActive():
            self._again.start()

    def leave(self) -> None:
        """Nobody looks any more; what was not read to its end is read anew the next time."""
        self._again.stop()
        if self._reading:
            self._desk.bridge.call_off(self._name)
            self._reading = False
            self._task_id = ""

    def copy(self) -> None:
        """The marked rows as tab-separated text on the clipboard, with the columns shown."""
        rare = self.model.rare_columns
        columns = [one for at, one in enumerate(self.model.columns) if rare.get(at, True)]
        lines = [
            "\t".join(clipboard_cell(one.text(self.model.unit_at(row))) for one in columns)
            for row in self.table.marked_rows()
        ]
        QGuiApplication.clipboard().setText("\n".join(lines))

    @property
    def _name(self) -> str:
        return f"units {id(self)}"

    def _read(self) -> None:
        if self._task_id and not self._reading and self._resume >= 0:
            self._reading = True
            self._show_state()
            self._desk.bridge.spawn(self._take(self._task_id), name=self._name)

    async def _take(self, task_id: str) -> None:
        try:
            reading = self._desk.bridge.engine.reading
            parts = reading.units(task_id, self._resume, self.model.total)
            async with aclosing(parts):
                async for part in parts:
                    self._add(part)
            if self.more is not None and not self._live:
                async for units in self.more(task_id, self.model.total):
                    self.model.add(units)
        except EngineError as error:
            self._problem, self._resume = language.sentence(error), -1
        self._reading = False
        self.model.settle()
        self._show_state()
        self.counted.emit()

    def _add(self, part: UnitPart) -> None:
        if part.units:
            self.model.add(part.units)
        elif not self.model.total:
            self._show_state()
        if part.last:
            self._resume = part.resume

    def _filter(self) -> None:
        self._typed.stop()
        self.model.set_filter(self.chips.wanted, self.search.text())

    def _show_state(self) -> None:
        self.chips.show_counts(self.model.kinds)
        self.table.show_columns(self.model.rare_columns)
        shown, total = self.model.rowCount(), self.model.total
        if self._problem:
            text = self._problem
        elif self._reading and not total:
            text = self.tr("Reading…")
        elif self._reading:
            text = self.tr("Reading… {0}").format(count(total))
        elif not total:
            text = self.tr("Nothing here yet.") if self._live else self.tr("There is nothing here.")
        elif self.model.beyond:
            text = self.tr("The first {0} of {1}; an export has them all").format(
                count(KEPT), count(total + self.model.beyond)
            )
        elif shown == total:
            text = count(total)
        else:
            text = self.tr("{0} of {1}").format(count(shown), count(total))
        self._state.show_text(text)
        self._state.setToolTip("")

    def _activate(self, index: QModelIndex) -> None:
        self.activated.emit(self.model.unit_at(index.row()))

    def _choose(self, current: QModelIndex, _: QModelIndex) -> None:
        self.chosen.emit(self.model.unit_at(current.row()) if current.isValid() else None)
