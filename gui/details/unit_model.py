"""Units as a table that may have 100,000 rows: filtered and sorted here, never by a Qt proxy."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QObject,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtWidgets import QApplication

from engine.results.units import Unit, UnitFilter
from gui.details.unit_columns import TONES, UnitColumn, spoken, title_of
from gui.style.item_roles import ALIGNMENT, COLOUR, DISPLAY, ROOT, SPOKEN, TOOL_TIP, AnyIndex
from gui.style.theme import plain_tip, tone

_MIDDLE = Qt.AlignmentFlag.AlignVCenter
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft | _MIDDLE, Qt.AlignmentFlag.AlignRight | _MIDDLE
KEPT = 200_000  # rows; of a longer result an export has all
_SLICE_S = 0.004
EVERYTHING = UnitFilter()


class UnitModel(QAbstractTableModel):
    """`changed` tells that other rows, or other numbers of them, are there now."""

    changed = Signal()

    def __init__(self, columns: Sequence[UnitColumn], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self._by_answer = any(column.key == "code" for column in columns)
        self._all: list[Unit] = []
        self._shown: list[Unit] = []
        self._filter = EVERYTHING
        self._named: Callable[[str], bool] | None = None
        self._sort: tuple[int, bool] | None = None
        self._unsorted = False
        self._left: Iterator[Unit] | None = None
        self._passed: list[Unit] = []
        self._slices = QTimer(self, interval=0)
        self._slices.timeout.connect(self._filter_more)
        self.beyond = 0
        self._of_steps = False
        self.kinds: Counter[str] = Counter()
        self._used = dict.fromkeys((at for at, one in enumerate(columns) if one.is_rare), False)

    @property
    def rare_columns(self) -> Mapping[int, bool]:
        """Which of the columns that most tasks do not need have a value."""
        return self._used

    @property
    def total(self) -> int:
        return len(self._all)

    def unit_at(self, row: int) -> Unit:
        return self._shown[row]

    @property
    def filter(self) -> UnitFilter:
        """What the rows that are shown had to pass."""
        return self._filter

    def units(self) -> Sequence[Unit]:
        """All of them, shown or not, in their own order."""
        return self._all

    def clear(self) -> None:
        self.beginResetModel()
        self._all, self._shown, self._left = [], [], None
        self._slices.stop()
        self.kinds, self._used = Counter(), dict.fromkeys(self._used, False)
        self.beyond = 0
        self.endResetModel()
        self.changed.emit()

    def add(self, units: Sequence[Unit]) -> None:
        """Append these, behind what is there; a sorted table puts them in place at `settle`."""
        room = KEPT - len(self._all)
        self.beyond += max(0, len(units) - room)
        units = units[: max(0, room)]
        self._all.extend(units)
        for at in (at for at, used in self._used.items() if not used):
            self._used[at] = any(map(self.columns[at].value, units))
        self.kinds.update(one.answer if self._by_answer else one.state for one in units)
        if self._left is None:  # else the filter comes to them as it goes on
            fit = [one for one in units if self._passes(one)]
            if fit:
                first = len(self._shown)
                self.beginInsertRows(ROOT, first, first + len(fit) - 1)
                self._shown += fit
                self.endInsertRows()
                self._unsorted = self._sort is not None
        self.changed.emit()

    def name_columns(self, *, of_steps: bool) -> None:
        """Are the units commands, and no pages?"""
        self._of_steps = of_steps
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)

    def settle(self) -> None:
        """Nothing more comes for now: put what came into the order that was chosen."""
        if self._unsorted and self._sort is not None and self._left is None:
            self.layoutAboutToBeChanged.emit()
            self._arrange(self._shown)
            self.layoutChanged.emit()

    def set_filter(self, kinds: frozenset[str], text: str) -> None:
        """Show only those; of a long table in slices, and what is shown stays until then."""
        self._filter = UnitFilter.of(kinds, text, by_answer=self._by_answer)
        self._begin_to_filter()

    def keep_named(self, named: Callable[[str], bool] | None) -> None:
        """Show only units of whose name `named` says yes; None: whatever it is."""
        self._named = named
        self._begin_to_filter()

    def _begin_to_filter(self) -> None:
        self._left, self._passed = iter(self._all), []
        self._filter_more()

    def _passes(self, unit: Unit) -> bool:
        return (self._named is None or self._named(unit.name)) and self._filter.passes(unit)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sort = (column, order == Qt.SortOrder.DescendingOrder) if column >= 0 else None
        self.layoutAboutToBeChanged.emit()
        marked = [self._shown[one.row()] for one in self.persistentIndexList()]
        before = self.persistentIndexList()
        self._arrange(self._shown)
        if before:
            at = {unit.number: row for row, unit in enumerate(self._shown)}
            after = [
                self.index(at[unit.number], old.column())
                for unit, old in zip(marked, before, strict=True)
            ]
            self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        unit, column = self._shown[index.row()], self.columns[index.column()]
        if role == DISPLAY:
            return column.text(unit)
        if role == ALIGNMENT:
            return _RIGHT if column.is_number else _LEFT
        if role == COLOUR and column.is_toned:
            kind = unit.answer if column.key == "code" else unit.state
            return tone(TONES.get(kind, "muted"), QApplication.palette())
        if role == TOOL_TIP:
            return plain_tip(column.text(unit))
        return spoken(unit) if role == SPOKEN else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.columns):
            return None
        column = self.columns[section]
        if role == DISPLAY:
            return title_of(column.key, of_steps=self._of_steps)
        if role == ALIGNMENT:
            return _RIGHT if column.is_number else _LEFT
        return None

    def _filter_more(self) -> None:
        left, until = self._left, time.perf_counter() + _SLICE_S
        if left is None:
            return
        for number, unit in enumerate(left, 1):  # a short table is never left half judged
            if self._passes(unit):
                self._passed.append(unit)
            if number % 64 == 0 and time.perf_counter() > until:
                self._slices.start()
                return
        self._slices.stop()
        self._left = None
        self.beginResetModel()
        self._shown, self._passed = self._passed, []
        self._arrange(self._shown)
        self.endResetModel()
        self.changed.emit()

    def _arrange(self, units: list[Unit]) -> None:
        self._unsorted = False
        if self._sort is None:
            units.sort(key=lambda unit: unit.number)
            return
        at, down = self._sort
        value = self.columns[at].value
        units.sort(key=lambda unit: unit.number)
        units.sort(key=value, reverse=down)
