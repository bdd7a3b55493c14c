"""Timeline tab: durations of events and units; a selected range filters the other tabs."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QPainter, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QPushButton,
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
from gui.details.details_tab import DetailTab
from gui.details.event_model import EventModel
from gui.details.timeline_spans import (
    BAR,
    BEGAN,
    IDLE,
    MOST,
    TEXT,
    TOOK,
    WHAT,
    Scale,
    Span,
    TimelineModel,
    TimePicture,
    duration,
    picture_of,
)
from gui.details.timeline_strip import TimelineStrip
from gui.engine_link.services import Desk
from gui.engine_link.throttle import Throttle
from gui.style.labels import ElidedLabel
from gui.style.tables import AnyIndex, show_plain_rows
from gui.style.theme import tone

# Table of spans below the strip, with a bar for position and length of each.

_CHARS = {BEGAN: 15, WHAT: 18, TOOK: 14}
_TEXT_SHARE, _LEAST_BAR = 0.6, 110  # share of the remaining width; pixels


class TimelineTable(QTableView):
    """Table of spans; `opened` carries an event's byte position, `marked` if rows are selected."""

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
        selection = self.selectionModel().selection()
        parts = (selection.at(number) for number in range(selection.size()))
        rows = {row for part in parts for row in range(part.top(), part.bottom() + 1)}
        return [self._model.span_at(row) for row in rows]

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

    place_wanted = Signal(int)

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
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self.strip)
        column.addWidget(self.table, 1)

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
            self._told.show_text(self.tr("Nothing has told of its time yet."))
            self._all.hide()
            return
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
