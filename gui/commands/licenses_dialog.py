"""Dialog with the components of the program and the full text of their licenses."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.doctor.third_party_licenses import Component, components
from engine.model.display import display
from engine.model.errors import LicensesUnreadable
from gui.engine_link.bridge import Bridge
from gui.i18n import language
from gui.style.accessibility import InOrder, search_field
from gui.style.editors import Roomy, read_only_text
from gui.style.theme import plain_label, plain_tip
from gui.style.widgets import arrange

SIZE: Final = QSize(860, 560)
_CALL: Final = "read the licenses"
_NAME_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class _Entry:
    component: Component
    searched: str  # everything that a search looks at, case-folded


def _entries() -> list[_Entry]:
    return [
        _Entry(one, f"{one.name}\n{one.version}\n{one.license}\n{one.text}".casefold())
        for one in components()
    ]


class LicensesDialog(InOrder, QDialog):
    """Components above, the license text of the selected one below; words filter both."""

    def __init__(self, bridge: Bridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._entries: list[_Entry] = []
        self.setWindowTitle(self.tr("Licenses"))
        self.resize(SIZE)
        self._field = search_field(self, self.tr("Search names, licenses and texts"))
        self._state = plain_label(self.tr("Reading the licenses…"), self, tone="muted", wrap=True)
        self._list = self._make_list()
        self._text = read_only_text(self, self.tr("License text"), fixed=True)
        self._lay_out()
        self._field.textChanged.connect(self._find)
        self._list.currentItemChanged.connect(lambda *_: self._show())
        self.finished.connect(lambda _: bridge.call_off(_CALL))
        bridge.spawn_once(self._read(), name=_CALL)

    def _make_list(self) -> QTreeWidget:
        made = QTreeWidget(self)
        made.setRootIsDecorated(False)
        made.setUniformRowHeights(True)
        made.setTabKeyNavigation(False)
        made.setItemDelegate(Roomy(made))
        made.setHeaderLabels([self.tr("Component"), self.tr("Version"), self.tr("License")])
        made.setAccessibleName(self.tr("Components"))
        for column in (0, 1):
            made.header().setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        return made

    def _lay_out(self) -> None:
        both = QSplitter(Qt.Orientation.Vertical, self)
        both.addWidget(self._list)
        both.addWidget(self._text)
        both.setSizes([SIZE.height() // 2] * 2)
        both.setChildrenCollapsible(False)
        close = QPushButton(self.tr("Close"), self)
        close.setAutoDefault(False)
        close.clicked.connect(self.accept)
        end = arrange(QHBoxLayout(), 1, close)
        parts = (self._field, self._state, (both, 1), end)
        arrange(QVBoxLayout(self), *parts, margins=(16, 14, 16, 14), spacing=10)
        self._field.setFocus()

    async def _read(self) -> None:
        try:
            self._entries = await asyncio.to_thread(_entries)
        except LicensesUnreadable as error:
            self._state.show_text(language.told(error))
            return
        self._list.addTopLevelItems([_item(entry.component) for entry in self._entries])
        self._find(self._field.text())

    def _find(self, typed: str) -> None:
        """Show the components that contain every typed word."""
        words, first = typed.casefold().split(), None
        for number, entry in enumerate(self._entries):
            item = self._list.topLevelItem(number)
            is_found = all(word in entry.searched for word in words)
            if item is not None:
                item.setHidden(not is_found)
                first = first or (item if is_found else None)
        self._state.show_text(self.tr("No component contains these words."))
        self._state.setVisible(first is None)
        current = self._list.currentItem()
        if first is not None and (current is None or current.isHidden()):
            self._list.setCurrentItem(first)

    def _show(self) -> None:
        number = self._list.currentIndex().row()
        without = self.tr("This component is listed without a text.")
        found = self._entries[number].component.text if number >= 0 else ""
        self._text.setPlainText(found or without)


def _item(one: Component) -> QTreeWidgetItem:
    cells = [display(cell, _NAME_CHARS) for cell in (one.name, one.version, one.license)]
    item = QTreeWidgetItem(cells)
    for column, cell in enumerate(cells):
        item.setToolTip(column, plain_tip(cell))
    return item
