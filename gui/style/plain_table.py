"""Table view with the look and the keys of all detail tables."""

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

LAST_CHARS, LEAST_CHARS = 28, 24  # Characters of the last column, and of the one that grows
PAD = 16  # Pixels of a column around its text


class PlainTable(QTableView):
    """Table with whole-row selection and column `widths` in characters (0 keeps the default).

    With `least` (also in characters) columns shrink where room is short instead of scrolling
    sideways, and elided text is shown as a tool tip.
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
        """Give the remaining room to the column `grows`, until the user drags a column."""
        super().resizeEvent(event)
        self._share_room()

    def show_columns(self, wanted: Mapping[int, bool]) -> None:
        """Show or hide these columns by number; others stay unchanged."""
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
        for share in (end, *shares):  # Qt stretches the last section and never shrinks it
            self.horizontalHeader().resizeSection(int(share.key), widths[share.key])

    def _note_drag(self, section: int, *_: int) -> None:
        """Record that the user resized a column.

        Without a pressed button the header resized it, as it does with its last section. A button
        may also be pressed on the tab that shows this table.
        """
        is_last = section == self.horizontalHeader().count() - 1
        if QApplication.mouseButtons() and not self._fitting and not is_last:
            self._touched = True

    def let_sort(self) -> None:
        """Sort by header clicks; the third click restores the original order."""
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)

    def marked_rows(self) -> list[int]:
        """Return the selected rows from top to bottom, by ranges, since 50,000 indexes are slow."""
        selection = self.selectionModel().selection()
        spans = (selection.at(number) for number in range(selection.size()))
        return sorted({row for span in spans for row in range(span.top(), span.bottom() + 1)})


class _EndsMatter(QStyledItemDelegate):
    """Delegate that elides addresses at the left, since those of a crawl differ at their ends."""

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        option.textElideMode = Qt.TextElideMode.ElideLeft
