"""Paint state icons, progress bars and badges into cells, never by colour alone.

Each cell is drawn from a `Row` with direct calls on the painter. Icons are cached by size, colour
and screen scale.
"""

from __future__ import annotations

import math
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetrics, QPainter, QPainterPath, QPen, QPixmap

from engine.model.status import Standing

SIGN_SIZE = 14
BAR_HEIGHT = 6
_GAUGE_HEIGHT = 2.5
_BAR_MIN_WIDTH = 28
BADGE_GAP = 7
_USUAL_DIGITS = len("100/120")


def sign(name: str, colour: QColor, scale: float = 1.0) -> QPixmap:
    """Return the icon of a `Standing` (or `attention`), `SIGN_SIZE` pixels square, for `scale`."""
    return _sign(name, colour.rgba(), scale)


@lru_cache(maxsize=256)
def _sign(name: str, rgba: int, scale: float) -> QPixmap:
    side = round(SIGN_SIZE * scale)
    pixmap = QPixmap(side, side)
    pixmap.setDevicePixelRatio(scale)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    colour = QColor.fromRgba(rgba)
    pen = QPen(colour, 1.6)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    _SHAPES.get(name, _unknown)(painter, colour)
    painter.end()
    return pixmap


_RING = QRectF(1.5, 1.5, 11, 11)


def _pending(painter: QPainter, _colour: QColor) -> None:
    painter.drawEllipse(_RING)
    painter.drawPolyline([QPointF(7, 4), QPointF(7, 7.3), QPointF(9.2, 8.6)])


def _running(painter: QPainter, colour: QColor) -> None:
    painter.drawEllipse(_RING)
    painter.setBrush(colour)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.drawPolygon([QPointF(5.6, 4.2), QPointF(10, 7), QPointF(5.6, 9.8)])


def _cancelling(painter: QPainter, colour: QColor) -> None:
    pen = painter.pen()
    pen.setStyle(Qt.PenStyle.DotLine)
    painter.setPen(pen)
    painter.drawEllipse(_RING)
    painter.fillRect(QRectF(5, 5, 4, 4), colour)


def _completed(painter: QPainter, _colour: QColor) -> None:
    painter.drawPolyline([QPointF(2.5, 7.5), QPointF(5.7, 10.7), QPointF(11.5, 3.6)])


def _failed(painter: QPainter, _colour: QColor) -> None:
    painter.drawLine(QPointF(3.2, 3.2), QPointF(10.8, 10.8))
    painter.drawLine(QPointF(10.8, 3.2), QPointF(3.2, 10.8))


def _cancelled(painter: QPainter, _colour: QColor) -> None:
    painter.drawEllipse(_RING)
    painter.drawLine(QPointF(3.3, 10.7), QPointF(10.7, 3.3))


def _orphaned(painter: QPainter, colour: QColor) -> None:
    painter.drawLine(QPointF(3.5, 2), QPointF(3.5, 12.5))
    flag = QPainterPath(QPointF(3.5, 2.4))
    flag.lineTo(11.5, 4.7)
    flag.lineTo(3.5, 7.6)
    painter.fillPath(flag, colour)


def _unreadable(painter: QPainter, _colour: QColor) -> None:
    painter.drawPolygon(
        [QPointF(3, 1.5), QPointF(8.2, 1.5), QPointF(11, 4.4), QPointF(11, 12.5), QPointF(3, 12.5)]
    )
    painter.drawLine(QPointF(5.2, 6.2), QPointF(8.8, 9.8))
    painter.drawLine(QPointF(8.8, 6.2), QPointF(5.2, 9.8))


def _unknown(painter: QPainter, colour: QColor) -> None:
    painter.drawEllipse(_RING)
    painter.fillRect(QRectF(6, 6, 2, 2), colour)


def _attention(painter: QPainter, colour: QColor) -> None:
    painter.drawPolygon([QPointF(7, 1.8), QPointF(12.8, 12.2), QPointF(1.2, 12.2)])
    painter.drawLine(QPointF(7, 5.6), QPointF(7, 8.4))
    painter.fillRect(QRectF(6.2, 9.7, 1.6, 1.5), colour)


def _acknowledged(painter: QPainter, _colour: QColor) -> None:
    painter.drawPolyline([QPointF(4, 7.5), QPointF(6.2, 9.7), QPointF(10, 5)])


def _all(painter: QPainter, _colour: QColor) -> None:
    for height in (3.5, 7, 10.5):
        painter.drawLine(QPointF(2, height), QPointF(12, height))


def _view(painter: QPainter, _colour: QColor) -> None:
    spokes = [(math.pi * (n / 5 - 0.5), 6 if n % 2 == 0 else 2.6) for n in range(11)]
    painter.drawPolyline([QPointF(7 + r * math.cos(a), 7.3 + r * math.sin(a)) for a, r in spokes])


_SHAPES = {
    Standing.PENDING.value: _pending,
    Standing.RUNNING.value: _running,
    Standing.CANCELLING.value: _cancelling,
    Standing.COMPLETED.value: _completed,
    Standing.FAILED.value: _failed,
    Standing.CANCELLED.value: _cancelled,
    Standing.ORPHANED.value: _orphaned,
    Standing.UNREADABLE.value: _unreadable,
    "attention": _attention,
    "acknowledged": _acknowledged,
    "all": _all,
    "view": _view,
}


def paint_bar(
    painter: QPainter, rect: QRectF, fraction: float | None, fill: QColor, track: QColor
) -> None:
    """Paint a thin bar in the middle of `rect`, hatched while the total is unknown."""
    height = min(BAR_HEIGHT, rect.height())
    bar = QRectF(rect.x(), rect.center().y() - height / 2, rect.width(), height)
    painter.fillRect(bar, track)
    if fraction is None:
        painter.fillRect(bar, QBrush(fill, Qt.BrushStyle.BDiagPattern))
    elif fraction > 0:
        # Keep at least 2 pixels, so that started work never looks like none.
        bar.setWidth(max(2.0, bar.width() * fraction))
        painter.fillRect(bar, fill)


def paint_progress(
    painter: QPainter,
    rect: QRectF,
    text: str,
    fraction: float | None,
    live: bool,
    colours: tuple[QColor, QColor, QColor],
) -> None:
    """Paint a progress bar with its numbers at the right, or above a thin bar in narrow cells.

    `colours` are the fill, the track and the text colour.
    """
    if not text:
        return
    fill, track, ink = colours
    # Align bars of one length in all rows, so that they can be compared.
    wide = painter.fontMetrics().horizontalAdvance("0" * max(len(text), _USUAL_DIGITS))
    room = rect.width() - wide - BADGE_GAP
    tells = fraction is not None or live
    if tells and room >= _BAR_MIN_WIDTH:
        bar = QRectF(rect.x(), rect.y(), room, rect.height())
        paint_bar(painter, bar, fraction, fill, track)
        rect = QRectF(bar.right() + BADGE_GAP, rect.y(), wide, rect.height())
    elif tells:
        top = rect.bottom() - _GAUGE_HEIGHT - 1
        thin = QRectF(rect.x(), top, rect.width(), _GAUGE_HEIGHT)
        paint_bar(painter, thin, fraction, fill, track)
    metrics, right = painter.fontMetrics(), int(Qt.AlignmentFlag.AlignRight)
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, math.ceil(rect.width()))
    painter.setPen(ink)
    painter.drawText(rect, right | int(Qt.AlignmentFlag.AlignVCenter), shown)


def paint_gauge(
    painter: QPainter,
    rect: QRectF,
    text: str,
    fraction: float,
    colours: tuple[QColor, QColor, QColor],
) -> None:
    """Paint the name and share of a budget above a thin bar as wide as the cell.

    `colours` are the fill, the track and the text colour.
    """
    fill, track, ink = colours
    bar = QRectF(rect.x(), rect.bottom() - _GAUGE_HEIGHT - 1, rect.width(), _GAUGE_HEIGHT)
    painter.fillRect(bar, track)
    bar.setWidth(max(2.0, bar.width() * fraction))
    painter.fillRect(bar, fill)
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(rect.width()))
    painter.setPen(ink)
    painter.drawText(rect, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), shown)


def badge_width(metrics: QFontMetrics, text: str) -> int:
    """Return the width of a badge in pixels, including the gap before it."""
    return int(metrics.horizontalAdvance(text) + 10 + BADGE_GAP)


def paint_badge(painter: QPainter, rect: QRectF, text: str, ink: QColor, line: QColor) -> None:
    """Paint `text` in a thin frame at the right end of `rect`."""
    metrics = painter.fontMetrics()
    width = metrics.horizontalAdvance(text) + 10
    height = metrics.height() + 1
    box = QRectF(rect.right() - width, rect.center().y() - height / 2, width, height)
    painter.setPen(line)
    painter.drawRect(box)
    painter.setPen(ink)
    painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), text)
