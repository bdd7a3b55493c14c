"""The tree of the sidebar: collapsible headings, names with counts, keys and painting."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QItemSelectionModel, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPalette,
)
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from gui.style.icons import glyph
from gui.style.tables import AnyIndex
from gui.style.theme import tone
from gui.tasks.cell_painting import SIGN_SIZE, sign

KEY = int(Qt.ItemDataRole.UserRole)
COUNT = KEY + 1
SIGN = KEY + 2  # Name of the icon in front of an item, if any
MARK = KEY + 3  # True for the active view, which is not selected
GROUP = "group:"
_PAD = 8
_ARROW = 12
NO_UPDATE = QItemSelectionModel.SelectionFlag.NoUpdate


class FacetTree(QTreeWidget):
    """Tree of facets: arrows select, Ctrl+click and Ctrl+Space add to the selection.

    Activating an item that is no facet emits `pressed_item`.
    """

    pressed_item = Signal(QTreeWidgetItem)
    menu_for = Signal(QTreeWidgetItem, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setColumnCount(1)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setIndentation(0)
        self.setExpandsOnDoubleClick(False)
        self.setSelectionMode(QTreeWidget.SelectionMode.ExtendedSelection)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setItemDelegate(_FacetDelegate(self))
        self._blend()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        item = self.currentItem()
        presses = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
        if item is not None and event.key() in presses and not is_facet(item):
            self._press(item)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        item = self.itemAt(event.position().toPoint())
        if item is not None and event.button() == Qt.MouseButton.LeftButton and not is_facet(item):
            self._press(item)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        item = self.currentItem() if by_key else self.itemAt(event.pos())
        if item is not None:
            at = self.visualItemRect(item).center() if by_key else event.pos()
            self.menu_for.emit(item, self.viewport().mapToGlobal(at))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._blend()

    def selectionCommand(
        self, index: AnyIndex, event: QEvent | None = None
    ) -> QItemSelectionModel.SelectionFlag:
        # A click outside the facets or on a heading must not clear the selection, and a right click
        # opens the menu.
        item = self.itemFromIndex(index) if index.isValid() else None
        right = isinstance(event, QMouseEvent) and event.button() == Qt.MouseButton.RightButton
        if item is None or right or not is_facet(item):
            return NO_UPDATE
        return super().selectionCommand(index, event)

    def scrollTo(
        self, index: AnyIndex, hint: QTreeWidget.ScrollHint = QTreeWidget.ScrollHint.EnsureVisible
    ) -> None:
        parent = index.parent()
        if not parent.isValid() or self.isExpanded(parent):  # Qt would expand a collapsed group
            super().scrollTo(index, hint)

    def _press(self, item: QTreeWidgetItem) -> None:
        if key_of(item).startswith(GROUP):
            item.setExpanded(not item.isExpanded())
        self.pressed_item.emit(item)

    def _blend(self) -> None:
        """Use the window's background colour instead of the base colour."""
        palette = self.palette()
        ground = QApplication.palette().color(QPalette.ColorRole.Window)
        if palette.color(QPalette.ColorRole.Base) != ground:
            palette.setColor(QPalette.ColorRole.Base, ground)
            self.setPalette(palette)


def key_of(item: QTreeWidgetItem) -> str:
    return str(item.data(0, KEY))


def children(head: QTreeWidgetItem) -> list[QTreeWidgetItem]:
    found = (head.child(at) for at in range(head.childCount()))
    return [item for item in found if item is not None]


def hide(item: QTreeWidgetItem, hidden: bool) -> None:
    """Hide or show an item only on change, because Qt lays out the whole tree each time."""
    if item.isHidden() != hidden:
        item.setHidden(hidden)


def is_facet(item: QTreeWidgetItem) -> bool:
    """Return whether the item is a facet that can be selected."""
    return bool(item.flags() & Qt.ItemFlag.ItemIsSelectable)


class _FacetDelegate(QStyledItemDelegate):
    """Paint icon, name and count of an item, and an arrow on headings."""

    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        height = option.fontMetrics.height()
        return QSize(120, max(height, SIGN_SIZE) + 10)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        view = self.parent()
        assert isinstance(view, FacetTree)
        item = view.itemFromIndex(index)
        palette = QApplication.palette()
        state, rect = option.state, QRectF(option.rect)
        selected = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        if selected:
            painter.fillRect(rect, palette.highlight())
        inner = rect.adjusted(_PAD, 0, -_PAD, 0)
        if key_of(item).startswith(GROUP):
            _paint_heading(painter, inner, item, palette)
        else:
            _paint_facet(painter, inner, item, palette, selected)
        if state & QStyle.StateFlag.State_HasFocus:
            _paint_focus(painter, rect, _ink(palette, selected))
        painter.restore()


def _paint_heading(
    painter: QPainter, rect: QRectF, item: QTreeWidgetItem, palette: QPalette
) -> None:
    colour, scale = tone("muted", palette), _scale(painter)
    arrow = glyph("less" if item.isExpanded() else "more", _ARROW, colour, scale)
    end = _mirrored(painter, rect, QRectF(rect.right() - _ARROW, rect.y(), _ARROW, rect.height()))
    painter.drawPixmap(round(end.x()), round(rect.center().y() - _ARROW / 2), arrow)
    font = QFont(painter.font())
    font.setWeight(QFont.Weight.DemiBold)
    painter.setFont(font)
    painter.setPen(_ink(palette, selected=False))
    left = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
    name = _mirrored(painter, rect, rect.adjusted(0, 0, -_ARROW, 0))
    painter.drawText(name, left, item.text(0))


def _paint_facet(
    painter: QPainter, rect: QRectF, item: QTreeWidgetItem, palette: QPalette, selected: bool
) -> None:
    name_of_sign, count = str(item.data(0, SIGN) or ""), str(item.data(0, COUNT) or "")
    ink = _ink(palette, selected)
    left = 4.0
    if name_of_sign:
        colour = ink if selected else tone(name_of_sign, palette)
        top = rect.center().y() - SIGN_SIZE / 2
        place = _mirrored(painter, rect, QRectF(rect.x(), top, SIGN_SIZE, SIGN_SIZE))
        picture = sign(name_of_sign, colour, _scale(painter))
        painter.drawPixmap(round(place.x()), round(top), picture)
        left = SIGN_SIZE + 8.0
    if item.data(0, MARK):
        font = QFont(painter.font())
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
    metrics = painter.fontMetrics()
    wide = metrics.horizontalAdvance(count)
    painter.setPen(ink if selected else tone("muted", palette))
    middle = int(Qt.AlignmentFlag.AlignVCenter)
    painter.drawText(rect, middle | int(Qt.AlignmentFlag.AlignRight), count)
    name = _mirrored(painter, rect, rect.adjusted(left, 0, -wide - 6, 0))
    shown = metrics.elidedText(item.text(0), Qt.TextElideMode.ElideRight, int(name.width()))
    painter.setPen(ink)
    painter.drawText(name, middle | int(Qt.AlignmentFlag.AlignLeft), shown)


def _mirrored(painter: QPainter, rect: QRectF, part: QRectF) -> QRectF:
    """Mirror `part` inside `rect` for right-to-left layouts."""
    if painter.layoutDirection() is not Qt.LayoutDirection.RightToLeft:
        return part
    return QRectF(rect.left() + rect.right() - part.right(), part.y(), part.width(), part.height())


def _scale(painter: QPainter) -> float:
    device = painter.device()
    return device.devicePixelRatioF() if device is not None else 1.0


def _ink(palette: QPalette, selected: bool) -> QColor:
    role = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.WindowText
    return palette.color(role)


def _paint_focus(painter: QPainter, rect: QRectF, colour: QColor) -> None:
    pen = painter.pen()
    pen.setColor(colour)
    pen.setStyle(Qt.PenStyle.DotLine)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(rect.adjusted(1, 1, -2, -2))
