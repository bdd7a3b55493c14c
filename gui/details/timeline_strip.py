"""Timeline strip: a task's spans, folded gaps, and range selection by mouse."""

from __future__ import annotations

from bisect import bisect_right

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPixmap,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from engine.text.words import clock
from gui.details.timeline_spans import LANES, Drawn, Scale, Span, TimePicture, duration
from gui.style.theme import tone

LEAST_LANES, LANE_HEIGHT, AXIS_HEIGHT = 2, 12, 18
_NO_SCALE = Scale(0, 1, ())
MOST_ZOOM = 5000.0
ZOOM = 1.5
DRAG_PX = 4  # a shorter drag is a click


class TimelineStrip(QWidget):
    """Strip of a task's time; `chosen` carries a range (ms since 1970), `pointed` a clicked time.

    `cleared` requests the whole time.
    """

    chosen = Signal(float, float)
    cleared = Signal()
    pointed = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._time: TimePicture | None = None
        self._drawn: Drawn | None = None
        self._zoom, self._left = 1.0, 0.0  # zoom factor; the length at the left edge
        self._range: tuple[float, float] | None = None
        self._drag: tuple[float, float] | None = None  # in pixels
        self._picture: QPixmap | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(200)
        self.setAccessibleName(self.tr("Timeline"))
        self.setAccessibleDescription(
            self.tr("Arrows move, plus and minus zoom, 0 shows all; rows below tell the same.")
        )

    def sizeHint(self) -> QSize:
        used = max(self._time.lanes) + 1 if self._time is not None else 1
        return QSize(600, max(LEAST_LANES, used) * LANE_HEIGHT + AXIS_HEIGHT + 6)

    def show_picture(self, picture: TimePicture | None, *, folded: bool) -> None:
        """Draw this layout, with folded or plain gaps; the scroll position is kept."""
        self._time = picture
        self._drawn = None
        if picture is not None:
            self._drawn = picture.folded if folded else picture.plain
        self._left = min(self._left, self._most_left)
        self.updateGeometry()
        self._draw_anew()

    def show_range(self, span: tuple[float, float] | None) -> None:
        """Mark this time range; None marks nothing."""
        self._range = span
        self.update()

    def show_all(self) -> None:
        """Show the whole time."""
        self._zoom, self._left = 1.0, 0.0
        self._draw_anew()

    # Conversion of lengths, pixels and times.

    @property
    def _scale(self) -> Scale:
        return self._drawn.scale if self._drawn is not None else _NO_SCALE

    @property
    def _seen(self) -> float:
        """The visible length."""
        return self._scale.whole / self._zoom

    @property
    def _most_left(self) -> float:
        return max(0.0, self._scale.whole - self._seen)

    def x_of(self, ts_ms: float) -> float:
        """Return the pixel of this time; outside the widget if it is not visible."""
        return (self._scale.length(ts_ms) - self._left) / self._seen * self.width()

    def moment_at(self, x: float) -> float:
        """Return the time at this pixel."""
        return self._scale.moment(self._left + x / max(1, self.width()) * self._seen)

    def zoom_by(self, factor: float, at_x: float) -> None:
        """Zoom in or out around the time at this pixel."""
        share = at_x / max(1, self.width())
        still = self._left + share * self._seen
        self._zoom = min(MOST_ZOOM, max(1.0, self._zoom * factor))
        self._left = min(self._most_left, max(0.0, still - share * self._seen))
        self._draw_anew()

    def move_by(self, share: float) -> None:
        """Scroll by this share of the visible part; negative: back."""
        self._left = min(self._most_left, max(0.0, self._left + share * self._seen))
        self._draw_anew()

    # Input.

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta = event.angleDelta()
        if abs(delta.x()) > abs(delta.y()):
            self.move_by(-delta.x() / 1200)
        else:
            self.zoom_by(ZOOM ** (delta.y() / 120), event.position().x())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._drag = (event.position().x(), event.position().x())
            self.setFocus(Qt.FocusReason.MouseFocusReason)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None:
            self._drag = (self._drag[0], event.position().x())
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._drag is None or event.button() != Qt.MouseButton.LeftButton:
            return
        first, last = sorted((self._drag[0], event.position().x()))
        self._drag = None
        if last - first < DRAG_PX:
            self.pointed.emit(self.moment_at(first))
        else:
            self.chosen.emit(self.moment_at(first), self.moment_at(last))
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.show_all()
        self.cleared.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, middle = event.key(), self.width() / 2
        steps = {Qt.Key.Key_Left: -0.1, Qt.Key.Key_Right: 0.1}
        steps |= {Qt.Key.Key_PageUp: -0.9, Qt.Key.Key_PageDown: 0.9}
        if key in steps:
            self.move_by(steps[Qt.Key(key)])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(ZOOM, middle)
        elif key == Qt.Key.Key_Minus:
            self.zoom_by(1 / ZOOM, middle)
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Escape, Qt.Key.Key_Home):
            self.show_all()
            self.cleared.emit()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._zoom > 1:
            self.chosen.emit(self.moment_at(0), self.moment_at(self.width()))
        else:
            super().keyPressEvent(event)

    # Painting.

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self._draw_anew()

    def _draw_anew(self) -> None:
        self._picture = None
        self.update()

    def paintEvent(self, _: QPaintEvent) -> None:
        ratio, palette = self.devicePixelRatioF(), QApplication.palette()
        if self._picture is None or self._picture.size() != self.size() * ratio:
            self._picture = QPixmap(self.size() * ratio)
            self._picture.setDevicePixelRatio(ratio)
            self._picture.fill(palette.color(QPalette.ColorRole.Base))
            under = QPainter(self._picture)
            self._paint_idle(under)
            self._paint_spans(under)
            self._paint_axis(under)
            under.end()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._picture)
        self._paint_range(painter)
        painter.setPen(tone("muted" if not self.hasFocus() else "accent", palette))
        painter.drawRect(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1))
        painter.end()

    def _paint_idle(self, painter: QPainter) -> None:
        palette = QApplication.palette()
        hatch = QBrush(tone("track", palette), Qt.BrushStyle.BDiagPattern)
        for start, end in self._scale.idle:
            left, right = self.x_of(start), self.x_of(end)
            if right < 0 or left > self.width():
                continue
            box = QRectF(left, 1, right - left, self.height() - AXIS_HEIGHT)
            painter.fillRect(box, hatch)
            said = duration(end - start)
            if painter.fontMetrics().horizontalAdvance(said) + 4 < box.width():
                painter.setPen(tone("muted", palette))
                painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), said)

    def _paint_spans(self, painter: QPainter) -> None:
        if self._time is None or self._drawn is None:
            return
        spans, lanes_of = self._time.spans, self._time.lanes
        starts, ends, palette = self._drawn.starts, self._drawn.ends, QApplication.palette()
        colours: dict[str, QColor] = {}
        covered = [-1.0] * LANES  # pixel up to which each lane is painted
        grow, first = self.width() / self._seen, self._left
        for at in range(bisect_right(starts, first + self._seen)):
            left, right, lane = (starts[at] - first) * grow, (ends[at] - first) * grow, lanes_of[at]
            if right <= covered[lane]:  # thousands of spans on one pixel look like one
                continue
            covered[lane] = max(right, left + 1)
            span = spans[at]
            colour = colours.get(span.tone)
            if colour is None:
                colour = colours[span.tone] = tone(span.tone or "muted", palette)
            box = QRectF(left, 3 + lane * LANE_HEIGHT, right - left, 9)
            self._paint_span(painter, span, box, colour)

    def _paint_span(self, painter: QPainter, span: Span, box: QRectF, colour: QColor) -> None:
        if span.took_ms <= 0:
            painter.fillRect(QRectF(box.x(), box.y(), 1.5, box.height()), colour)
            return
        box.setWidth(max(2.0, box.width() - 1))
        if span.tone == "bad":  # the pattern repeats the colour
            painter.fillRect(box, QBrush(colour, Qt.BrushStyle.Dense3Pattern))
        elif span.exact:
            painter.fillRect(box, colour)
        painter.setPen(colour)
        if box.width() > 3:
            painter.drawRect(box)

    def _paint_axis(self, painter: QPainter) -> None:
        palette, metrics = QApplication.palette(), painter.fontMetrics()
        painter.setPen(tone("muted", palette))
        wide = metrics.horizontalAdvance("00:00:00") + 24
        bottom, x = float(self.height() - AXIS_HEIGHT), 4.0
        before = ""
        while x + wide <= self.width() + 24 and self._time is not None:
            moment = self.moment_at(x)
            painter.drawLine(QPointF(x, bottom), QPointF(x, bottom + 4))
            box = QRectF(x + 3, bottom, wide, AXIS_HEIGHT)
            told = clock(moment, moment)  # several marks may lie in one second
            if told != before:
                painter.drawText(box, int(Qt.AlignmentFlag.AlignVCenter), told)
            before = told
            x += wide

    def _paint_range(self, painter: QPainter) -> None:
        edges = self._drag
        if edges is None and self._range is not None:
            edges = (self.x_of(self._range[0]), self.x_of(self._range[1]))
        if edges is None:
            return
        left, right = sorted(edges)
        accent = tone("accent", QApplication.palette())
        veil = QColor(accent)
        veil.setAlpha(50)
        box = QRectF(left, 1, max(2.0, right - left), self.height() - 2)
        painter.fillRect(box, veil)
        painter.setPen(accent)
        painter.drawLine(box.topLeft(), box.bottomLeft())
        painter.drawLine(box.topRight(), box.bottomRight())
