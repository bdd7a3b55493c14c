"""Paints the table's cells straight from the rows: one look at the row, a few calls on the painter.

A delegate that asks `data()` for every role of every cell takes twice as long for a frame.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from engine import words
from gui.columns import COLUMNS, Column
from gui.gauges import SIGN_SIZE, badge_width, paint_badge, paint_progress, sign
from gui.rows import Row
from gui.task_model import TaskModel
from gui.theme import tones

PAD = 8
ROW_PAD = 10
_SELECTED = QStyle.StateFlag.State_Selected
ALIGN = {
    "left": int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter),
    "right": int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter),
    "center": int(Qt.AlignmentFlag.AlignCenter),
}
_QUIET = frozenset({"kind", "age", "updated", "id"})


class RowDelegate(QStyledItemDelegate):
    """All columns of the task table."""

    def __init__(self, model: TaskModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        row, column = self._model.row_at(index.row()), COLUMNS[index.column()]
        style: Any = option  # PySide's types do not know its fields
        palette: QPalette = style.palette
        rect: QRect = style.rect
        selected = bool(style.state & _SELECTED)
        if selected:
            painter.fillRect(rect, palette.highlight())
        cell = _Cell(painter, QRectF(rect.adjusted(PAD, 0, -PAD, 0)), palette, selected)
        text = column.text(row, self._model.now_ms())
        if column.paint == "attention":
            cell.attention(row, QRectF(rect))
        elif column.paint == "status":
            cell.status(row, text)
        elif column.paint == "progress":
            cell.progress(row, text)
        elif column.paint == "task":
            cell.task(row, text)
        else:
            cell.text(text, column)

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        style: Any = option
        return QSize(60, row_height(style.fontMetrics.height()))


def row_height(font_height: int) -> int:
    return max(font_height, SIGN_SIZE) + ROW_PAD


class _Cell:
    """One cell being painted: where, and in which colours."""

    __slots__ = ("_ink", "_painter", "_palette", "_rect", "_selected", "_tones")

    def __init__(self, painter: QPainter, rect: QRectF, palette: QPalette, selected: bool) -> None:
        self._painter, self._rect, self._palette = painter, rect, palette
        self._selected = selected
        self._tones = tones(palette)
        role = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text
        self._ink = palette.color(role)

    def _tone(self, name: str) -> QColor:
        """A colour of the theme; on the selection's own colour everything is written in one."""
        return self._ink if self._selected else self._tones.get(name, self._tones["muted"])

    def text(self, text: str, column: Column) -> None:
        if text:
            ink = self._tone("muted") if column.key in _QUIET else self._ink
            self._write(self._rect, text, ink, ALIGN[column.align])

    def attention(self, row: Row, whole: QRectF) -> None:
        if row.needs:
            corner = whole.center()
            self._sign("attention", corner.x() - SIGN_SIZE / 2, corner.y())

    def status(self, row: Row, text: str) -> None:
        self._sign(row.standing.value, self._rect.x(), self._rect.center().y())
        words_at = self._rect.adjusted(SIGN_SIZE + 6, 0, 0, 0)
        self._write(words_at, text, self._tone(row.standing.value), ALIGN["left"])

    def task(self, row: Row, text: str) -> None:
        rect = self._rect
        badge = words.say("badge.foreign") if row.view.foreign else ""
        if badge:
            width = badge_width(self._painter.fontMetrics(), badge)
            if rect.width() > 2.4 * width:
                paint_badge(self._painter, rect, badge, self._tone("muted"), self._tone("line"))
                rect = rect.adjusted(0, 0, -width, 0)
        middle = " " not in text
        mode = Qt.TextElideMode.ElideMiddle if middle else Qt.TextElideMode.ElideRight
        self._write(rect, text, self._ink, ALIGN["left"], mode)

    def progress(self, row: Row, text: str) -> None:
        fill = self._tone(row.standing.value)
        track = QColor(fill)
        track.setAlpha(60)
        paint_progress(
            self._painter, self._rect, text, row.fraction, row.live, (fill, track, self._ink)
        )

    def _sign(self, name: str, left: float, middle: float) -> None:
        device = self._painter.device()
        scale = device.devicePixelRatioF() if device is not None else 1.0
        pixmap = sign(name, self._tone(name), scale)
        self._painter.drawPixmap(round(left), round(middle - SIGN_SIZE / 2), pixmap)

    def _write(
        self,
        rect: QRectF,
        text: str,
        ink: QColor,
        align: int,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        shown = self._painter.fontMetrics().elidedText(text, mode, int(rect.width()))
        self._painter.setPen(ink)
        self._painter.drawText(rect, align, shown)
