"""Timeline tab: durations of events and units; a selected range filters the other tabs."""

from __future__ import annotations

import asyncio
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
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from engine.model.records import TaskRecord, TaskView, UnitTime
from engine.service.engine import Engine
from engine.text.words import clock, count, took
from gui.context.window_context import Desk
from gui.details.details_tab import EDGES, DetailTab
from gui.details.event_table import EventModel
from gui.details.timeline_spans import (
    BAR,
    BEGAN,
    IDLE,
    LANES,
    MOST,
    TEXT,
    TOOK,
    WHAT,
    Drawn,
    Scale,
    Span,
    TimelineModel,
    TimePicture,
    duration,
    picture_of,
)
from gui.engine_link.scheduling import Throttle
from gui.style.tables import AnyIndex, marked_rows, show_plain_rows
from gui.style.theme import tone
from gui.style.widgets import ElidedLabel, EmptyNote, arrange

# Table of spans below the strip, with a bar for position and length of each.

_CHARS = {BEGAN: 15, WHAT: 18, TOOK: 14}
_TEXT_SHARE, _LEAST_BAR = 0.6, 110  # share of the remaining width; pixels


class TimelineTable(QTableView):
    """Table of spans; `opened` carries an event's byte position, `marked` if rows are selected."""

    opened = Signal(object)  # an int that may exceed a C int
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
        """Set the time range of the bars, with these gaps folded."""
        start, end = whole or (0.0, 1.0)
        within = [(a, b) for a, b in idle if a >= start and b <= end]
        self._bars.scale = Scale(start, end, within)
        self.viewport().update()

    def show_row(self, row: int) -> None:
        """Select this row and scroll it to the centre."""
        index = self._model.index(row, 0)
        self.setCurrentIndex(index)
        self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)

    def scroll_back(self, value: int) -> None:
        """Restore the scroll position `value`."""
        # Else the scroll bar still has the range of the former rows.
        self.executeDelayedItemsLayout()
        self.verticalScrollBar().setValue(value)

    def marked_spans(self) -> list[Span]:
        return [self._model.span_at(row) for row in marked_rows(self)]

    def _open(self, row: int) -> None:
        place = self._model.span_at(row).place
        if place >= 0:
            self.opened.emit(place)


class _Bars(QStyledItemDelegate):
    """Bar in proportion to the whole range; the numbers are in other columns."""

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


NAME = "timeline"
AGAIN_MS = 500  # for a live task

_Found = tuple[str, TimePicture | None, list[UnitTime], int]


class Timeline(DetailTab):
    """Timeline from the loaded events and the units' own durations.

    `place_wanted` requests an event by the byte position of its line.
    """

    place_wanted = Signal(object)  # as `TimelineTable.opened`

    def __init__(self, desk: Desk, events: EventModel, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._events, self._task_id, self._live, self._looks = events, "", False, False
        self._units: list[UnitTime] = []
        self._read_to = 0
        self._picture: TimePicture | None = None
        self._scrolled: int | None = None
        self.strip, self.model = TimelineStrip(self), TimelineModel(self)
        self.table = TimelineTable(self.model, self)
        self._told = ElidedLabel("muted", self)
        self._nothing = EmptyNote(self.table.viewport())
        self._fold = QCheckBox(self.tr("Fold idle time"), self)
        self._fold.setChecked(True)
        self._order = QComboBox(self)
        self._order.addItems([self.tr("In order of time"), self.tr("Longest first")])
        self._order.setAccessibleName(self.tr("Order"))
        self._only = QPushButton(self.tr("Only the marked"), self)
        self._all = QPushButton(self.tr("Show all"), self)
        self._again = Throttle(self, AGAIN_MS, self._read)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._told, 1)
        for part in (self._all, self._only, self._fold, self._order):
            head.addWidget(part)
        arrange(QVBoxLayout(self), head, self.strip, (self.table, 1), margins=EDGES, spacing=6)

    def _connect(self) -> None:
        self._fold.toggled.connect(lambda _: self._show())
        self._order.currentIndexChanged.connect(lambda _: self._show())
        self._only.clicked.connect(self._choose_marked)
        self._all.clicked.connect(self.desk.span.clear)
        self.strip.chosen.connect(self._choose)
        self.strip.cleared.connect(self.desk.span.clear)
        self.strip.pointed.connect(self._point)
        self.table.opened.connect(self.place_wanted)
        self.table.marked.connect(self._only.setEnabled)
        self.desk.span.changed.connect(self._show_range)
        for signal in (self._events.rowsInserted, self._events.modelReset):
            signal.connect(self._on_events)
        self._only.setEnabled(False)

    def show_task(self, view: TaskView) -> None:
        """Show this task's timeline, updated while it runs."""
        other = view.task_id != self._task_id
        self._looks = True
        self._live = isinstance(view.entry, TaskRecord) and view.entry.is_live
        if other:
            self._task_id = view.task_id
            self._units, self._read_to = [], 0
            self._picture, self._scrolled = None, None
            self.strip.show_all()
            self._show()
            self._read()
        else:
            self._again.request()

    def leave(self) -> None:
        self._looks = False
        self._again.cancel()
        self.desk.bridge.call_off(NAME)

    def _on_events(self, *_: object) -> None:
        if self._looks:
            self._again.request()

    def _read(self) -> None:
        if not self._looks:
            return
        task_id, rows, since = self._task_id, list(self._events.kept), self._read_to
        known, before, idle = list(self._units), self._picture, self.tr("Idle")

        async def work(engine: Engine) -> _Found:
            at, units = since, known
            while True:
                part = await engine.past.unit_times(task_id, at)
                units = [*units, *part.units][-MOST:]
                if part.next_offset == at:
                    break
                at = part.next_offset
            picture = await asyncio.to_thread(picture_of, rows, units, before, idle)
            return task_id, picture, units, at

        self.desk.bridge.ask(work, self._take, lambda _: None, name=NAME)

    def _take(self, found: _Found) -> None:
        task_id, picture, self._units, self._read_to = found
        if task_id == self._task_id and picture is not self._picture:
            self._picture = picture
            self._show()

    # Display.

    def _show(self) -> None:
        picture = self._picture
        self._order.setEnabled(picture is not None)
        if picture is None:
            self.strip.show_picture(None, folded=False)
            self.model.show_spans(())
            self._told.show_text("")
            self._nothing.tell(self.tr("No event with a time yet."))
            self._all.hide()
            return
        self._nothing.tell("")
        self.strip.show_picture(picture, folded=self._fold.isChecked())
        self._show_rows(picture)
        self._tell(picture)

    def _show_rows(self, picture: TimePicture) -> None:
        span, longest = self.desk.span.range, self._order.currentIndex() == 1
        if span is None:
            rows = picture.longest if longest else picture.rows
            start, end = picture.start, picture.end
        else:
            rows = picture.between(span)
            start = min((one.start for one in rows), default=span[0])
            end = max((one.end for one in rows), default=span[1])
            if longest:
                rows.sort(key=lambda one: -one.took_ms)
        self.table.show_whole((start, end), picture.idle if self._fold.isChecked() else [])
        self.model.show_spans(rows)

    def _tell(self, picture: TimePicture) -> None:
        span = self.desk.span.range
        self._all.setVisible(span is not None)
        if span is not None:
            (a, b), rows = span, self.model.rowCount()
            said = self.tr("From {0} to {1} ({2}): {3} rows")
            if rows == 1:
                said = self.tr("From {0} to {1} ({2}): 1 row")
            self._told.show_text(said.format(clock(a, b), clock(b, b), took(b - a), count(rows)))
            return
        nothing = sum(b - a for a, b in picture.idle)
        whole = took(picture.end - picture.start)
        said = self.tr("{0} in all, {1} of it idle") if nothing else self.tr("{0} in all")
        self._told.show_text(said.format(whole, duration(nothing)))

    # Time range.

    def _choose(self, start: float, end: float) -> None:
        if self.desk.span.range is None:
            self._scrolled = self.table.verticalScrollBar().value()
        found = self._picture.between((start, end)) if self._picture is not None else []
        units = (one.unit for one in found if one.unit and start <= one.end <= end)
        self.desk.span.choose(start, end, frozenset(units))

    def _choose_marked(self) -> None:
        marked = self.table.marked_spans()
        if marked:
            self._choose(min(one.start for one in marked), max(one.end for one in marked))

    def _show_range(self) -> None:
        self.strip.show_range(self.desk.span.range)
        if self._picture is not None:
            self._show()
        if self.desk.span.range is None and self._scrolled is not None:
            self.table.scroll_back(self._scrolled)
            self._scrolled = None

    def _point(self, ts_ms: float) -> None:
        if self.model.rowCount():
            self.table.show_row(self.model.row_at(ts_ms))


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
