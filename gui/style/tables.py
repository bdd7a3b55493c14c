"""Tables: item roles, the look and keys of detail tables, and column widths for limited room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from PySide6.QtCore import (
    QAbstractItemModel,
    QCoreApplication,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRect,
    QSize,
    Qt,
)
from PySide6.QtGui import (
    QAction,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPalette,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QTreeView,
    QWidget,
)

from engine.model.display import clipboard_cell
from gui.style.theme import tone

AnyIndex = QModelIndex | QPersistentModelIndex

ROOT: Final = QModelIndex()
DISPLAY: Final = int(Qt.ItemDataRole.DisplayRole)
TOOL_TIP: Final = int(Qt.ItemDataRole.ToolTipRole)
COLOUR: Final = int(Qt.ItemDataRole.ForegroundRole)
FONT: Final = int(Qt.ItemDataRole.FontRole)
ALIGNMENT: Final = int(Qt.ItemDataRole.TextAlignmentRole)
SPOKEN: Final = int(Qt.ItemDataRole.AccessibleTextRole)
SPOKEN_MORE: Final = int(Qt.ItemDataRole.AccessibleDescriptionRole)


LAST_CHARS, LEAST_CHARS = 28, 24  # Characters of the last column, and of the one that grows
_CHOOSING_KEYS: Final = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space})
_LAST_SHARE = 0.55  # of the free room, for a last column that explains failures
CELL_PAD = 8  # Pixels at each side of a text
PAD = 2 * CELL_PAD
_TREE_ROOM = 4  # Pixels between the rows of a tree
_STYLE_PAD = 3  # Pixels that Qt's own delegate leaves
_ROW_PAD, _LEAST_LINE = 10, 14
_ARROW = 7
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


class PlainTable(QTableView):
    """Table with whole-row selection and column `widths` in characters (0 keeps the default).

    With `least` (also in characters) columns shrink where room is short instead of scrolling
    sideways, down to their titles or further, and elided text is shown as a tool tip. The column
    `grows`, without it the last one, has the remaining room.
    """

    def __init__(
        self,
        model: QAbstractItemModel,
        name: str,
        widths: Sequence[int],
        parent: QWidget | None = None,
        *,
        grows: int = -1,
        least: Sequence[int] = (),
    ) -> None:
        super().__init__(parent)
        self._last_matters = False
        self._grows, self._touched, self._fitting = grows, False, False
        self._widths, self._least = tuple(widths), tuple(least)
        self._longest: Mapping[int, str] = {}
        self.setModel(model)
        self.setAccessibleName(name)
        show_plain_rows(self)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._set_headers(widths)

    def _set_headers(self, widths: Sequence[int]) -> None:
        header = self.horizontalHeader()
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSortIndicatorClearable(True)
        if self._least:
            header.setTextElideMode(Qt.TextElideMode.ElideRight)
            header.setMinimumSectionSize(PAD)
        character = self.fontMetrics().averageCharWidth()
        for at, chars in enumerate(widths):
            if chars:
                header.resizeSection(at, chars * character + PAD)
        header.sectionResized.connect(self._note_drag)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the remaining room to the column `grows`, until the user drags a column."""
        super().resizeEvent(event)
        self._share_room()

    def show_columns(self, wanted: Mapping[int, bool]) -> None:
        """Show or hide these columns by number; others stay unchanged."""
        header = self.horizontalHeader()
        changed = {at: shown for at, shown in wanted.items() if header.isSectionHidden(at) == shown}
        if changed:
            self._share_room(changed)

    def elide_right(self, columns: Collection[int]) -> None:
        """Elide these columns of prose at the right; others (addresses, paths) in the middle."""
        self.setItemDelegate(_Cells(self, columns))

    def fit_to(self, longest: Mapping[int, str]) -> None:
        """Limit these columns to the room of their longest text, where `least` is given."""
        if longest != self._longest:
            self._longest = dict(longest)
            self._share_room()

    def favour_last(self, wanted: bool) -> None:
        """Give the last column the larger part of the free room, while it has something to say."""
        if wanted != self._last_matters:
            self._last_matters = wanted
            self._share_room()

    def _share_room(self, shown: Mapping[int, bool] | None = None) -> None:
        self._fitting = True
        for at, is_shown in (shown or {}).items():
            self.horizontalHeader().setSectionHidden(at, not is_shown)
        self._give_room()
        self._fitting = False

    def _give_room(self) -> None:
        header = self.horizontalHeader()
        last = self._last_shown()
        if self._touched or last < 0:
            return
        if self._least:
            self._fit(last)
            return
        if self._grows < 0:
            return
        others = sum(header.sectionSize(at) for at in range(last) if at != self._grows)
        character = self.fontMetrics().averageCharWidth()
        room = self.viewport().width() - others
        share = int(room * _LAST_SHARE) if self._last_matters else 0
        left = room - max(LAST_CHARS * character, share)
        header.resizeSection(self._grows, max(LEAST_CHARS * character, left))

    def _fit(self, last: int) -> None:
        header, room = self.horizontalHeader(), self.viewport().width()
        shown = [at for at in range(header.count()) if not header.isSectionHidden(at)]
        whole = [self._share(at, last, titled=True) for at in shown]
        cut = [self._share(at, last, titled=False) for at in shown]
        if _total(cut) > room:  # it scrolls, no further than it must
            widths = {share.key: share.least for share in whole}
        else:
            widths = fitted(cut if _total(whole) > room else whole, room)
        for at in (last, *shown):  # Qt stretches the last section and never shrinks it
            header.resizeSection(at, widths[str(at)])

    def _share(self, at: int, last: int, *, titled: bool) -> Share:
        header, character = self.horizontalHeader(), self.fontMetrics().averageCharWidth()
        least = self._least[at] * character
        if titled:
            title = str(self.model().headerData(at, Qt.Orientation.Horizontal, DISPLAY) or "")
            # Qt elides by parts of a pixel
            least = max(least, header.fontMetrics().horizontalAdvance(title) + 1)
        usual = (self._widths[at] or LAST_CHARS) * character
        if at in self._longest:
            usual = min(usual, self.fontMetrics().horizontalAdvance(self._longest[at]) + 1)
        usual = max(usual, least)
        fills = at == (last if self._grows < 0 else self._grows)
        return Share(str(at), usual + PAD, least + PAD, fills=fills)

    def _last_shown(self) -> int:
        """Return the column that Qt stretches; -1 without columns."""
        header = self.horizontalHeader()
        shown = (at for at in reversed(range(header.count())) if not header.isSectionHidden(at))
        return next(shown, -1)

    def _note_drag(self, section: int, *_: int) -> None:
        """Record that the user resized a column.

        Without a pressed button the header resized it, as it does with its last section. A button
        may also be pressed on the tab that shows this table.
        """
        is_last = section == self._last_shown()
        if QApplication.mouseButtons() and not self._fitting and not is_last:
            self._touched = True

    def let_sort(self) -> None:
        """Sort by header clicks; the third click restores the original order."""
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)


class ColumnSwitch(NamedTuple):
    """Entry of a column menu; one that `stays` cannot be hidden, one not `is_there` is left out."""

    key: str
    title: str
    is_on: bool
    stays: bool = False
    is_there: bool = True


def fill_column_menu(
    menu: QMenu,
    switches: Iterable[ColumnSwitch],
    show: Callable[[str, bool], object],
    reset: Callable[[], object],
) -> None:
    """Add a check mark for each column and an action that restores the defaults.

    The menu stays open at a check mark, so that several columns can be chosen at once.
    """
    if menu.findChild(_StaysOpen) is None:  # a menu is filled again at each opening
        menu.installEventFilter(_StaysOpen(menu))
    for switch in switches:
        action = QAction(switch.title, menu)
        action.setVisible(switch.is_there)
        action.setCheckable(True)
        action.setChecked(switch.is_on)
        action.setEnabled(not switch.stays)
        action.toggled.connect(lambda on, key=switch.key: show(key, on))
        menu.addAction(action)
    menu.addSeparator()
    usual = menu.addAction(QCoreApplication.translate("Columns", "&Reset columns"))
    usual.triggered.connect(lambda _=False: reset())


class _StaysOpen(QObject):
    """Event filter of a menu: switches a check mark without closing the menu."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        action = _chosen_action(watched, event) if isinstance(watched, QMenu) else None
        if action is None or not action.isCheckable() or not action.isEnabled():
            return super().eventFilter(watched, event)
        action.trigger()
        return True


def _chosen_action(menu: QMenu, event: QEvent) -> QAction | None:
    if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
        return menu.activeAction() if event.key() in _CHOOSING_KEYS else None
    if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseButtonRelease:
        is_left = event.button() == Qt.MouseButton.LeftButton
        return menu.actionAt(event.position().toPoint()) if is_left else None
    return None


class _Cells(QStyledItemDelegate):
    """Delegate that pads cells as the task list does, and elides `prose` at the right."""

    def __init__(self, table: QAbstractItemView, prose: Collection[int] = ()) -> None:
        super().__init__(table)
        self._table, self._prose = table, frozenset(prose)

    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        hint = super().sizeHint(option, index)
        # The rows of a table have a fixed height, those of a tree the height of a cell.
        is_given = index.data(Qt.ItemDataRole.SizeHintRole) is not None
        more = _TREE_ROOM if isinstance(self._table, QTreeView) and not is_given else 0
        return QSize(hint.width() + 2 * (CELL_PAD - _STYLE_PAD), hint.height() + more)

    def initStyleOption(self, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        super().initStyleOption(option, index)
        if index.column() in self._prose:
            option.textElideMode = Qt.TextElideMode.ElideRight

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        panel = QStyle.PrimitiveElement.PE_PanelItemViewItem
        self._table.style().drawPrimitive(panel, option, painter, self._table)
        inner, pad = QStyleOptionViewItem(option), CELL_PAD - _STYLE_PAD
        inner.rect = option.rect.adjusted(pad, 0, -pad, 0)
        super().paint(painter, inner, index)


class PlainHeader(QHeaderView):
    """Header in the style of the task list, with an arrow in the sorted column."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setSectionsClickable(True)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.fontMetrics().height() + _ROW_PAD)

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        model, palette = self.model(), QApplication.palette()
        is_sorted = self.isSortIndicatorShown() and self.sortIndicatorSection() == section
        painter.save()
        paint_header_ground(painter, rect)
        text = palette.color(QPalette.ColorRole.WindowText)
        painter.setPen(text if is_sorted else tone("muted", palette))
        room = rect.adjusted(CELL_PAD, 0, -CELL_PAD, 0)
        if is_sorted:
            down = self.sortIndicatorOrder() == Qt.SortOrder.DescendingOrder
            right = QPointF(room.right() - _ARROW / 2, room.center().y())
            left = QPointF(room.left() + _ARROW / 2, room.center().y())
            paint_arrow(painter, left if self.isRightToLeft() else right, down)
            wide = _ARROW + 4
            mirrored = self.isRightToLeft()
            room = room.adjusted(wide if mirrored else 0, 0, 0 if mirrored else -wide, 0)
        title = str(model.headerData(section, Qt.Orientation.Horizontal, DISPLAY) or "")
        side = model.headerData(section, Qt.Orientation.Horizontal, ALIGNMENT)
        side = self.defaultAlignment() if side is None else Qt.AlignmentFlag(side)
        across = side & Qt.AlignmentFlag.AlignHorizontal_Mask
        side = QStyle.visualAlignment(self.layoutDirection(), across) | _MIDDLE
        shown = self.fontMetrics().elidedText(title, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, int(side), shown)
        painter.restore()


def paint_header_ground(painter: QPainter, rect: QRect) -> None:
    """Paint the background and the lines of a header section; set the line's pen."""
    palette = QApplication.palette()
    painter.fillRect(rect, palette.window())
    painter.setPen(tone("line", palette))
    painter.drawLine(rect.bottomLeft(), rect.bottomRight())
    painter.drawLine(rect.topRight() + QPoint(0, 5), rect.bottomRight() - QPoint(0, 5))


def paint_arrow(painter: QPainter, at: QPointF, down: bool) -> None:
    """Paint a small arrow that points up for ascending, as on every desktop."""
    half, rise = _ARROW / 2, 3 if down else -3
    pen = QPen(painter.pen())
    pen.setWidthF(1.5)
    painter.save()
    painter.setPen(pen)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    points = [QPointF(-half, 0), QPointF(0, rise), QPointF(half, 0)]
    painter.drawPolyline([at + point - QPointF(0, rise / 2) for point in points])
    painter.restore()


def marked_rows(table: QTableView) -> list[int]:
    """Return the selected rows from top to bottom, by ranges, since 50,000 indexes are slow."""
    selection = table.selectionModel().selection()
    spans = [selection.at(number) for number in range(selection.size())]
    if len(spans) == 1:
        return list(range(spans[0].top(), spans[0].bottom() + 1))
    return sorted({row for span in spans for row in range(span.top(), span.bottom() + 1)})


def copy_rows(table: QTableView, text_at: Callable[[int, int], str]) -> None:
    """Copy the selected rows as tab-separated text; without one the clipboard stays as it is."""
    columns = range(table.model().columnCount())
    lines = [
        "\t".join(clipboard_cell(text_at(row, column)) for column in columns)
        for row in marked_rows(table)
    ]
    if lines:
        QGuiApplication.clipboard().setText("\n".join(lines))


def row_height(font_height: int) -> int:
    """Return the height of a row in pixels, the same in every list."""
    return max(font_height, _LEAST_LINE) + _ROW_PAD


def show_plain_rows(table: QTableView) -> None:
    """Configure `table`, which has its model, in the style of the task list; Tab leaves it."""
    table.setHorizontalHeader(PlainHeader(table))
    table.setItemDelegate(_Cells(table, ()))
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
    table.setTabKeyNavigation(False)
    table.setShowGrid(False)
    table.setWordWrap(False)
    table.setCornerButtonEnabled(False)
    rows, header = table.verticalHeader(), table.horizontalHeader()
    rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    rows.setDefaultSectionSize(row_height(table.fontMetrics().height()))
    rows.hide()
    header.setHighlightSections(False)
    # A shared selection model would check all rows of each column at every repaint.
    header.setSelectionModel(QItemSelectionModel(table.model(), header))


@dataclass(frozen=True, slots=True)
class Share:
    """Wanted width of a column in pixels; `fills` takes the remaining room.

    A `fixed` column keeps the width that the user set. With `yields` above 0 a column is hidden
    where the room is too small for all, the highest value first.
    """

    key: str
    usual: int
    least: int
    fills: bool = False
    fixed: bool = False
    yields: int = 0


def fitted(shares: Sequence[Share], room: int) -> dict[str, int]:
    """Return the width of each remaining column, so that all fit into `room`.

    Where they do not fit at their smallest, the one that fills the room gives up to half of that.
    Where they still do not fit, all keep their usual width and the list scrolls.
    """
    staying = _staying(shares, room)
    lacks = _total(staying) - room
    if lacks > 0:
        staying = [_shorter(share, lacks) for share in staying]
    if _total(staying) > room:
        return {share.key: share.usual for share in shares}
    spare = max(0, room - _total(staying))
    wanted = sum(share.usual - share.least for share in staying if not share.fixed)
    part = min(1.0, spare / wanted) if wanted else 0.0
    widths = {
        share.key: share.usual
        if share.fixed
        else share.least + int((share.usual - share.least) * part)
        for share in staying
    }
    filling = next((share for share in staying if share.fills and not share.fixed), None)
    if filling is not None:
        others = sum(width for key, width in widths.items() if key != filling.key)
        widths[filling.key] = max(filling.least, room - others)
    return widths


def _staying(shares: Sequence[Share], room: int) -> list[Share]:
    staying = list(shares)
    for share in sorted(shares, key=lambda share: -share.yields):
        if not share.yields or _total(staying) <= room:
            break
        staying.remove(share)
    return staying


def _shorter(share: Share, lacks: int) -> Share:
    if not share.fills or share.fixed:
        return share
    return replace(share, least=max(share.least // 2, share.least - lacks))


def _total(shares: Iterable[Share]) -> int:
    return sum(map(_least, shares))


def _least(share: Share) -> int:
    return share.usual if share.fixed else share.least


def show_plain_columns(tree: QTreeView) -> None:
    """Give a tree the header and the cells of the other tables."""
    header = PlainHeader(tree)
    header.setStretchLastSection(True)
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | _MIDDLE)
    tree.setHeader(header)
    tree.setItemDelegate(_Cells(tree))
