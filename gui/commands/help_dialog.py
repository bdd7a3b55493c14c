"""F1: what the window shows and how it is steered, page by page, searched as one types."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QSize
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from gui.commands.help_texts import CONTEXT, TOPICS
from gui.style.clearable import clearable
from gui.style.tab_order import InOrder
from gui.style.theme import plain_label

SIZE = QSize(760, 520)
LIST_WIDTH = 200
NAME_HEIGHT = 26
Topic = tuple[str, str]


def topics() -> list[Topic]:
    """(title, text) in the language of the window."""
    say = QCoreApplication.translate
    return [(say(CONTEXT, str(title)), say(CONTEXT, str(text))) for title, text in TOPICS]


class HelpDialog(InOrder, QDialog):
    """Topics on the left, the text of one on the right; plain text that can be copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._topics = topics()
        self.setWindowTitle(self.tr("Help"))
        self.resize(SIZE)
        self._field = QLineEdit(self)
        self._field.setPlaceholderText(self.tr("Search the help"))
        self._field.setAccessibleName(self.tr("Search the help"))
        clearable(self._field)
        self._names = QListWidget(self)
        self._names.setAccessibleName(self.tr("Subjects"))
        self._names.setFixedWidth(LIST_WIDTH)
        self._nothing = plain_label(self.tr("Nothing is said about that."), self, tone="muted")
        self._text = QPlainTextEdit(self)
        self._text.setReadOnly(True)
        self._text.setTabChangesFocus(True)
        self._text.setAccessibleName(self.tr("Text"))
        for number, (title, _) in enumerate(self._topics):
            self._names.addItem(title)
            self._names.item(number).setSizeHint(QSize(0, NAME_HEIGHT))
        self._lay_out()
        self._names.currentRowChanged.connect(self._show)
        self._field.textChanged.connect(self._find)
        self._find("")
        self._names.setCurrentRow(0)
        self._field.setFocus()

    def _lay_out(self) -> None:
        middle = QHBoxLayout()
        middle.setSpacing(12)
        middle.addWidget(self._names)
        middle.addWidget(self._text, 1)
        close = QPushButton(self.tr("Close"), self)
        close.setAutoDefault(False)
        close.clicked.connect(self.accept)
        end = QHBoxLayout()
        end.addStretch(1)
        end.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(10)
        column.addWidget(self._field)
        column.addWidget(self._nothing)
        column.addLayout(middle, 1)
        column.addLayout(end)

    def _show(self, number: int) -> None:
        if number >= 0:
            self._text.setPlainText(self._topics[number][1])

    def _find(self, typed: str) -> None:
        words = typed.casefold().split()
        found = []
        for number, (title, text) in enumerate(self._topics):
            level = f"{title} {text}".casefold()
            answers = all(word in level for word in words)
            self._names.item(number).setHidden(not answers)
            found += [number] if answers else []
        self._nothing.setVisible(not found)
        if found and self._names.currentRow() not in found:
            self._names.setCurrentRow(found[0])
