"""Question dialog with a headline, plain text and labelled buttons."""

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
_AROUND = 80  # Pixels at both sides of the buttons: margins and window frame


class Question(InOrder, QDialog):
    """Dialog whose `answer` is the key of the pressed button, or of the default when closed.

    Open it with `open()`, never `exec()`, whose nested loop would block coroutines for ever.
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
        """Set the window title and the headline."""
        self.setWindowTitle(plain_title(title))
        self._headline.show_text(headline)
        self.setAccessibleName(self._headline.text())

    def add_text(self, text: str, tone: str = "") -> None:
        """Add a paragraph of selectable text."""
        label = plain_label(text, self, tone=tone, wrap=True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.body.addWidget(label)

    def add_button(self, key: str, text: str, *, default: bool = False) -> QPushButton:
        """Add a button that ends the dialog with `key`; Esc means the default one."""
        button = QPushButton(text, self)
        button.setMinimumSize(BUTTON.expandedTo(button.sizeHint()))  # Never narrower than its text
        button.setAutoDefault(True)  # Enter presses the focused button
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
        """Arrange the buttons in a row, or in a column on a narrow screen."""
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
        """Fit the height to the wrapped text: Qt assumes narrower lines and leaves a gap."""
        layout = self.layout()
        if layout is not None and layout.hasHeightForWidth():
            self.resize(self.width(), layout.totalHeightForWidth(self.width()))

    def when_answered(self, act: Callable[[str], object]) -> None:
        """Call `act` once with the answer, however the dialog ends."""
        self.finished.connect(lambda _: act(self.answer))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move to the next field on Enter, since the default button would discard the input."""
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and isinstance(self.focusWidget(), QLineEdit):
            self.focusNextChild()
        else:
            super().keyPressEvent(event)

    def _end(self, key: str) -> None:
        self.answer = key
        self.accept()
