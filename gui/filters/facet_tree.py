"""The tree of the sidebar: its items by key, their names and counts, and their painting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication, QEvent, QItemSelectionModel, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFont,
    QFontMetrics,
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

from engine.model.display import display
from engine.model.records import ROUTES
from engine.text import words
from gui.style.icons import glyph
from gui.style.tables import AnyIndex
from gui.style.theme import plain_tip, tone, use_colour
from gui.tasks.cell_painting import SIGN_SIZE, kind_sign, sign
from gui.tasks.facets import (
    AGE,
    BUDGET,
    CLIENT,
    GROUPS,
    HOST,
    KIND,
    OLDER,
    OWN,
    ROOT,
    ROUTE,
    STATUS,
    FacetCounts,
    group_of,
)

KEY = int(Qt.ItemDataRole.UserRole)
COUNT = KEY + 1
SIGN = KEY + 2  # Name of the icon in front of an item, if any
KIND_SIGN = "kind:"  # Before the kind whose icon it is
MARK = KEY + 3  # True for the active view, which is not selected
GROUP = "group:"
_PAD = 8
_GAP = 6  # Pixels between name and count
_SIGN_ROOM = SIGN_SIZE + 8  # also without an icon, so that all names begin at one line
_ARROW = 12
_MOST_CHARS = 26  # of a name that widens the sidebar; the host of a task may be much longer
_FEW_TASKS = 999  # Counts up to this one change no width
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

    def content_width(self) -> int:
        """Return the width in which names and counts are not elided, within a limit."""
        found = (self.topLevelItem(at) for at in range(self.topLevelItemCount()))
        heads = [head for head in found if head is not None and not head.isHidden()]
        items = [one for head in heads if head.isExpanded() for one in children(head)]
        widths = [self._width_of(one) for one in items if not one.isHidden()]
        bar = self.verticalScrollBar()
        return max(widths, default=0) + (bar.sizeHint().width() if bar.isVisible() else 0)

    def _width_of(self, item: QTreeWidgetItem) -> int:
        metrics = self.fontMetrics()
        name = metrics.horizontalAdvance(item.text(0))
        if item.data(0, MARK):
            name = QFontMetrics(_strong(self.font())).horizontalAdvance(item.text(0))
        count = metrics.horizontalAdvance(str(item.data(0, COUNT) or ""))
        most = metrics.averageCharWidth() * _MOST_CHARS
        least = metrics.horizontalAdvance(words.count(_FEW_TASKS))
        return 2 * _PAD + _SIGN_ROOM + min(name, most) + _GAP + max(count, least)

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
        ground = QApplication.palette().color(QPalette.ColorRole.Window)
        use_colour(self, QPalette.ColorRole.Base, ground)


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
    painter.setFont(_strong(painter.font()))
    painter.setPen(_ink(palette, selected=False))
    left = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
    name = _mirrored(painter, rect, rect.adjusted(0, 0, -_ARROW, 0))
    painter.drawText(name, left, item.text(0))


def _paint_facet(
    painter: QPainter, rect: QRectF, item: QTreeWidgetItem, palette: QPalette, selected: bool
) -> None:
    name_of_sign, count = str(item.data(0, SIGN) or ""), str(item.data(0, COUNT) or "")
    ink = _ink(palette, selected)
    if name_of_sign:
        kind = name_of_sign.removeprefix(KIND_SIGN) if name_of_sign.startswith(KIND_SIGN) else ""
        colour = ink if selected else tone("muted" if kind else name_of_sign, palette)
        top = rect.center().y() - SIGN_SIZE / 2
        place = _mirrored(painter, rect, QRectF(rect.x(), top, SIGN_SIZE, SIGN_SIZE))
        scale = _scale(painter)
        picture = kind_sign(kind, colour, scale) if kind else sign(name_of_sign, colour, scale)
        painter.drawPixmap(round(place.x()), round(top), picture)
    if item.data(0, MARK):
        painter.setFont(_strong(painter.font()))
    metrics = painter.fontMetrics()
    wide = metrics.horizontalAdvance(count)
    painter.setPen(ink if selected else tone("muted", palette))
    middle = int(Qt.AlignmentFlag.AlignVCenter)
    painter.drawText(rect, middle | int(Qt.AlignmentFlag.AlignRight), count)
    name = _mirrored(painter, rect, rect.adjusted(_SIGN_ROOM, 0, -wide - _GAP, 0))
    shown = metrics.elidedText(item.text(0), Qt.TextElideMode.ElideRight, int(name.width()))
    painter.setPen(ink)
    painter.drawText(name, middle | int(Qt.AlignmentFlag.AlignLeft), shown)


def _strong(font: QFont) -> QFont:
    strong = QFont(font)
    strong.setWeight(QFont.Weight.DemiBold)
    return strong


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


VIEWS = "views"


def group_name(group: str) -> str:
    names = {
        VIEWS: QCoreApplication.translate("Facets", "Views"),
        STATUS: QCoreApplication.translate("Facets", "Status"),
        ROOT: words.say("column.root"),
        KIND: QCoreApplication.translate("Facets", "Kind"),
        HOST: QCoreApplication.translate("Facets", "Host"),
        CLIENT: words.say("column.client"),
        BUDGET: QCoreApplication.translate("Facets", "Budget"),
        AGE: QCoreApplication.translate("Facets", "Age"),
    }
    return names[group]


def facet_name(facet: str, facets: FacetCounts) -> str:
    """Return the name of a facet; hosts and clients keep the spelling of their tasks."""
    if group_of(facet) == STATUS:
        return words.say(f"facet.{facet}")
    if group_of(facet) == KIND:
        return words.kind_name(facets.value_of(facet))
    names = {
        OWN: words.say("root.here"),
        "age:<1h": QCoreApplication.translate("Facets", "Last hour"),
        "age:<1d": QCoreApplication.translate("Facets", "Last day"),
        "age:<7d": QCoreApplication.translate("Facets", "Last 7 days"),
        OLDER: QCoreApplication.translate("Facets", "Older than 7 days"),
        "budget:ok": QCoreApplication.translate("Facets", "Within budget"),
        "budget:near": QCoreApplication.translate("Facets", "Near a budget"),
        "budget:exceeded": QCoreApplication.translate("Facets", "Budget exceeded"),
        **{f"{ROUTE}:{route}": words.say(f"facet.route.{route}") for route in ROUTES},
    }
    return names.get(facet) or display(facets.value_of(facet))


VIEW = "view:"
_FOLDED = frozenset({HOST, AGE})
_LOST_SIGN = "orphaned"
_ENABLED = Qt.ItemFlag.ItemIsEnabled


class Lost(NamedTuple):
    """Label and explanation shown instead of the count of an unreachable ledger."""

    word: str
    truth: str


class FacetItems:
    """Create, count and remove sidebar items; only facets can be selected."""

    def __init__(self, tree: FacetTree, hint: str) -> None:
        self._tree, self._hint = tree, hint
        self.by_key: dict[str, QTreeWidgetItem] = {}
        self.heads = {group: self._head(group) for group in (VIEWS, *GROUPS)}

    def add(self, group: str, key: str, name: str, sign: str = "") -> QTreeWidgetItem:
        """Append a facet to its group."""
        item = QTreeWidgetItem(self.heads[group], [name])
        item.setData(0, KEY, key)
        item.setData(0, SIGN, sign)
        item.setToolTip(0, plain_tip(f"{name}\n{self._hint}"))  # A long host is elided in the list
        self.by_key[key] = item
        return item

    def add_button(self, group: str, key: str, name: str, sign: str = "") -> QTreeWidgetItem:
        """Append an item that acts as a button to a group."""
        item = self.add(group, key, name, sign)
        item.setFlags(_ENABLED)
        return item

    def drop(self, key: str) -> None:
        item = self.by_key.pop(key)
        head = item.parent()
        assert head is not None
        head.removeChild(item)

    def count(self, key: str, number: int) -> bool:
        """Show the number of tasks of an item; False if it was shown already."""
        item, said = self.by_key.get(key), words.count(number)
        if item is None or item.data(0, COUNT) == said:
            return False
        item.setData(0, COUNT, said)
        spoken = words.say("facet.sentence", name=item.text(0), count=said)
        item.setData(0, Qt.ItemDataRole.AccessibleTextRole, spoken)
        return True

    def show_lost(self, key: str, name: str, lost: Lost | None) -> None:
        """Mark an item whose tasks cannot be read, or unmark it when `lost` is None."""
        item = self.by_key.get(key)
        if item is None or (item.data(0, SIGN) == _LOST_SIGN) == (lost is not None):
            return
        item.setData(0, SIGN, "" if lost is None else _LOST_SIGN)
        item.setText(0, name if lost is None else lost.word)
        item.setToolTip(0, plain_tip(f"{name}\n{self._hint if lost is None else lost.truth}"))
        if lost is not None:  # A number would suggest that there are no tasks
            item.setData(0, COUNT, "")
            item.setData(0, Qt.ItemDataRole.AccessibleTextRole, f"{lost.word}\n{lost.truth}")

    def show_views(self, views: Sequence[tuple[str, str, str]], current: str) -> None:
        """Show views as (key, name, query); `current` is the active one.

        Views appear before they are counted, since items added later would move others under the
        pointer.
        """
        wanted = [VIEW + key for key, _, _ in views]
        shown = [key_of(item) for item in children(self.heads[VIEWS])]
        if shown != wanted:
            for key in shown:
                self.drop(key)
        for key, name, says in views:
            item = self.by_key.get(VIEW + key) or self.add_button(VIEWS, VIEW + key, "", "view")
            item.setText(0, display(name))
            item.setToolTip(0, plain_tip(f"{name}\n{says}"))
            item.setData(0, MARK, key == current)
        hide(self.heads[VIEWS], not views)

    def count_view(self, key: str, number: int) -> None:
        """Show the number of tasks of a view."""
        self.count(VIEW + key, number)

    def _head(self, group: str) -> QTreeWidgetItem:
        head = QTreeWidgetItem(self._tree, [group_name(group)])
        head.setFlags(_ENABLED)
        head.setData(0, KEY, GROUP + group)
        head.setExpanded(group not in _FOLDED)
        head.setHidden(group in (VIEWS, KIND, HOST, CLIENT, BUDGET))
        return head
