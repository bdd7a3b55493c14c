"""Item delegate that paints the table's cells directly from the rows.

A delegate that calls `data()` for every role of every cell takes twice as long for a frame, and so
does one that reads palette and font for every cell: both are cached until the view changes them.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from engine.model.status import look
from engine.text import words
from gui.style.theme import tones
from gui.tasks.budget_gauge import TONES
from gui.tasks.cell_painting import (
    BADGE_GAP,
    SIGN_SIZE,
    badge_width,
    paint_badge,
    paint_gauge,
    paint_progress,
    sign,
)
from gui.tasks.columns import COLUMNS, Column, budget_of, forced_at
from gui.tasks.row import Row
from gui.tasks.row_selection import RowChoice
from gui.tasks.task_model import TaskModel

PAD = 8
ROW_PAD = 10
SIGN_GAP = 6
TRACK_ALPHA = 60
ALIGN = {
    "left": int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter),
    "right": int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter),
    "center": int(Qt.AlignmentFlag.AlignCenter),
}
_QUIET = frozenset(
    {"kind", "age", "updated", "id", "host", "started", "ended", "took", "average", "owner"}
    | {"parent", "phase"}
)
_LEFT = ALIGN["left"]
# Alignment for right-to-left layouts, independent of the direction of a single text.
_ABSOLUTE = int(Qt.AlignmentFlag.AlignAbsolute)
MIRRORED = {ALIGN["left"]: ALIGN["right"] | _ABSOLUTE, ALIGN["right"]: ALIGN["left"] | _ABSOLUTE}
_KEPT_TEXTS = 4096
_ELIDE_RIGHT, _ELIDE_MIDDLE = Qt.TextElideMode.ElideRight, Qt.TextElideMode.ElideMiddle


class RowDelegate(QStyledItemDelegate):
    """Delegate for all columns of the task table."""

    def __init__(self, model: TaskModel, view: RowChoice) -> None:
        super().__init__(view)
        self._model, self._view = model, view
        self._elided: dict[tuple[str, int, bool], str] = {}
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
        self._mirrored = self._view.isRightToLeft()

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        if self._mirrored:  # Ages and names keep the direction of their own language
            painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        # The annotation avoids the wrong stub of `getRect`, and four separate calls are slower.
        rect: Any = option.rect
        x, y, width, height = rect.getRect()
        row, column = self._model.row_at(index.row()), COLUMNS[index.column()]
        marked = self._view.all_marked or self._view.selectionModel().isSelected(index)
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
        return wide + 2 * PAD + (SIGN_SIZE + SIGN_GAP if column.paint == "status" else 4)

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
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
        elif column.paint == "attention":
            name = "attention" if row.needs else "acknowledged"
            self._sign(painter, box[0] + (box[2] - SIGN_SIZE) // 2, box, name, marked)
        elif column.paint == "progress":
            self._progress(painter, box, row, text, marked)
        elif column.paint == "budget":
            self._budget(painter, box, row, marked)
        else:
            self._task(painter, box, row, text, marked)

    def _task(
        self, painter: QPainter, box: tuple[int, int, int, int], row: Row, text: str, marked: bool
    ) -> None:
        left, top, width, height = box
        inks = self._tone("muted", marked), self._tone("line", marked)
        for badge in self._badges(row):
            wide = badge_width(self._metrics, badge)
            if width > 2.4 * wide:
                room = wide - BADGE_GAP if self._mirrored else width
                paint_badge(painter, QRectF(left, top, room, height), badge, *inks)
                left += wide if self._mirrored else 0
                width -= wide
        middle = " " not in text
        ink = self._text_ink(marked)
        self._write(painter, (left, top, width, height), text, ink, _LEFT, middle)

    @staticmethod
    def _badges(row: Row) -> list[str]:
        """Return the badges of a task: forced, foreign, and marks of its state."""
        badges = [words.say("badge.forced")] if forced_at(row) is not None else []
        badges += [words.say("badge.foreign")] if row.view.foreign else []
        return [*badges, *words.marks(row.view)]

    def _budget(
        self, painter: QPainter, box: tuple[int, int, int, int], row: Row, marked: bool
    ) -> None:
        found = budget_of(row, self._model.now_ms())
        if found is not None:
            fill = self._tone(TONES[found.level], marked)
            track = QColor(fill)
            track.setAlpha(TRACK_ALPHA)
            ink = self._text_ink(marked) if found.level == "ok" else fill
            paint_gauge(painter, QRectF(*box), found.text, found.fraction, (fill, track, ink))

    def _progress(
        self, painter: QPainter, box: tuple[int, int, int, int], row: Row, text: str, marked: bool
    ) -> None:
        fill = self._tone(look(row.view), marked)
        track = QColor(fill)
        track.setAlpha(TRACK_ALPHA)
        inks = (fill, track, self._text_ink(marked))
        paint_progress(painter, QRectF(*box), text, row.fraction, row.live, inks)

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


def row_height(font_height: int) -> int:
    return max(font_height, SIGN_SIZE) + ROW_PAD
