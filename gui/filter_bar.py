"""The quick filter: words that must occur. Esc clears it, a second Esc goes back to the list."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from engine import words
from engine.query import QueryError
from gui.theme import plain_label

# Typing is not held up by the list: it is filtered when the fingers rest this long.
TYPING_MS = 120


class FilterBar(QWidget):
    """Emits `text_changed` a moment after typing, and `left` when the list should have the keys."""

    text_changed = Signal(str)
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._told = ""
        self._box = _FilterBox(self)
        self._box.setPlaceholderText(words.say("filter.placeholder"))
        self._box.setAccessibleName(words.say("filter.name"))
        self._box.setClearButtonEnabled(True)
        self._box.textChanged.connect(self._type)
        self._box.returnPressed.connect(self._leave)
        self._box.escaped.connect(self._leave)
        self._numbers = plain_label(tone="muted", parent=self)
        self._numbers.hide()
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.timeout.connect(self._tell)
        self._mistake = plain_label(tone="bad", wrap=True, parent=self)
        self._mistake.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        row = QHBoxLayout()
        row.setSpacing(10)
        column.addLayout(row)
        column.addWidget(self._mistake)
        row.addWidget(self._box, 1)
        row.addWidget(self._numbers)
        self.setFocusProxy(self._box)

    @property
    def text(self) -> str:
        return self._box.text()

    def set_text(self, text: str) -> None:
        """Filter by `text` at once."""
        self._box.setText(text)
        self._tell()

    def focus_text(self) -> None:
        """Put the keys here; what stands in the box is marked, not cleared."""
        self._box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._box.selectAll()

    def show_mistake(self, error: QueryError | None) -> None:
        """Say what is wrong with the text, or nothing."""
        self._mistake.show_text(f"{error} {error.advice}".strip() if error is not None else "")
        self._mistake.setVisible(error is not None)

    def show_counts(self, shown: int, total: int, selected: int = 0) -> None:
        """`Showing 214 of 12,480 · 3 selected`, beside the box."""
        self._numbers.show_text(words.showing(shown, total, selected))
        self._numbers.show()

    def _type(self, text: str) -> None:
        # What was emptied shows everything again without waiting.
        if text:
            self._typing.start(TYPING_MS)
        else:
            self._tell()

    def _tell(self) -> None:
        self._typing.stop()
        text = self._box.text().strip()
        if text != self._told:
            self._told = text
            self.text_changed.emit(text)

    def _leave(self) -> None:
        self._tell()
        self.left.emit()


class _FilterBox(QLineEdit):
    """A line in which Esc clears, and on an empty line goes away."""

    escaped = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            if self.text():
                self.clear()
            else:
                self.escaped.emit()
            event.accept()
            return
        if event.key() == Qt.Key.Key_Down:
            self.escaped.emit()
            return
        super().keyPressEvent(event)
