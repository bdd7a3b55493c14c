"""The look and the keys that every table of this program's details has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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

from gui.style.column_widths import Share, fitted
from gui.style.plain_rows import show_plain_rows

LAST_CHARS, LEAST_CHARS = 28, 24  # of the last column, and of the one that grows
PAD = 16  # pixels of a column beside its characters


class PlainTable(QTableView):
    """Rows of one height, whole rows marked; Tab leaves it. `widths` in characters, 0: as is.

    With `least` (in characters as well) the columns give way where room is short, instead of
    scrolling sideways; what is cut off stands in a tip.
    """

    def __init__(
        self,
        model: QAbstractItemModel,
        name: str,
        widths: Sequence[int],
        parent: QWidget | None = None,
        *,
        grows: int = -1,
        least: Sequence[int] = (),
    ) -> None:
        super().__init__(parent)
        self._grows, self._touched, self._fitting = grows, False, False
        self._widths, self._least = tuple(widths), tuple(least)
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
        if self._least:
            header.setTextElideMode(Qt.TextElideMode.ElideRight)
            header.setMinimumSectionSize(PAD)
        character = self.fontMetrics().averageCharWidth()
        for at, chars in enumerate(widths):
            if chars:
                header.resizeSection(at, chars * character + PAD)
        if self._grows >= 0:
            self.setItemDelegateForColumn(self._grows, _EndsMatter(self))
        header.sectionResized.connect(self._note_drag)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The column that `grows` has the room that the others leave, until somebody drags one."""
        super().resizeEvent(event)
        self._share_room()

    def show_columns(self, wanted: Mapping[int, bool]) -> None:
        """Show or hide the columns of these numbers; the others stay as they are."""
        header = self.horizontalHeader()
        changed = {at: shown for at, shown in wanted.items() if header.isSectionHidden(at) == shown}
        if changed:
            self._share_room(changed)

    def _share_room(self, shown: Mapping[int, bool] | None = None) -> None:
        self._fitting = True
        for at, is_shown in (shown or {}).items():
            self.horizontalHeader().setSectionHidden(at, not is_shown)
        self._give_room()
        self._fitting = False

    def _give_room(self) -> None:
        header = self.horizontalHeader()
        if self._least and not self._touched:
            self._fit()
        last = header.count() - 1
        if self._grows < 0 or self._touched or last < 0:
            return
        others = sum(header.sectionSize(at) for at in range(last) if at != self._grows)
        character = self.fontMetrics().averageCharWidth()
        room = self.viewport().width() - others - LAST_CHARS * character
        header.resizeSection(self._grows, max(LEAST_CHARS * character, room))

    def _fit(self) -> None:
        character = self.fontMetrics().averageCharWidth()
        *others, last = enumerate(zip(self._widths, self._least, strict=True))
        shares = [
            Share(str(at), usual * character + PAD, least * character + PAD)
            for at, (usual, least) in others
        ]
        at, (_, least) = last
        end = Share(str(at), LAST_CHARS * character, least * character + PAD, fills=True)
        widths = fitted([*shares, end], self.viewport().width())
        for share in (end, *shares):  # Qt stretches the last one, and never makes it less
            self.horizontalHeader().resizeSection(int(share.key), widths[share.key])

    def _note_drag(self, section: int, *_: int) -> None:
        """Without a button down the header itself made room, as it always does with its last
        section; and with a button down a tab may have been clicked, which shows this table.
        """
        is_last = section == self.horizontalHeader().count() - 1
        if QApplication.mouseButtons() and not self._fitting and not is_last:
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
