"""Completion popup below the filter box."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFrame,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from engine.model.display import display
from engine.query import Completion, Offer
from gui.style.tables import AnyIndex
from gui.style.theme import tone

_WIDTH = 460
_FIELD_WIDTH = 190
_EDGE = 4
_ROOM = 8


class Roomy(QStyledItemDelegate):
    """Delegate with extra row height."""

    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        hint = super().sizeHint(option, index)
        return QSize(hint.width(), hint.height() + _ROOM)


class CompletionPopup(QTreeWidget):
    """Popup over the window that takes no focus; `taken` carries the chosen completion.

    It is a child widget, because on some desktops a popup window takes the focus from the box.
    """

    taken = Signal(object)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._completion = Completion(0, 0)
        self.setAccessibleName(self.tr("What may follow"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setFrameShape(QFrame.Shape.Box)
        self.setItemDelegate(Roomy(self))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
        self.header().resizeSection(0, _FIELD_WIDTH)
        self.itemClicked.connect(lambda item, _: self._take(item))
        self.hide()

    def offer(self, completion: Completion, below: QPoint) -> None:
        """Show completions with the top left corner at `below`, in window coordinates."""
        self._completion = completion
        self.clear()
        if not completion.offers:
            self.hide()
            return
        muted = tone("muted", QApplication.palette())
        for offer in completion.offers:
            item = QTreeWidgetItem(self, [display(offer.text), offer.help])
            item.setForeground(1, muted)
        window = self.window()
        width = min(_WIDTH, window.width() - below.x() - _EDGE)
        height = self.sizeHintForRow(0) * len(completion.offers) + 2 * self.frameWidth() + _EDGE
        self.setGeometry(below.x(), below.y(), width, min(height, window.height() - below.y()))
        self.show()
        self.raise_()

    @property
    def completion(self) -> Completion:
        return self._completion

    @property
    def shown(self) -> tuple[str, ...]:
        """The completions shown now."""
        return () if self.isHidden() else tuple(one.text for one in self._completion.offers)

    def step(self, by: int) -> None:
        """Select the next completion, wrapping around."""
        count, here = self.topLevelItemCount(), self.currentIndex().row()
        at = (here + by) % count if here >= 0 else (0 if by > 0 else count - 1)
        self.setCurrentIndex(self.model().index(at, 0))

    def take(self, *, first: bool = False) -> bool:
        """Insert the selected completion (or the `first`); False if there is none."""
        item = self.currentItem() or (self.topLevelItem(0) if first else None)
        if self.isHidden() or item is None:
            return False
        self._take(item)
        return True

    def _take(self, item: QTreeWidgetItem) -> None:
        offer: Offer = self._completion.offers[self.indexOfTopLevelItem(item)]
        self.hide()
        self.taken.emit(offer)
