"""Flat lists of records with ids, read again and again: rows and the selection stay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from PySide6.QtCore import QAbstractTableModel, QEvent, QModelIndex, QObject, Qt, QTimer
from PySide6.QtWidgets import QHeaderView, QTreeView, QTreeWidget, QTreeWidgetItem, QWidget

from engine.model.display import display
from gui.style.editors import Roomy
from gui.style.tables import ALIGNMENT, DISPLAY, LEAST_CHARS, PAD, ROOT, TOOL_TIP, AnyIndex
from gui.style.theme import plain_tip

CELL_CHARS: Final = 120
_ID: Final = int(Qt.ItemDataRole.UserRole)
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class _LeastRoom(QObject):
    """Keeps the column readable that takes the room that is left.

    Where none is left, as with large letters, the list scrolls sideways.
    """

    def __init__(self, view: QTreeView, column: int) -> None:
        super().__init__(view)
        self._view, self._column = view, column
        self._soon = QTimer(self, singleShot=True, interval=0)  # a header is not changed midway
        self._soon.timeout.connect(self._share)
        view.header().sectionResized.connect(self._note)
        view.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._soon.start()
        return False

    def _note(self, column: int, *_: int) -> None:
        if column != self._column:
            self._soon.start()

    def _share(self) -> None:
        view, at, header = self._view, self._column, self._view.header()
        most = LEAST_CHARS * view.fontMetrics().averageCharWidth() + PAD
        least = min(most, max(view.sizeHintForColumn(at), header.sectionSizeHint(at)))
        left = view.viewport().width() - (header.length() - header.sectionSize(at))
        modes = QHeaderView.ResizeMode
        header.setSectionResizeMode(at, modes.Stretch if left >= least else modes.Fixed)
        if left < least:
            header.resizeSection(at, least)


class RecordList(QTreeWidget):
    """A list with these headers; the column `stretched` takes the room that is left."""

    def __init__(
        self, name: str, headers: Sequence[str], parent: QWidget, *, stretched: int = 0
    ) -> None:
        super().__init__(parent)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setTabKeyNavigation(False)
        self.setAlternatingRowColors(True)
        self.setItemDelegate(Roomy(self))
        self.setHeaderLabels([*headers])
        self.setAccessibleName(name)
        modes = QHeaderView.ResizeMode
        header = self.header()
        header.setStretchLastSection(False)
        for column in range(self.columnCount()):
            fits = modes.Stretch if column == stretched else modes.ResizeToContents
            header.setSectionResizeMode(column, fits)
        _LeastRoom(self, stretched)

    @property
    def chosen_id(self) -> str | None:
        """The id of the selected record."""
        item = self.currentItem()
        return None if item is None else str(item.data(0, _ID))

    def choose(self, record_id: str) -> bool:
        """Select a record; return whether it is there."""
        for at in range(self.topLevelItemCount()):
            item = self.topLevelItem(at)
            if item is not None and item.data(0, _ID) == record_id:
                self.setCurrentItem(item)
                return True
        return False

    def show_rows(self, rows: Mapping[str, Sequence[str]]) -> None:
        """Show these cells by id; the first row is selected where none was."""
        for at in reversed(range(self.topLevelItemCount())):
            item = self.topLevelItem(at)
            if item is not None and item.data(0, _ID) not in rows:
                self.takeTopLevelItem(at)
        items = map(self.topLevelItem, range(self.topLevelItemCount()))
        known = {item.data(0, _ID): item for item in items if item is not None}
        for record_id, cells in rows.items():
            item = known.get(record_id)
            if item is None:
                item = QTreeWidgetItem()
                item.setData(0, _ID, record_id)
                self.addTopLevelItem(item)
            for column, cell in enumerate(cells):
                shown = display(cell, CELL_CHARS)
                if item.text(column) != shown:
                    item.setText(column, shown)
                    item.setToolTip(column, plain_tip(cell))
        first = self.topLevelItem(0)
        if self.currentItem() is None and first is not None:
            self.setCurrentItem(first)


class Cell(NamedTuple):
    """A text, and the value by which its column is sorted."""

    text: str
    order: float | str


class Head(NamedTuple):
    """The title of a column, whether it has numbers, and its tool tip."""

    title: str
    is_number: bool = False
    tip: str = ""


ReadCell = Callable[[int], Cell]
"""Returns the cell of a column; called when it is painted, or sorted by."""
Row = tuple[str, ReadCell]


class CellModel(QAbstractTableModel):
    """Rows of cells by id, in the order of one column."""

    def __init__(self, heads: Sequence[Head], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._heads = tuple(heads)
        self.rows: list[Row] = []
        self._column, self._descends = 0, False

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._heads)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if role == ALIGNMENT:
            return _RIGHT if self._heads[index.column()].is_number else None
        if role not in (DISPLAY, TOOL_TIP):
            return None
        text = self.rows[index.row()][1](index.column()).text
        return display(text, CELL_CHARS) if role == DISPLAY else plain_tip(text)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        head = self._heads[section]
        if role == ALIGNMENT:
            return _RIGHT if head.is_number else None
        return {DISPLAY: head.title, TOOL_TIP: plain_tip(head.tip)}.get(role)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._column, self._descends = column, order is Qt.SortOrder.DescendingOrder
        self._show(self.rows)

    def show_cells(self, rows: Mapping[str, ReadCell]) -> None:
        """Show these cells by id; indexes of rows that stay are kept."""
        self._show(rows.items())

    def _show(self, rows: Collection[Row]) -> None:
        ordered = sorted(rows, key=self._order, reverse=self._descends)
        ids = [one for one, _ in ordered]
        if ids == [one for one, _ in self.rows]:
            self.rows = ordered
            if ordered:
                last = self.index(len(ordered) - 1, len(self._heads) - 1)
                self.dataChanged.emit(self.index(0, 0), last)
            return
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        kept = [(self.rows[one.row()][0], one.column()) for one in before]
        places = {one: at for at, one in enumerate(ids)}
        self.rows = ordered
        after = [
            self.index(places[one], column) if one in places else QModelIndex()
            for one, column in kept
        ]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def _order(self, row: Row) -> tuple[float | str, str]:
        order = row[1](self._column).order
        return order.casefold() if isinstance(order, str) else order, row[0]


class SortableList(QTreeView):
    """A list of many records that change each second, sorted by a click on a header.

    The column `stretched` takes the room that is left. A `RecordList` would measure its columns
    for each text: 200 s for 1,000 rows of 10 columns.
    """

    def __init__(
        self, name: str, heads: Sequence[Head], parent: QWidget, *, stretched: int = 0
    ) -> None:
        super().__init__(parent)
        self.cells = CellModel(heads, self)
        self.setModel(self.cells)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setTabKeyNavigation(False)
        self.setAlternatingRowColors(True)
        self.setItemDelegate(Roomy(self))
        self.setAccessibleName(name)
        modes, header = QHeaderView.ResizeMode, self.header()
        header.setStretchLastSection(False)
        header.setResizeContentsPrecision(0)  # measures the visible rows only
        for column in range(len(heads)):
            fits = modes.Stretch if column == stretched else modes.ResizeToContents
            header.setSectionResizeMode(column, fits)
        _LeastRoom(self, stretched)
        self.setSortingEnabled(True)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)

    @property
    def chosen_id(self) -> str | None:
        """The id of the selected record."""
        index = self.currentIndex()
        return self.cells.rows[index.row()][0] if index.isValid() else None

    def show_cells(self, rows: Mapping[str, ReadCell]) -> None:
        """Show these cells by id; the first row is selected where none was."""
        self.cells.show_cells(rows)
        if not self.currentIndex().isValid() and rows:
            self.setCurrentIndex(self.cells.index(0, 0))
