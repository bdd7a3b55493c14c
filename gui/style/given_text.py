"""Invalid given values, shown as written in the editor of their field.

A request from a file may say `"max_pages": "many"`. A number box with its default would show a
value that was not requested.
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
    """Text in a number box until the user enters a number, which emits `over`."""

    over = Signal()

    def __init__(self, box: QSpinBox | QDoubleSpinBox, text: str) -> None:
        super().__init__(box)
        self._box, self._none = box, box.specialValueText()
        self._shown = False
        box.setSpecialValueText(text)
        least: Any = box.minimum()
        box.setValue(least)  # At its minimum a spin box shows the special text instead of a number
        self._shown = True
        box.installEventFilter(self)
        box.valueChanged.connect(self._end)
        # Connected last, so that the box has parsed the text first.
        box.lineEdit().textChanged.connect(self._hear)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # Typed keys must replace the whole text, which a number box cannot edit.
        if self._shown and isinstance(event, QKeyEvent) and _changes_text(event):
            self._box.selectAll()
        return False

    def _hear(self, text: str) -> None:
        if text:  # Deleting the text is not yet a new value
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
    """Return a JSON value as it was written."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return display(text, MOST_CHARS)


def show_given(editor: QWidget, value: Any) -> GivenText | None:
    """Show an invalid `value` in an editor, or nothing, but never another value."""
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
