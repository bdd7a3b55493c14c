"""Paint the table's cells from the rows: state icons, progress, badges, never by colour alone.

A delegate that calls `data()` for every role of every cell takes twice as long for a frame, and so
does one that reads palette and font for every cell: both are cached until the view changes them.
Icons are cached by size, colour and screen scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFontMetrics,
    QPainter,
    QPainterPath,
    QPalette,
    QPen,
    QPixmap,
)
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem, QTableView

from engine.model.kind_traits import traits_of
from engine.model.records import Units
from engine.model.status import Standing, look
from engine.text import words
from gui.style.icons import glyph
from gui.style.tables import CELL_PAD, AnyIndex, row_height
from gui.style.theme import tones
from gui.tasks.columns import COLUMNS, Column, budget_of
from gui.tasks.row import LEVEL_TONES, Row
from gui.tasks.task_model import TaskModel

SIGN_SIZE = 14
BAR_HEIGHT = 6
_GAUGE_HEIGHT = 2.5
_BOX_MARGIN = 4  # Above and below the bar of a progress cell
_BOX_PAD = 6  # Between the end of that bar and its text
BADGE_GAP = 7


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


def kind_sign(kind: str, colour: QColor, scale: float = 1.0) -> QPixmap:
    """Return the icon of a kind of task, `SIGN_SIZE` pixels square, for `scale`."""
    return _kind_sign(traits_of(kind).icon, colour.rgba(), scale)


@lru_cache(maxsize=256)
def _kind_sign(name: str, rgba: int, scale: float) -> QPixmap:
    return glyph(name, SIGN_SIZE, QColor.fromRgba(rgba), scale)


def bell_sign(colour: QColor, scale: float = 1.0) -> QPixmap:
    """Return the bell of a task of whose end the user is notified."""
    return _kind_sign("bell", colour.rgba(), scale)


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


class Part(NamedTuple):
    """How much of a task is done.

    `share` is from 0 to 1, or None while the total is unknown; `failed` is the part of it that
    failed. A `live` task of unknown total is hatched.
    """

    share: float | None
    failed: float = 0.0
    live: bool = False

    @classmethod
    def of(cls, units: Units | None, share: float | None, live: bool) -> Part:
        """Return the part of a task with these units."""
        failed = units.failed / units.total if units is not None and units.total else 0.0
        return cls(share, failed, live)


class ProgressColours(NamedTuple):
    """Colours of a progress cell; `fill`, `failed` and `track` are translucent under the text."""

    fill: QColor
    failed: QColor
    track: QColor
    ink: QColor


def paint_progress(
    painter: QPainter,
    rect: QRectF,
    text: str,
    part: Part,
    colours: ProgressColours,
    margin: int = _BOX_MARGIN,
) -> None:
    """Paint a progress bar as large as `rect` less `margin`, with its text inside at the right.

    The failed part stands at the end of the done one, hatched.
    """
    if not text:
        return
    bar = rect.adjusted(0, margin, 0, -margin)
    if part.share is not None:
        # Keep at least 2 pixels, so that started work never looks like none.
        done = max(2.0, bar.width() * part.share) if part.share > 0 else 0.0
        bad = min(done, max(2.0, bar.width() * part.failed)) if part.failed > 0 else 0.0
        painter.fillRect(bar, colours.track)
        painter.fillRect(QRectF(bar.x(), bar.y(), done - bad, bar.height()), colours.fill)
        if bad:
            end = QRectF(bar.x() + done - bad, bar.y(), bad, bar.height())
            painter.fillRect(end, colours.failed)
            painter.fillRect(end, QBrush(colours.failed, Qt.BrushStyle.BDiagPattern))
    elif part.live:
        painter.fillRect(bar, colours.track)
        painter.fillRect(bar, QBrush(colours.fill, Qt.BrushStyle.BDiagPattern))
    room = rect.adjusted(0, 0, -_BOX_PAD, 0)
    metrics, right = painter.fontMetrics(), int(Qt.AlignmentFlag.AlignRight)
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, math.ceil(room.width()))
    painter.setPen(colours.ink)
    painter.drawText(room, right | int(Qt.AlignmentFlag.AlignVCenter), shown)


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


PAD = CELL_PAD
SIGN_GAP = 6
TRACK_ALPHA = 28
FILL_ALPHA, FAILED_ALPHA = 100, 120
GAUGE_ALPHA = 60
_SIGNED = ("status", "kind")
ALIGN = {
    "left": int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter),
    "right": int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter),
    "center": int(Qt.AlignmentFlag.AlignCenter),
}
_QUIET = frozenset(
    {"kind", "age", "updated", "id", "host", "started", "ended", "took", "average", "owner"}
    | {"parent", "phase", "client"}
)
_LEFT = ALIGN["left"]
# Alignment for right-to-left layouts, independent of the direction of a single text.
_ABSOLUTE = int(Qt.AlignmentFlag.AlignAbsolute)
MIRRORED = {ALIGN["left"]: ALIGN["right"] | _ABSOLUTE, ALIGN["right"]: ALIGN["left"] | _ABSOLUTE}
_KEPT_TEXTS = 4096
_ELIDE_RIGHT, _ELIDE_MIDDLE = Qt.TextElideMode.ElideRight, Qt.TextElideMode.ElideMiddle


def _thin(colour: QColor, alpha: int) -> QColor:
    found = QColor(colour)
    found.setAlpha(alpha)
    return found


def bar_colours(fill: QColor, bad: QColor, ink: QColor) -> ProgressColours:
    """Return the colours of a bar under text in `ink`."""
    inks = (_thin(fill, FILL_ALPHA), _thin(bad, FAILED_ALPHA), _thin(fill, TRACK_ALPHA))
    return ProgressColours(*inks, ink)


class RowDelegate(QStyledItemDelegate):
    """Delegate for all columns of the task table."""

    def __init__(
        self, model: TaskModel, view: QTableView, is_marked: Callable[[AnyIndex], bool]
    ) -> None:
        super().__init__(view)
        self._model, self._view, self._is_marked = model, view, is_marked
        self._elided: dict[tuple[str, int, bool], str] = {}
        self._bars: dict[tuple[str, bool], ProgressColours] = {}
        self.dress()

    def dress(self) -> None:
        """Read the colours and the font of the view again."""
        palette = self._view.palette()
        self._tones = tones(palette)
        self._ink = palette.color(QPalette.ColorRole.Text)
        self._marked = palette.color(QPalette.ColorRole.HighlightedText)
        self._mark = palette.color(QPalette.ColorRole.Highlight)
        self._metrics = QFontMetrics(self._view.font())
        self._elided.clear()
        self._bars.clear()
        self._mirrored = self._view.isRightToLeft()

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        if self._mirrored:  # Ages and names keep the direction of their own language
            painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        # The annotation avoids the wrong stub of `getRect`, and four separate calls are slower.
        rect: Any = option.rect
        x, y, width, height = rect.getRect()
        row, column = self._model.row_at(index.row()), COLUMNS[index.column()]
        marked = self._is_marked(index)
        if marked:
            painter.fillRect(x, y, width, height, self._mark)
        text = column.text(row, self._model.now_ms())
        if text:
            self._cell(painter, (x + PAD, y, width - 2 * PAD, height), row, column, text, marked)

    def width_of(self, number: int, first: int, last: int) -> int:
        """Return the width in pixels for the texts of a column in rows `first` to `last`."""
        column, now = COLUMNS[number], self._model.now_ms()
        texts = [column.text(self._model.row_at(at), now) for at in range(first, last + 1)]
        wide = max(map(self._metrics.horizontalAdvance, [column.title, *texts]))
        return wide + 2 * PAD + (SIGN_SIZE + SIGN_GAP if column.paint in _SIGNED else 4)

    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        return QSize(60, row_height(self._metrics.height()))

    def _cell(
        self,
        painter: QPainter,
        box: tuple[int, int, int, int],
        row: Row,
        column: Column,
        text: str,
        marked: bool,
    ) -> None:
        if column.paint == "text":
            ink = self._tone("muted", marked) if column.key in _QUIET else self._text_ink(marked)
            self._write(painter, box, text, ink, ALIGN[column.align])
        elif column.paint == "status":
            name = look(row.view)
            left, top, width, height = box
            first = left + width - SIGN_SIZE if self._mirrored else left
            self._sign(painter, first, box, name, marked)
            left += 0 if self._mirrored else SIGN_SIZE + SIGN_GAP
            beside = (left, top, width - SIGN_SIZE - SIGN_GAP, height)
            self._write(painter, beside, text, self._tone(name, marked), _LEFT)
        elif column.paint == "kind":
            self._kind(painter, box, row, text, marked)
        elif column.paint == "attention":
            name = "attention" if row.needs else "acknowledged"
            self._sign(painter, box[0] + (box[2] - SIGN_SIZE) // 2, box, name, marked)
        elif column.paint == "progress":
            self._progress(painter, box, row, text, marked)
        elif column.paint == "budget":
            self._budget(painter, box, row, marked)
        else:
            self._task(painter, box, row, text, marked)

    def _kind(
        self, painter: QPainter, box: tuple[int, int, int, int], row: Row, text: str, marked: bool
    ) -> None:
        left, top, width, height = box
        ink, scale = self._tone("muted", marked), self._view.devicePixelRatioF()
        first = left + width - SIGN_SIZE if self._mirrored else left
        picture = kind_sign(row.about.kind, ink, scale)
        painter.drawPixmap(first, top + (height - SIGN_SIZE) // 2, picture)
        left += 0 if self._mirrored else SIGN_SIZE + SIGN_GAP
        self._write(painter, (left, top, width - SIGN_SIZE - SIGN_GAP, height), text, ink, _LEFT)

    def _task(
        self, painter: QPainter, box: tuple[int, int, int, int], row: Row, text: str, marked: bool
    ) -> None:
        left, top, width, height = box
        inks = self._tone("muted", marked), self._tone("line", marked)
        if row.awaited:
            first = left if self._mirrored else left + width - SIGN_SIZE
            bell = bell_sign(self._tone("accent", marked), self._view.devicePixelRatioF())
            painter.drawPixmap(first, top + (height - SIGN_SIZE) // 2, bell)
            left += SIGN_SIZE + SIGN_GAP if self._mirrored else 0
            width -= SIGN_SIZE + SIGN_GAP
        for badge in words.badges(row.view):
            wide = badge_width(self._metrics, badge)
            if width > 2.4 * wide:
                room = wide - BADGE_GAP if self._mirrored else width
                paint_badge(painter, QRectF(left, top, room, height), badge, *inks)
                left += wide if self._mirrored else 0
                width -= wide
        middle = " " not in text
        ink = self._text_ink(marked)
        self._write(painter, (left, top, width, height), text, ink, _LEFT, middle)

    def _budget(
        self, painter: QPainter, box: tuple[int, int, int, int], row: Row, marked: bool
    ) -> None:
        found = budget_of(row, self._model.now_ms())
        if found is not None:
            fill = self._tone(LEVEL_TONES[found.level], marked)
            track = _thin(fill, GAUGE_ALPHA)
            ink = self._text_ink(marked) if found.level == "ok" else fill
            paint_gauge(painter, QRectF(*box), found.text, found.fraction, (fill, track, ink))

    def _progress(
        self, painter: QPainter, box: tuple[int, int, int, int], row: Row, text: str, marked: bool
    ) -> None:
        colours = self._progress_colours(look(row.view), marked)
        part = Part.of(row.view.units, row.fraction, row.live)
        paint_progress(painter, QRectF(*box), text, part, colours)

    def _progress_colours(self, name: str, marked: bool) -> ProgressColours:
        found = self._bars.get((name, marked))
        if found is None:
            ink = self._text_ink(marked)
            # On a selected row the bar is a shade of the highlight, against which its text stands.
            shade = self._mark.darker(220 if ink.lightness() > self._mark.lightness() else 60)
            fill = shade if marked else self._tone(name, marked)
            bad = shade if marked else self._tone("bad", marked)
            found = self._bars[name, marked] = bar_colours(fill, bad, ink)
        return found

    def _text_ink(self, marked: bool) -> QColor:
        return self._marked if marked else self._ink

    def _tone(self, name: str, marked: bool) -> QColor:
        """Return a colour of the theme, or the highlighted text colour on a selected row."""
        return self._marked if marked else self._tones.get(name, self._tones["muted"])

    def _sign(
        self, painter: QPainter, left: int, box: tuple[int, int, int, int], name: str, marked: bool
    ) -> None:
        pixmap = sign(name, self._tone(name, marked), self._view.devicePixelRatioF())
        painter.drawPixmap(left, box[1] + (box[3] - SIGN_SIZE) // 2, pixmap)

    def _write(
        self,
        painter: QPainter,
        box: tuple[int, int, int, int],
        text: str,
        ink: QColor,
        align: int,
        middle: bool = False,
    ) -> None:
        width = box[2]
        shown = self._elided.get((text, width, middle))
        if shown is None:
            mode = _ELIDE_MIDDLE if middle else _ELIDE_RIGHT
            shown = self._metrics.elidedText(text, mode, width)
            if len(self._elided) >= _KEPT_TEXTS:
                self._elided.clear()
            self._elided[text, width, middle] = shown
        painter.setPen(ink)
        painter.drawText(*box, MIRRORED.get(align, align) if self._mirrored else align, shown)
