"""The list of what happened: newest first, each line leads to its tasks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QIcon, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.text.words import clock
from gui.desktop.notification_rules import Kind
from gui.style.icons import glyph
from gui.style.tab_order import InOrder
from gui.style.theme import plain_label, tone

if TYPE_CHECKING:
    from gui.desktop.notifications import Entry, News

SIZE = (620, 420)
LINE_CHARS = 300
_SIGNS = {
    Kind.FAILED: ("warning", "failed"),
    Kind.ATTENTION: ("bell", "attention"),
    Kind.COMPLETED: ("info", "completed"),
    Kind.CANCELLED: ("stop", "cancelled"),
}


class NewsList(InOrder, QDialog):
    """Enter or a double click on a line shows its tasks in the window's list."""

    def __init__(self, news: News, parent: QWidget) -> None:
        super().__init__(parent)
        self._news = news
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("News"))
        self.resize(*SIZE)
        self._empty = plain_label(
            self.tr("Nothing has happened since this window was opened."), tone="muted", wrap=True
        )
        self.list = QListWidget(self)
        self.list.setAccessibleName(self.tr("What happened, the newest first"))
        self.list.setWordWrap(True)
        self.list.setAlternatingRowColors(True)
        self.list.itemActivated.connect(self._go)
        self._lay_out()
        self._fill()
        news.changed.connect(self._fill)

    def _lay_out(self) -> None:
        self._show = QPushButton(self.tr("&Show the tasks"), self)
        self._clear = QPushButton(self.tr("&Clear the list"), self)
        close = QPushButton(self.tr("Close"), self)
        self._show.setDefault(True)
        self._show.clicked.connect(self._go)
        self._clear.clicked.connect(self._news.clear)
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.addWidget(self._clear)
        row.addStretch()
        row.addWidget(self._show)
        row.addWidget(close)
        column = QVBoxLayout(self)
        for part in (self._empty, self.list):
            column.addWidget(part)
        column.addLayout(row)

    def _fill(self) -> None:
        """Every line anew; they are at most 300, and few of them change a minute."""
        row = max(0, self.list.currentRow())
        self.list.clear()
        for entry in self._news.entries:
            self.list.addItem(self._item(entry))
        self.list.setCurrentRow(min(row, self.list.count() - 1))
        some = self.list.count() > 0
        self._empty.setVisible(not some)
        self.list.setVisible(some)
        self._show.setEnabled(some)
        self._clear.setEnabled(some)
        if self._news.unread:
            self._news.see()

    def _item(self, entry: Entry) -> QListWidgetItem:
        lines = [
            f"{clock(entry.at_ms, time.time() * 1000)}   {entry.title}",
            *entry.body.split("\n"),
        ]
        item = QListWidgetItem("\n".join(display(line, LINE_CHARS) for line in lines))
        sign, tone_name = _SIGNS[entry.kind]
        item.setIcon(self._sign(sign, tone_name))
        item.setData(Qt.ItemDataRole.UserRole, entry)
        return item

    def _sign(self, sign: str, tone_name: str) -> QIcon:
        """In its colour, and on a selected line in that of the text beside it."""
        palette, scale = QApplication.palette(), self.devicePixelRatioF()
        found = QIcon(glyph(sign, 20, tone(tone_name, palette), scale))
        chosen = palette.color(QPalette.ColorRole.HighlightedText)
        found.addPixmap(glyph(sign, 20, chosen, scale), QIcon.Mode.Selected)
        return found

    def _go(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.close()
            self._news.show_tasks(item.data(Qt.ItemDataRole.UserRole))
