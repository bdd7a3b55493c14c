"""The field above the events in which a text is looked for, and how far that is."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QToolButton, QWidget

from engine.text.words import count
from gui.details.event_find import EventFinder
from gui.style.clearable import clearable
from gui.style.elided_label import ElidedLabel
from gui.style.theme import plain_tip

PAUSE_MS = 250  # of typing, before a file of any size is looked through
_LEAST_CHARS, _MOST_CHARS, _TOLD_CHARS = 20, 40, 14


class FindBar(QWidget):
    """`wanted` carries the text once it stands still, `stepped` 1 or -1, `left` on Esc."""

    wanted = Signal(str)
    stepped = Signal(int)
    left = Signal()

    def __init__(self, finder: EventFinder, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._finder = finder
        self.field = _Field(self)
        clearable(self.field)
        self.field.setPlaceholderText(self.tr("Find in all events (F3)"))
        self.field.setAccessibleName(self.tr("Find in all events"))
        character = self.fontMetrics().averageCharWidth()
        self.field.setMinimumWidth(_LEAST_CHARS * character)
        self.field.setMaximumWidth(_MOST_CHARS * character)
        self._previous = self._button("▲", self.tr("Previous match (Shift+F3)"))
        self._next = self._button("▼", self.tr("Next match (F3)"))
        self._stop = self._button("✕", self.tr("Stop searching"))
        self._told = ElidedLabel("muted", self, least=_TOLD_CHARS)
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._current = 0
        self._lay_out()
        self._connect()
        self._show_state()

    def _lay_out(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.field, 20)
        for button in (self._previous, self._next, self._stop):
            row.addWidget(button)
        row.addWidget(self._told, 10)
        row.addStretch(1)  # what the field has no use for

    def _connect(self) -> None:
        self.field.textChanged.connect(lambda _: self._pause.start())
        self.field.returnPressed.connect(lambda: self.step(1))
        self.field.stepped.connect(self.step)
        self.field.left.connect(self.left)
        self._pause.timeout.connect(self.settle)
        self._previous.clicked.connect(lambda: self.step(-1))
        self._next.clicked.connect(lambda: self.step(1))
        self._stop.clicked.connect(self._finder.stop)
        self._finder.changed.connect(self._show_state)

    def settle(self) -> None:
        """Look for what stands in the field now, not only when typing has paused."""
        self._pause.stop()
        if self.field.text().strip() != self._finder.text:
            self.wanted.emit(self.field.text().strip())

    def step(self, way: int) -> None:
        """To the next match (1) or the one before (-1); without a text to the field."""
        self.settle()
        if self._finder.text:
            self.stepped.emit(way)
        else:
            self.begin()

    def begin(self) -> None:
        """To the field, with what stands there marked."""
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def show_current(self, number: int) -> None:
        """The how-manieth match is the current one; 0 for none."""
        self._current = number
        self._show_state()

    def _button(self, sign: str, name: str) -> QToolButton:
        button = QToolButton(self)
        button.setText(sign)
        button.setToolTip(plain_tip(name))
        button.setAccessibleName(name)
        button.setAutoRaise(True)
        return button

    def _show_state(self) -> None:
        finder = self._finder
        found = bool(finder.places)
        self._previous.setEnabled(found)
        self._next.setEnabled(found)
        self._stop.setVisible(finder.busy)
        self._told.show_text(self._words())
        self._told.setVisible(bool(self._told.text()))

    def _words(self) -> str:
        finder = self._finder
        if not finder.text:
            return ""
        number = count(len(finder.places))
        if finder.busy:
            return self.tr("{0} found, {1} % searched").format(number, finder.percent)
        if finder.stopped:
            return self.tr("{0} found, stopped at {1} %").format(number, finder.percent)
        if finder.too_many:
            return self.tr("the first {0} matches").format(number)
        if not finder.places:
            return self.tr("not found")
        if self._current:
            return self.tr("{0} of {1}").format(count(self._current), number)
        return (
            self.tr("1 found") if len(finder.places) == 1 else self.tr("{0} found").format(number)
        )


class _Field(QLineEdit):
    """Down and Up step from match to match; Esc clears, a second one leaves."""

    stepped = Signal(int)
    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key == Qt.Key.Key_Escape:
            if self.text():
                self.clear()
            else:
                self.left.emit()
        elif key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            self.stepped.emit(1 if key == Qt.Key.Key_Down else -1)
        elif key == Qt.Key.Key_Return and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.stepped.emit(-1)
        else:
            super().keyPressEvent(event)
