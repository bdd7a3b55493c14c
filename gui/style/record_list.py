"""A flat list of records with ids, read again and again: rows and the selection stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from engine.model.display import display
from gui.style.editors import Roomy
from gui.style.theme import plain_tip

CELL_CHARS: Final = 120
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
