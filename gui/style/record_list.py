"""Flat lists of records with ids, read again and again: rows and the selection stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from engine.model.display import display
from gui.style.editors import Roomy
from gui.style.theme import plain_tip

CELL_CHARS: Final = 120
_MIDDLE: Final = Qt.AlignmentFlag.AlignVCenter
_ID: Final = int(Qt.ItemDataRole.UserRole)


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

    @property
    def chosen_id(self) -> str | None:
        """The id of the selected record."""
        item = self.currentItem()
        return None if item is None else str(item.data(0, _ID))

    def new_row(self) -> QTreeWidgetItem:
        """Return an empty row."""
        return QTreeWidgetItem()

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
                item = self.new_row()
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


class _SortedRow(QTreeWidgetItem):
    """A row that is compared by the values of its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: Sequence[Cell] = ()

    def __lt__(self, other: QTreeWidgetItem) -> bool:
        tree = self.treeWidget()
        column = 0 if tree is None else tree.sortColumn()
        assert isinstance(other, _SortedRow)
        mine, its = self.cells[column].order, other.cells[column].order
        if isinstance(mine, str) or isinstance(its, str):
            return str(mine).casefold() < str(its).casefold()
        return mine < its


class SortableList(RecordList):
    """A list that is sorted by a click on a header; `numbers` are its columns of numbers."""

    def __init__(
        self,
        name: str,
        headers: Sequence[str],
        parent: QWidget,
        *,
        numbers: Collection[int] = (),
        stretched: int = 0,
    ) -> None:
        super().__init__(name, headers, parent, stretched=stretched)
        self._numbers = frozenset(numbers)
        for column in self._numbers:
            self.headerItem().setTextAlignment(column, Qt.AlignmentFlag.AlignRight)
        self.header().setSectionsClickable(True)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)

    def new_row(self) -> QTreeWidgetItem:
        row = _SortedRow()
        for column in self._numbers:
            row.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | _MIDDLE)
        return row

    def show_cells(self, rows: Mapping[str, Sequence[Cell]]) -> None:
        """Show these cells by id, in the order that the user chose."""
        self.setSortingEnabled(False)  # each change of a cell would sort the list
        self.show_rows({key: [cell.text for cell in cells] for key, cells in rows.items()})
        for at in range(self.topLevelItemCount()):
            row = self.topLevelItem(at)
            if isinstance(row, _SortedRow):
                row.cells = rows[str(row.data(0, _ID))]
        self.setSortingEnabled(True)
