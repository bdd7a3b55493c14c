"""The table's header: titles in line with the cells, every sort key with its arrow and rank."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QPoint, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QPainter, QPalette, QPen, QResizeEvent
from PySide6.QtWidgets import QApplication, QHeaderView, QMenu, QWidget

from engine.query import SortKey
from gui.columns import COLUMN_AT, COLUMNS
from gui.row_delegate import ALIGN, PAD
from gui.theme import tone

_ARROW = 7
_TASK = COLUMN_AT["task"]
_TASK_MIN_CHARS = 26
_BY_HAND = b"by hand"  # follows Qt's own state, which does not know who chose a width
_RANKS = "¹²³⁴⁵⁶⁷⁸⁹"


class TaskHeader(QHeaderView):
    """Asks for an order by `order_wanted`; the Task column takes what room the others leave."""

    order_wanted = Signal(list)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._keys: tuple[SortKey, ...] = ()
        self._fits, self._fitting = True, False
        self.setSectionsMovable(True)
        self.setFirstSectionMovable(True)
        self.setSectionsClickable(True)
        self.setHighlightSections(False)
        self.setStretchLastSection(False)
        self.setMinimumSectionSize(2 * PAD)
        self.sectionClicked.connect(self._sort_by)
        self.sectionResized.connect(self._resized)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._open_menu)

    def show_order(self, keys: tuple[SortKey, ...]) -> None:
        """Mark the columns that the rows are ordered by."""
        self._keys = keys
        self.viewport().update()

    def set_widths(self) -> None:
        """Give every column its usual width and hide what is usually hidden."""
        character = self.fontMetrics().averageCharWidth()
        for number, column in enumerate(COLUMNS):
            self.resizeSection(number, column.width * character + 2 * PAD)
            self.setSectionHidden(number, column.hidden)
        self._fits = True
        self.fit()

    def saveState(self) -> QByteArray:
        """Columns as they are, and whether a person gave the Task column its width."""
        state = super().saveState()
        return state if self._fits else state.append(_BY_HAND)

    def restore(self, state: QByteArray) -> bool:
        """Columns as they were; a state that does not fit these columns changes nothing."""
        # The state carries switches too, which are ours to set.
        restored = not state.isEmpty() and self.restoreState(state)
        if restored:
            self._fits = not state.endsWith(_BY_HAND)
        self.setSectionsClickable(True)
        self.setSortIndicatorShown(False)
        if self.isSectionHidden(_TASK):
            self.setSectionHidden(_TASK, False)
        self.fit()
        return bool(restored)

    def fit(self) -> None:
        """Let the Task column fill the view, unless a person gave it a width."""
        if not self._fits:
            return
        others = self.length() - self.sectionSize(_TASK)
        least = _TASK_MIN_CHARS * self.fontMetrics().averageCharWidth()
        self._fitting = True
        self.resizeSection(_TASK, max(least, self.viewport().width() - others))
        self._fitting = False

    def fill_menu(self, menu: QMenu) -> None:
        """Add a switch for each column; the task's own name always stays."""
        for number, column in enumerate(COLUMNS):
            action = QAction(column.long_title, menu)
            action.setCheckable(True)
            action.setChecked(not self.isSectionHidden(number))
            action.setEnabled(number != _TASK)
            action.toggled.connect(lambda on, number=number: self._show_section(number, on))
            menu.addAction(action)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.fontMetrics().height() + 10)

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        palette, column = QApplication.palette(), COLUMNS[section]
        painter.save()
        painter.fillRect(rect, palette.window())
        painter.setPen(tone("line", palette))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.drawLine(rect.topRight() + QPoint(0, 5), rect.bottomRight() - QPoint(0, 5))
        rank = next((n for n, (key, _) in enumerate(self._keys) if key == column.key), -1)
        ink = palette.color(QPalette.ColorRole.WindowText) if rank >= 0 else tone("muted", palette)
        painter.setPen(ink)
        room = rect.adjusted(PAD, 0, -PAD, 0)
        if rank >= 0 and column.key != "attention":
            self._paint_order(painter, room, rank, column.align)
            room = room.adjusted(0, 0, -_ARROW - 4, 0)
        elif rank >= 0:
            self._paint_arrow(painter, QPointF(rect.center().x(), rect.top() + 4), rank)
        text = self.fontMetrics().elidedText(
            column.title, Qt.TextElideMode.ElideRight, room.width()
        )
        painter.drawText(room, ALIGN[column.align], text)
        painter.restore()

    def _paint_order(self, painter: QPainter, room: QRect, rank: int, align: str) -> None:
        mark = _RANKS[rank] if len(self._keys) > 1 and rank < len(_RANKS) else ""
        wide = self.fontMetrics().horizontalAdvance(COLUMNS[0].title) if mark else 0
        x = room.right() - _ARROW / 2
        if align == "left":
            title = COLUMNS[COLUMN_AT[self._keys[rank][0]]].title
            x = room.left() + self.fontMetrics().horizontalAdvance(title) + 4 + _ARROW / 2
            x = min(x, room.right() - _ARROW / 2 - wide)
        self._paint_arrow(painter, QPointF(x, room.center().y() - 1), rank)
        if mark and align == "left":
            at = QPointF(x + _ARROW / 2 + 1, room.center().y() + self.fontMetrics().ascent() / 2)
            painter.drawText(at, mark)

    def _paint_arrow(self, painter: QPainter, at: QPointF, rank: int) -> None:
        """A small angle: up for ascending, as on every desktop."""
        down = self._keys[rank][1]
        half, rise = _ARROW / 2, 3 if down else -3
        pen = QPen(painter.pen())
        pen.setWidthF(1.5)
        painter.save()
        painter.setPen(pen)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        points = [QPointF(-half, 0), QPointF(0, rise), QPointF(half, 0)]
        painter.drawPolyline([at + point - QPointF(0, rise / 2) for point in points])
        painter.restore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def _resized(self, section: int, _before: int, _after: int) -> None:
        if self._fitting or not self.isVisible():
            return
        if section == _TASK:
            self._fits = False
        else:
            self.fit()

    def _show_section(self, number: int, on: bool) -> None:
        self.setSectionHidden(number, not on)
        self.fit()

    def _sort_by(self, section: int) -> None:
        """A click sorts by this column, or turns it round; with Shift it becomes a further key."""
        key, keys = COLUMNS[section].key, list(self._keys)
        names = [name for name, _ in keys]
        descending = not keys[names.index(key)][1] if key in names else False
        if QApplication.keyboardModifiers() & Qt.KeyboardModifier.ShiftModifier:
            if key in names:
                keys[names.index(key)] = (key, descending)
            else:
                keys.append((key, False))
        else:
            keys = [(key, descending if names[:1] == [key] else False)]
        self.order_wanted.emit(keys)

    def _open_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fill_menu(menu)
        menu.popup(self.mapToGlobal(at))
