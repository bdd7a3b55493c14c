"""The header of the table, with an arrow and a rank for every sort key.

A click sorts without changing widths. The Task column fills the remaining room; where room is
short, other columns shrink or are hidden before a horizontal scroll bar appears.
"""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QPoint, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPalette, QResizeEvent
from PySide6.QtWidgets import QApplication, QHeaderView, QMenu, QWidget

from engine.query import SortKey
from gui.style.menu import Menu
from gui.style.tables import (
    ColumnSwitch,
    Share,
    fill_column_menu,
    fitted,
    paint_arrow,
    paint_header_ground,
)
from gui.style.theme import tone
from gui.tasks.cell_painting import ALIGN, PAD, SIGN_GAP, SIGN_SIZE
from gui.tasks.columns import COLUMN_AT, COLUMNS, Column, columns_there

# Painting of one header section: title, arrow and rank of a sort key.

_ARROW = 7
_RANKS = "¹²³⁴⁵⁶⁷⁸⁹"


def paint_title(painter: QPainter, rect: QRect, column: Column, keys: tuple[SortKey, ...]) -> None:
    """Paint one title on its background, with its arrow and its rank among several keys."""
    palette = QApplication.palette()
    painter.save()
    paint_header_ground(painter, rect)
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
    if column.align == "center":  # A centred icon leaves no room at its side
        paint_arrow(painter, QPointF(room.center().x() + 1, room.top() + 4), down)
        _write(painter, room, column)
        return
    metrics = painter.fontMetrics()
    wide = _ARROW + 4 + (metrics.horizontalAdvance(mark) + 1 if mark else 0)
    title = room.adjusted(0, 0, -wide, 0)
    shown = min(title.width(), metrics.horizontalAdvance(column.title))
    left = title.left() + shown if column.align == "left" else title.right()
    _write(painter, title, column)
    paint_arrow(painter, QPointF(left + 4 + _ARROW / 2, room.center().y()), down)
    if mark:
        at = QPointF(left + _ARROW + 5, room.center().y() + metrics.ascent() / 2)
        painter.drawText(at, mark)


def _write(painter: QPainter, room: QRect, column: Column) -> None:
    text = painter.fontMetrics().elidedText(column.title, Qt.TextElideMode.ElideRight, room.width())
    painter.drawText(room, ALIGN[column.align], text)


_TASK = COLUMN_AT["task"]
_STATE = "columns 2"  # First line of a saved state, which names its version
_WIDEST_CHARS = 200


class TaskHeader(QHeaderView):
    """Header view that requests sort orders and saves the chosen columns.

    `order_wanted` requests a sort order, `contents_wanted` the width of a column's visible cells.
    `rearranged` reports that the user moved, resized or chose columns.
    """

    order_wanted = Signal(list)
    contents_wanted = Signal(int)
    rearranged = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._keys: tuple[SortKey, ...] = ()
        self._fitting = False
        self._widths: dict[str, int] = {}  # Widths that the user set
        self._hidden = {column.key for column in COLUMNS if column.hidden}
        # Columns that the user chose to show, which are never hidden for lack of room.
        self._asked: set[str] = set()
        self._used: frozenset[str] = frozenset()  # Rare columns that have a value now
        self._there = {column.key for column in columns_there(several=False)}
        self.setSectionsMovable(True)
        self.setFirstSectionMovable(True)
        self.setSectionsClickable(True)
        self.setHighlightSections(False)
        self.setStretchLastSection(False)
        self.setMinimumSectionSize(2 * PAD)
        self.sectionClicked.connect(self._sort_by)
        self.sectionResized.connect(self._resized)
        self.sectionMoved.connect(lambda *_: self._tell())
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._open_menu)

    def show_order(self, keys: tuple[SortKey, ...]) -> None:
        """Mark the columns that the rows are sorted by."""
        self._keys = keys
        self.fit()
        self.viewport().update()

    def set_widths(self) -> None:
        """Reset width, position and visibility of all columns to their defaults."""
        self._widths, self._asked = {}, set()
        self._hidden = {column.key for column in COLUMNS if column.hidden}
        self._arrange([column.key for column in COLUMNS])
        self.fit()
        self._tell()

    def is_wanted(self, key: str) -> bool:
        """Return whether this column is to be shown when there is room."""
        return key not in self._hidden and key in self._there

    @property
    def columns(self) -> list[Column]:
        """The columns that can be shown and sorted by, in default order."""
        return [column for column in COLUMNS if column.key in self._there]

    def show_several(self, several: bool) -> None:
        """Add or remove the columns that are useful only with `several` ledgers."""
        self._there = {column.key for column in columns_there(several=several)}
        self.fit()

    def show_used(self, keys: frozenset[str]) -> None:
        """Set the rare columns that visible rows have a value for; the others are hidden."""
        if keys != self._used:
            self._used = keys
            self.fit()

    def show_column(self, key: str, wanted: bool) -> None:
        """Show or hide a column, except the Task column, which always stays."""
        if key == COLUMNS[_TASK].key:
            return
        change, other = (self._asked, self._hidden) if wanted else (self._hidden, self._asked)
        change.add(key)
        other.discard(key)
        self.fit()
        self._tell()

    def saveState(self) -> QByteArray:
        """Return the columns in their order, with visibility and user widths."""
        lines = [_STATE]
        for place in range(self.count()):
            key = COLUMNS[self.logicalIndex(place)].key
            shown = "asked" if key in self._asked else "no" if key in self._hidden else "yes"
            lines.append(f"{key} {shown} {self._widths.get(key, 0)}")
        return QByteArray("\n".join(lines).encode())

    def restore(self, state: QByteArray) -> bool:
        """Restore saved columns, or change nothing and return False for an invalid state.

        A column that is missing in the state keeps its default place and width.
        """
        kept = _read(bytes(state.data()).decode("utf-8", "replace"))
        if not kept:
            return False
        self._hidden -= kept.keys()
        self._asked -= kept.keys()
        self._hidden |= {key for key, (shown, _) in kept.items() if shown == "no"} - {"task"}
        self._asked |= {key for key, (shown, _) in kept.items() if shown == "asked"}
        self._widths = {key: width for key, (_, width) in kept.items() if width}
        self._arrange(list(kept))
        self.fit()
        return True

    def fit(self) -> None:
        """Fit the columns to the view: Task fills it, others shrink or are hidden."""
        room = self.viewport().width()
        if room <= 2 * PAD:  # The view has no size before it is shown
            return
        wanted = [self._share(at) for at, column in enumerate(COLUMNS) if self._is_due(column)]
        widths = fitted(wanted, room)
        self._fitting = True
        for number, column in enumerate(COLUMNS):
            width = widths.get(column.key)
            if self.isSectionHidden(number) != (width is None):
                self.setSectionHidden(number, width is None)
            if width is not None and self.sectionSize(number) != width:
                self.resizeSection(number, width)
        self._fitting = False

    def fill_menu(self, menu: QMenu) -> None:
        """Add a switch for each column and an action that restores the defaults."""
        switches = (
            ColumnSwitch(
                column.key,
                self._switch_title(number, column),
                self.is_wanted(column.key),
                stays=number == _TASK,
                is_there=column.key in self._there,
            )
            for number, column in enumerate(COLUMNS)
        )
        fill_column_menu(menu, switches, self.show_column, self.set_widths)

    def _switch_title(self, number: int, column: Column) -> str:
        """Return the title, with the reason why a wanted column is not shown."""
        title = column.long_title
        if not self.is_wanted(column.key) or not self.isSectionHidden(number):
            return title
        if not self._is_due(column):
            return self.tr("{0} (no values yet)").format(title)
        return self.tr("{0} (no room)").format(title)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.fontMetrics().height() + 10)

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        paint_title(painter, rect, COLUMNS[section], self._keys)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        # Qt would fit the column to its longest cell without a signal.
        number = self._handle_at(event.position().toPoint())
        if number < 0:
            super().mouseDoubleClickEvent(event)
        elif number == _TASK:
            self._widths.pop(COLUMNS[number].key, None)
            self.fit()
            self._tell()
        else:
            self.contents_wanted.emit(number)

    def give_width(self, number: int, width: int) -> None:
        """Set the width of a column in pixels, as if the user had dragged its edge."""
        most = _WIDEST_CHARS * self.fontMetrics().averageCharWidth()
        self._widths[COLUMNS[number].key] = max(2 * PAD, min(width, most))
        self.fit()
        self._tell()

    def _is_due(self, column: Column) -> bool:
        """Return whether the column is to be shown now, if there is room."""
        if not self.is_wanted(column.key):
            return False
        is_used = not column.rare or column.key in self._used or column.key in self._asked
        return is_used or self._sorts(column)

    def _sorts(self, column: Column) -> bool:
        return any(key == column.key for key, _ in self._keys)

    def _share(self, number: int) -> Share:
        column, character = COLUMNS[number], self.fontMetrics().averageCharWidth()
        given, longest = self._widths.get(column.key), self._longest(column)
        usual = max(column.width * character, longest) + 2 * PAD if given is None else given
        stays = self._sorts(column) or given or column.key in self._asked
        return Share(
            column.key,
            usual,
            min(usual, max((column.least or column.width) * character, longest) + 2 * PAD),
            fills=number == _TASK,
            fixed=given is not None,
            yields=0 if stays else column.yields,
        )

    def _longest(self, column: Column) -> int:
        """Return the pixels of the longest text of the column, 0 where it is unknown."""
        metrics = self.fontMetrics()
        words = [metrics.horizontalAdvance(one) for one in column.vocabulary]
        return max(words) + SIGN_SIZE + SIGN_GAP + PAD // 2 if words else 0

    def _handle_at(self, at: QPoint) -> int:
        """Return the column whose right edge is under the pointer, or -1."""
        grip = self.style().pixelMetric(self.style().PixelMetric.PM_HeaderGripMargin, None, self)
        for number in range(self.count()):
            edge = self.sectionViewportPosition(number) + self.sectionSize(number)
            if not self.isSectionHidden(number) and abs(at.x() - edge) <= grip:
                return number
        return -1

    def _arrange(self, keys: list[str]) -> None:
        """Order the columns by `keys`, and put all others at their default places."""
        usual = [column.key for column in COLUMNS]
        order = [key for key in keys if key in COLUMN_AT]
        for at, key in enumerate(usual):
            if key not in order:
                order.insert(order.index(usual[at - 1]) + 1 if at else 0, key)
        for place, key in enumerate(order):
            self.moveSection(self.visualIndex(COLUMN_AT[key]), place)

    def _resized(self, section: int, _before: int, after: int) -> None:
        if self._fitting or not self.isVisible() or not after:
            return
        self._widths[COLUMNS[section].key] = after
        self.fit()
        self._tell()

    def _tell(self) -> None:
        if not self._fitting:
            self.rearranged.emit()

    def _sort_by(self, section: int) -> None:
        """Sort by the clicked column or reverse it; with Shift, add it as a further key."""
        further = bool(QApplication.keyboardModifiers() & Qt.KeyboardModifier.ShiftModifier)
        self.order_wanted.emit(next_order(self._keys, COLUMNS[section].key, further=further))

    def _open_menu(self, at: QPoint) -> None:
        menu = Menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fill_menu(menu)
        menu.popup(self.mapToGlobal(at))


def next_order(keys: tuple[SortKey, ...], key: str, *, further: bool) -> list[SortKey]:
    """Return the sort keys after a click: the column first or reversed, or added as a further key.

    A further key is removed by its third click, unless it is the only one.
    """
    names = [name for name, _ in keys]
    at = names.index(key) if key in names else -1
    if not further:
        return [(key, at == 0 and not keys[0][1])]
    if at < 0:
        return [*keys, (key, False)]
    turned = [*keys[:at], (key, True), *keys[at + 1 :]]
    return turned if not keys[at][1] else [*keys[:at], *keys[at + 1 :]] or [(key, False)]


def _read(text: str) -> dict[str, tuple[str, int]]:
    head, *lines = text.split("\n")
    kept: dict[str, tuple[str, int]] = {}
    for line in lines:
        key, shown, width = (*line.split(), "", "", "")[:3]
        if key in COLUMN_AT:
            kept[key] = (shown, int(width) if width.isdecimal() and len(width) < 6 else 0)
    return kept if head == _STATE else {}
