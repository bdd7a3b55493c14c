"""The look and the keys that every table of this program's details has."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractItemModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
)
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from gui.plain_rows import show_plain_rows

LAST_CHARS, LEAST_CHARS = 28, 24  # of the last column, and of the one that grows


class PlainTable(QTableView):
    """Rows of one height, whole rows marked; Tab leaves it. `widths` in characters, 0: as is."""

    def __init__(
        self,
        model: QAbstractItemModel,
        name: str,
        widths: Sequence[int],
        parent: QWidget | None = None,
        *,
        grows: int = -1,
    ) -> None:
        super().__init__(parent)
        self._grows, self._touched = grows, False
        self.setModel(model)
        self.setAccessibleName(name)
        show_plain_rows(self)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._set_headers(widths)

    def _set_headers(self, widths: Sequence[int]) -> None:
        header = self.horizontalHeader()
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSortIndicatorClearable(True)
        character = self.fontMetrics().averageCharWidth()
        for at, chars in enumerate(widths):
            if chars:
                header.resizeSection(at, chars * character + 16)
        if self._grows >= 0:
            self.setItemDelegateForColumn(self._grows, _EndsMatter(self))
        header.sectionResized.connect(self._note_drag)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The column that `grows` has the room that the others leave, until somebody drags one."""
        super().resizeEvent(event)
        header = self.horizontalHeader()
        last = header.count() - 1
        if self._grows < 0 or self._touched or last < 0:
            return
        others = sum(header.sectionSize(at) for at in range(last) if at != self._grows)
        character = self.fontMetrics().averageCharWidth()
        room = self.viewport().width() - others - LAST_CHARS * character
        header.resizeSection(self._grows, max(LEAST_CHARS * character, room))

    def _note_drag(self, *_: int) -> None:
        if QApplication.mouseButtons():  # else the header itself made room
            self._touched = True

    def let_sort(self) -> None:
        """A click on a title sorts; the third one brings back the table's own order."""
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)

    def marked_rows(self) -> list[int]:
        """From top to bottom; by spans, because an index for each of 50,000 rows takes time."""
        selection = self.selectionModel().selection()
        spans = (selection.at(number) for number in range(selection.size()))
        return sorted({row for span in spans for row in range(span.top(), span.bottom() + 1)})


class _EndsMatter(QStyledItemDelegate):
    """Addresses of one crawl begin alike: what tells them apart is at their ends."""

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        option.textElideMode = Qt.TextElideMode.ElideLeft
