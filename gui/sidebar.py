"""The facets of the list with their live counts: click replaces, Ctrl+click adds or takes away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from PySide6.QtCore import QEvent, QItemSelectionModel, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from engine import words
from engine.attention import Facet
from gui.gauges import SIGN_SIZE, sign
from gui.rows_model import AnyIndex
from gui.theme import heading, plain_tip, tone

_COUNT_ROLE = int(Qt.ItemDataRole.UserRole) + 1
_KEY_ROLE = int(Qt.ItemDataRole.UserRole)
_PAD = 8
# These few are always offered; the others only while a task has them or they are chosen.
_ALWAYS = frozenset(
    {Facet.ALL, Facet.ATTENTION, Facet.PENDING, Facet.RUNNING, Facet.COMPLETED, Facet.FAILED}
)


class Sidebar(QWidget):
    """Emits `facet_changed` with the chosen facets' keys; an empty tuple means all tasks."""

    facet_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts: dict[str, int] = {}
        self._chosen: tuple[str, ...] = ()
        self._list = _FacetList(self)
        self._list.setAccessibleName(words.say("sidebar.name"))
        modifier = "⌘" if QApplication.platformName() == "cocoa" else "Ctrl"
        self._list.setToolTip(plain_tip(words.say("facet.hint", modifier=modifier)))
        self._list.itemSelectionChanged.connect(self._choose)
        column = QVBoxLayout(self)
        column.setContentsMargins(_PAD, _PAD, 0, _PAD)
        column.setSpacing(4)
        title = heading(words.say("facet.title"), self, grow=1.0)
        title.setBuddy(self._list)
        title.setContentsMargins(_PAD, 0, 0, 2)
        column.addWidget(title)
        column.addWidget(self._list, 1)
        for facet in Facet:
            self._add(facet)
        self.show_counts({})
        self._mark(())

    @property
    def chosen(self) -> tuple[str, ...]:
        """The chosen facets' keys, to be kept and given to `select` at the next start."""
        return self._chosen

    def select(self, keys: Iterable[str]) -> None:
        """Choose these facets and say so; unknown ones are left out, none means all."""
        known = {facet.value for facet in Facet} - {Facet.ALL.value}
        wanted = tuple(key for key in dict.fromkeys(keys) if key in known)
        if wanted != self._chosen:
            self._mark(wanted)
            self.facet_changed.emit(wanted)

    def show_counts(self, counts: Mapping[str, int]) -> None:
        """Show how many tasks each facet has."""
        self._counts = dict(counts)
        for row in range(self._list.count()):
            item = self._list.item(row)
            key = str(item.data(_KEY_ROLE))
            number = words.count(self._counts.get(key, 0))
            if item.data(_COUNT_ROLE) != number:
                item.setData(_COUNT_ROLE, number)
                spoken = words.say("facet.sentence", name=item.text(), count=number)
                item.setData(Qt.ItemDataRole.AccessibleTextRole, spoken)
        self._hide_empty()

    def _add(self, facet: Facet) -> None:
        item = QListWidgetItem(words.say(f"facet.{facet.value}"), self._list)
        item.setData(_KEY_ROLE, facet.value)

    def _hide_empty(self) -> None:
        for row in range(self._list.count()):
            item = self._list.item(row)
            key = str(item.data(_KEY_ROLE))
            needed = key in _ALWAYS or key in self._chosen or self._counts.get(key, 0) > 0
            item.setHidden(not needed)

    def _mark(self, keys: tuple[str, ...]) -> None:
        self._chosen = keys
        blocked = self._list.blockSignals(True)
        for row in range(self._list.count()):
            item = self._list.item(row)
            key = str(item.data(_KEY_ROLE))
            item.setSelected(key in keys or (not keys and key == Facet.ALL.value))
        self._list.blockSignals(blocked)
        self._hide_empty()
        self._list.viewport().update()

    def _choose(self) -> None:
        keys = tuple(str(item.data(_KEY_ROLE)) for item in self._list.selectedItems())
        # "All" beside another facet gives way to it, unless it is what was clicked last.
        latest = self._list.currentItem()
        last_key = str(latest.data(_KEY_ROLE)) if latest is not None else ""
        everything = Facet.ALL.value
        if not keys or keys == (everything,) or (everything in keys and last_key == everything):
            wanted: tuple[str, ...] = ()
        else:
            wanted = tuple(key for key in keys if key != everything)
        changed = wanted != self._chosen
        self._mark(wanted)
        if changed:
            self.facet_changed.emit(wanted)


class _FacetList(QListWidget):
    """Arrows move and choose; Ctrl+click and Ctrl+Space add."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.setFrameShape(QListWidget.Shape.NoFrame)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setItemDelegate(_FacetDelegate(self))
        self.setUniformItemSizes(True)
        self._blend()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._blend()

    def selectionCommand(
        self, index: AnyIndex, event: QEvent | None = None
    ) -> QItemSelectionModel.SelectionFlag:
        # A click beside the facets would choose none of them.
        if not index.isValid():
            return QItemSelectionModel.SelectionFlag.NoUpdate
        return super().selectionCommand(index, event)

    def _blend(self) -> None:
        """Stand on the window's own ground, not on a white sheet."""
        palette = self.palette()
        ground = QApplication.palette().color(QPalette.ColorRole.Window)
        if palette.color(QPalette.ColorRole.Base) != ground:
            palette.setColor(QPalette.ColorRole.Base, ground)
            self.setPalette(palette)


class _FacetDelegate(QStyledItemDelegate):
    """Sign, name, and the count at the right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        height = cast(Any, option).fontMetrics.height()
        return QSize(120, max(height, SIGN_SIZE) + 12)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        view = self.parent()
        assert isinstance(view, QListWidget)
        item = view.item(index.row())
        palette = QApplication.palette()
        state, rect = cast(Any, option).state, QRectF(cast(Any, option).rect)
        selected = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        if selected:
            painter.fillRect(rect, palette.highlight())
        inner = rect.adjusted(_PAD, 0, -_PAD, 0)
        _paint_facet(painter, inner, item, palette, selected)
        if state & QStyle.StateFlag.State_HasFocus:
            _paint_focus(painter, rect, _ink(palette, selected))
        painter.restore()


def _paint_facet(
    painter: QPainter, rect: QRectF, item: QListWidgetItem, palette: QPalette, selected: bool
) -> None:
    key, count = str(item.data(_KEY_ROLE)), str(item.data(_COUNT_ROLE) or "0")
    ink = _ink(palette, selected)
    colour = ink if selected else tone(key, palette)
    device = painter.device()
    scale = device.devicePixelRatioF() if device is not None else 1.0
    top = rect.center().y() - SIGN_SIZE / 2
    painter.drawPixmap(round(rect.x()), round(top), sign(key, colour, scale))
    metrics = painter.fontMetrics()
    wide = metrics.horizontalAdvance(count)
    painter.setPen(ink if selected else tone("muted", palette))
    middle = int(Qt.AlignmentFlag.AlignVCenter)
    painter.drawText(rect, middle | int(Qt.AlignmentFlag.AlignRight), count)
    name = rect.adjusted(SIGN_SIZE + 8, 0, -wide - 6, 0)
    shown = metrics.elidedText(item.text(), Qt.TextElideMode.ElideRight, int(name.width()))
    painter.setPen(ink)
    painter.drawText(name, middle | int(Qt.AlignmentFlag.AlignLeft), shown)


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
