"""A calm question: a headline, sentences in plain text, buttons that say what they do."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from gui.style.tab_order import InOrder
from gui.style.theme import heading, plain_label, plain_title

WIDTH = 440
BUTTON = QSize(96, 30)
_AROUND = 80  # pixels at both sides of the buttons: the margins, and the frame of the window


class Question(InOrder, QDialog):
    """`answer` is the key of the pressed button, or of the default one when it was closed.

    Opened with `open()`, never `exec()`: a nested loop would strand coroutines for ever.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModal(True)
        self.setMinimumWidth(WIDTH)
        self.answer = ""
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        self._row = QHBoxLayout()
        self._row.setSpacing(8)
        self._row.addStretch()
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(14)
        self._headline = heading("", self, grow=1.2)
        self._headline.setWordWrap(True)
        column.addWidget(self._headline)
        column.addLayout(self.body)
        column.addStretch()
        column.addLayout(self._row)

    def ask(self, title: str, headline: str) -> None:
        """What stands in the title bar, and what leads the text."""
        self.setWindowTitle(plain_title(title))
        self._headline.show_text(headline)
        self.setAccessibleName(self._headline.text())

    def add_text(self, text: str, tone: str = "") -> None:
        """A paragraph; it can be selected and copied."""
        label = plain_label(text, self, tone=tone, wrap=True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.body.addWidget(label)

    def add_button(self, key: str, text: str, *, default: bool = False) -> QPushButton:
        """A button that ends the question with `key`; the default is also what Esc means."""
        button = QPushButton(text, self)
        button.setMinimumSize(BUTTON.expandedTo(button.sizeHint()))  # never less than its words
        button.setAutoDefault(True)  # Enter presses the button that has the focus
        button.setDefault(default)
        button.clicked.connect(lambda: self._end(key))
        self._row.addWidget(button)
        if default:
            self.answer = key
            button.setFocus()
        return button

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._stack_buttons()
        self._fit_height()

    def _stack_buttons(self) -> None:
        """Side by side where the screen has the room, else one above the other."""
        places = (self._row.itemAt(at) for at in range(self._row.count()))
        buttons = [widget for item in places if item and (widget := item.widget())]
        seen = [one for one in buttons if not one.isHidden()]
        wide = sum(one.minimumWidth() + self._row.spacing() for one in seen)
        room = self.screen().availableGeometry().width() - _AROUND
        ways = QBoxLayout.Direction
        way = ways.LeftToRight if wide <= room else ways.TopToBottom
        if self._row.direction() != way:
            self._row.setDirection(way)
            self.adjustSize()

    def _fit_height(self) -> None:
        """As high as its words are at its width: Qt guesses at narrower lines, and leaves a gap."""
        layout = self.layout()
        if layout is not None and layout.hasHeightForWidth():
            self.resize(self.width(), layout.totalHeightForWidth(self.width()))

    def when_answered(self, act: Callable[[str], object]) -> None:
        """Call `act` with the answer, once, however the question ends."""
        self.finished.connect(lambda _: act(self.answer))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter in a field leads on: the default button would throw away what was typed."""
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and isinstance(self.focusWidget(), QLineEdit):
            self.focusNextChild()
        else:
            super().keyPressEvent(event)

    def _end(self, key: str) -> None:
        self.answer = key
        self.accept()
