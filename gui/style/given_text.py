"""What was given for a field whose editor has no place for it, shown as it was written.

A request from a file may say `"max_pages": "many"`. A box for numbers that showed its default
instead would say something that nobody asked for.
"""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QWidget,
)

from engine.model.display import display, display_lines
from gui.style.theme import MOST_CHARS


class GivenText(QObject):
    """Words in a box for numbers, until a person puts a number there: then it is `over`."""

    over = Signal()

    def __init__(self, box: QSpinBox | QDoubleSpinBox, text: str) -> None:
        super().__init__(box)
        self._box, self._none = box, box.specialValueText()
        self._shown = False
        box.setSpecialValueText(text)
        least: Any = box.minimum()
        box.setValue(least)  # there a box shows words instead of a number
        self._shown = True
        box.installEventFilter(self)
        box.valueChanged.connect(self._end)
        box.lineEdit().textChanged.connect(self._hear)  # after the box itself has read it

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # a box for numbers lets nobody edit words: what is typed replaces all of them
        if self._shown and isinstance(event, QKeyEvent) and _changes_text(event):
            self._box.selectAll()
        return False

    def _hear(self, text: str) -> None:
        if text:  # who erased the words is not done yet
            self._end()

    def _end(self) -> None:
        if self._shown:
            self._shown = False
            self._box.setSpecialValueText(self._none)
            self.over.emit()
            self.deleteLater()


def _changes_text(event: QKeyEvent) -> bool:
    if event.type() != QEvent.Type.KeyPress:
        return False
    erases = event.key() in (Qt.Key.Key_Backspace, Qt.Key.Key_Delete)
    return erases or (bool(event.text()) and event.text().isprintable())


def words_for(value: Any) -> str:
    """A value of JSON, as a person wrote it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return display(text, MOST_CHARS)


def show_given(editor: QWidget, value: Any) -> GivenText | None:
    """Show `value` in an editor that cannot hold it, or nothing at all; never another value."""
    text = words_for(value)
    if isinstance(editor, QSpinBox | QDoubleSpinBox):
        return GivenText(editor, text)
    if isinstance(editor, QComboBox):
        editor.setPlaceholderText(text)
        editor.setCurrentIndex(-1)
    elif isinstance(editor, QCheckBox):
        editor.setCheckState(Qt.CheckState.PartiallyChecked)
    elif isinstance(editor, QPlainTextEdit):
        editor.setPlainText(display_lines(text, MOST_CHARS))
    elif isinstance(editor, QLineEdit):
        editor.setText(text)
    return None
