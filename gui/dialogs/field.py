"""One line of a form: its name, its editor, a hint, and its mistake right below it."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from engine.display import display
from gui.theme import MOST_CHARS, plain_label

EDITOR_HEIGHT = 28
MOST_LINES = 500


class Field(QWidget):
    """An editor with a key of the request; `mistake` shows what is wrong with it."""

    changed = Signal()
    left = Signal()

    def __init__(self, key: str, name: str, editor: QWidget, hint: str = "") -> None:
        super().__init__()
        self.key, self.editor = key, editor
        self._hint = plain_label(hint, tone="muted", wrap=True)
        self._hint.setVisible(bool(hint))
        self._mistake = plain_label(tone="bad", wrap=True)
        self._mistake.setVisible(False)
        self.name = plain_label(name)
        self.name.setBuddy(editor)
        editor.setAccessibleName(name)
        editor.setAccessibleDescription(hint)
        editor.installEventFilter(self)
        if not isinstance(editor, QPlainTextEdit | QCheckBox):
            editor.setMinimumHeight(EDITOR_HEIGHT)
        if isinstance(editor, QLineEdit):
            editor.setTextMargins(3, 0, 3, 0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        for part in (editor, self._hint, self._mistake):
            column.addWidget(part)
        _changes(editor).connect(lambda *_: self.changed.emit())

    @property
    def value(self) -> Any:
        """What stands in the editor, as the request wants it."""
        return _read(self.editor)

    @value.setter
    def value(self, value: Any) -> None:
        _write(self.editor, value)

    @property
    def mistake(self) -> str:
        return self._mistake.text()

    def show_mistake(self, sentence: str) -> None:
        """Show what is wrong, or nothing."""
        self._mistake.show_text(sentence)
        self._mistake.setVisible(bool(sentence))
        self._hint.setVisible(bool(self._hint.text()) and not sentence)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut:
            self.left.emit()
        return False


class Patterns(QPlainTextEdit):
    """Several patterns, one a line; Tab goes on to the next field."""

    LINES = 3

    def __init__(self) -> None:
        super().__init__()
        self.setTabChangesFocus(True)
        frame = 2 * self.frameWidth() + 8
        self.setFixedHeight(self.fontMetrics().lineSpacing() * self.LINES + frame)


def number(least: int, most: int, value: int, suffix: str = "") -> QSpinBox:
    """A spin box; the mouse wheel changes it only when it has the focus."""
    box = QSpinBox()
    box.setRange(least, most)
    box.setValue(value)
    box.setSuffix(suffix)
    box.setGroupSeparatorShown(True)
    box.setMinimumWidth(120)
    return box


def choice(options: tuple[tuple[str, str], ...]) -> QComboBox:
    """A drop-down of (value, words)."""
    box = QComboBox()
    for value, words in options:
        box.addItem(words, value)
    return box


def _changes(editor: QWidget) -> Any:
    """The signal that says: something else stands there now."""
    if isinstance(editor, QSpinBox):
        return editor.valueChanged
    if isinstance(editor, QComboBox):
        return editor.currentIndexChanged
    if isinstance(editor, QCheckBox):
        return editor.toggled
    assert isinstance(editor, QLineEdit | QPlainTextEdit)
    return editor.textChanged


def _read(editor: QWidget) -> Any:
    if isinstance(editor, QSpinBox):
        return editor.value()
    if isinstance(editor, QComboBox):
        return editor.currentData()
    if isinstance(editor, QCheckBox):
        return editor.isChecked()
    if isinstance(editor, QPlainTextEdit):
        return [line.strip() for line in editor.toPlainText().splitlines() if line.strip()]
    assert isinstance(editor, QLineEdit)
    return editor.text().strip()


def _write(editor: QWidget, value: Any) -> None:
    """Show `value`; one of another shape (it may come from a folder) changes nothing.

    Signs that lie (a direction override in an address) are replaced here too, in sight: what
    stands in the field is what is asked for.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(editor, QSpinBox) and whole:
        editor.setValue(min(value, editor.maximum()))
    elif isinstance(editor, QComboBox):
        at = editor.findData(value) if isinstance(value, str) else -1
        editor.setCurrentIndex(at if at >= 0 else editor.currentIndex())
    elif isinstance(editor, QCheckBox) and isinstance(value, bool):
        editor.setChecked(value)
    elif isinstance(editor, QPlainTextEdit) and isinstance(value, list | tuple):
        lines = (display(line, MOST_CHARS) for line in value[:MOST_LINES] if isinstance(line, str))
        editor.setPlainText("\n".join(lines))
    elif isinstance(editor, QLineEdit) and isinstance(value, str):
        editor.setText(display(value, MOST_CHARS))
