"""What is painted in one section of the table's header: title, arrow, and the rank of a key."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QPainter, QPalette, QPen
from PySide6.QtWidgets import QApplication

from engine.query import SortKey
from gui.style.theme import tone
from gui.tasks.columns import Column
from gui.tasks.row_delegate import ALIGN, PAD

_ARROW = 7
_RANKS = "¹²³⁴⁵⁶⁷⁸⁹"


def paint_title(painter: QPainter, rect: QRect, column: Column, keys: tuple[SortKey, ...]) -> None:
    """One title on its ground; with its arrow, and its rank among several keys."""
    palette = QApplication.palette()
    painter.save()
    painter.fillRect(rect, palette.window())
    painter.setPen(tone("line", palette))
    painter.drawLine(rect.bottomLeft(), rect.bottomRight())
    painter.drawLine(rect.topRight() + QPoint(0, 5), rect.bottomRight() - QPoint(0, 5))
    rank = next((n for n, (key, _) in enumerate(keys) if key == column.key), -1)
    ink = palette.color(QPalette.ColorRole.WindowText) if rank >= 0 else tone("muted", palette)
    painter.setPen(ink)
    room = rect.adjusted(PAD, 0, -PAD, 0)
    if rank < 0:
        _write(painter, room, column)
    else:
        mark = _RANKS[rank] if len(keys) > 1 and rank < len(_RANKS) else ""
        _with_arrow(painter, room, column, mark, down=keys[rank][1])
    painter.restore()


def _with_arrow(painter: QPainter, room: QRect, column: Column, mark: str, *, down: bool) -> None:
    if column.align == "center":  # no room beside a single sign
        _paint_arrow(painter, QPointF(room.center().x() + 1, room.top() + 4), down)
        _write(painter, room, column)
        return
    metrics = painter.fontMetrics()
    wide = _ARROW + 4 + (metrics.horizontalAdvance(mark) + 1 if mark else 0)
    title = room.adjusted(0, 0, -wide, 0)
    shown = min(title.width(), metrics.horizontalAdvance(column.title))
    left = title.left() + shown if column.align == "left" else title.right()
    _write(painter, title, column)
    _paint_arrow(painter, QPointF(left + 4 + _ARROW / 2, room.center().y()), down)
    if mark:
        at = QPointF(left + _ARROW + 5, room.center().y() + metrics.ascent() / 2)
        painter.drawText(at, mark)


def _write(painter: QPainter, room: QRect, column: Column) -> None:
    text = painter.fontMetrics().elidedText(column.title, Qt.TextElideMode.ElideRight, room.width())
    painter.drawText(room, ALIGN[column.align], text)


def _paint_arrow(painter: QPainter, at: QPointF, down: bool) -> None:
    """A small angle: up for ascending, as on every desktop."""
    half, rise = _ARROW / 2, 3 if down else -3
    pen = QPen(painter.pen())
    pen.setWidthF(1.5)
    painter.save()
    painter.setPen(pen)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    points = [QPointF(-half, 0), QPointF(0, rise), QPointF(half, 0)]
    painter.drawPolyline([at + point - QPointF(0, rise / 2) for point in points])
    painter.restore()
