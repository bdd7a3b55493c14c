"""The spans below the strip, a row each, with a bar for where and how long they are."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QPainter, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from gui.details.timeline_model import BAR, BEGAN, TEXT, TOOK, WHAT, TimelineModel
from gui.details.timeline_picture import IDLE
from gui.details.timeline_spans import Scale, Span
from gui.style.item_roles import AnyIndex
from gui.style.plain_rows import show_plain_rows
from gui.style.theme import tone

_CHARS = {BEGAN: 15, WHAT: 18, TOOK: 14}
_TEXT_SHARE, _LEAST_BAR = 0.6, 110  # of what is left; pixels


class TimelineTable(QTableView):
    """`opened` carries the place of the event whose row was opened, `marked` whether any is."""

    opened = Signal(int)
    marked = Signal(bool)

    def __init__(self, model: TimelineModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self.setModel(model)
        self._bars = _Bars(self)
        self.setItemDelegateForColumn(BAR, self._bars)
        self.setAccessibleName(self.tr("Timeline, row by row"))
        show_plain_rows(self)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._lay_out()
        self.activated.connect(lambda index: self._open(index.row()))
        self.selectionModel().selectionChanged.connect(
            lambda *_: self.marked.emit(self.selectionModel().hasSelection())
        )

    def _lay_out(self) -> None:
        header = self.horizontalHeader()
        header.setStretchLastSection(True)
        for column, chars in _CHARS.items():
            header.resizeSection(column, chars * self.fontMetrics().averageCharWidth() + 16)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        header = self.horizontalHeader()
        left = self.viewport().width() - sum(map(header.sectionSize, _CHARS))
        header.resizeSection(TEXT, max(60, min(int(left * _TEXT_SHARE), left - _LEAST_BAR)))

    def show_whole(
        self, whole: tuple[float, float] | None, idle: list[tuple[float, float]]
    ) -> None:
        """From when until when the bars reach, with these gaps folded."""
        start, end = whole or (0.0, 1.0)
        within = [(a, b) for a, b in idle if a >= start and b <= end]
        self._bars.scale = Scale(start, end, within)
        self.viewport().update()

    def show_row(self, row: int) -> None:
        """Make this row the current one, in the middle of what is seen."""
        index = self._model.index(row, 0)
        self.setCurrentIndex(index)
        self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)

    def scroll_back(self, value: int) -> None:
        """Show again what was read when the bar stood at `value`."""
        self.executeDelayedItemsLayout()  # else the bar is still as short as the rows before
        self.verticalScrollBar().setValue(value)

    def marked_spans(self) -> list[Span]:
        selection = self.selectionModel().selection()
        parts = (selection.at(number) for number in range(selection.size()))
        rows = {row for part in parts for row in range(part.top(), part.bottom() + 1)}
        return [self._model.span_at(row) for row in rows]

    def _open(self, row: int) -> None:
        place = self._model.span_at(row).place
        if place >= 0:
            self.opened.emit(place)


class _Bars(QStyledItemDelegate):
    """A bar in proportion to the whole; the numbers stand in the columns beside it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.scale = Scale(0, 1, ())

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        super().paint(painter, option, index)
        model = index.model()
        assert isinstance(model, TimelineModel)
        span = model.span_at(index.row())
        room = QRectF(option.rect).adjusted(4, 4, -4, -4)
        grow = room.width() / self.scale.whole
        left = room.x() + self.scale.length(span.start) * grow
        right = room.x() + self.scale.length(span.end) * grow
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        palette = QApplication.palette()
        colour = tone("muted" if span.tone in ("", IDLE) else span.tone, palette)
        if chosen:
            colour = palette.color(QPalette.ColorRole.HighlightedText)
        patterns = {IDLE: Qt.BrushStyle.BDiagPattern, "bad": Qt.BrushStyle.Dense3Pattern}
        brush = QBrush(colour, patterns.get(span.tone, Qt.BrushStyle.SolidPattern))
        painter.save()
        box = QRectF(left, room.y(), max(2.0, right - left), room.height())
        if span.exact:
            painter.fillRect(box, brush)
        painter.setPen(colour)
        if box.width() > 3:
            painter.drawRect(box)
        painter.restore()
