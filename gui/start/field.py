"""Parts of a form: a field with label, editor, hint and error, and a collapsible section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display, display_lines
from gui.style.editors import OwnEditor, Patterns, SecretLine, show_given
from gui.style.icons import wear
from gui.style.theme import MOST_CHARS, plain_label
from gui.style.widgets import arrange

EDITOR_HEIGHT = 28
MOST_LINES = 500
MOST_PROSE = 1_000_000  # Long enough for a whole script
MOST_NUMBER = 2_000_000_000  # Limit of a spin box


class Field(QWidget):
    """Editor for one key of the request; `mistake` is its error message."""

    changed = Signal()
    left = Signal()

    def __init__(self, key: str, name: str, editor: QWidget, hint: str = "") -> None:
        super().__init__()
        self.key, self.editor = key, editor
        self._given: tuple[Any, ...] = ()  # Value that the editor cannot show
        self._hint = plain_label(hint, tone="muted", wrap=True)
        self._hint.setVisible(bool(hint))
        self._mistake = plain_label(tone="bad", wrap=True)
        self._mistake.setVisible(False)
        self.name = plain_label(name)
        self.name.setBuddy(editor.target if isinstance(editor, OwnEditor) else editor)
        editor.setAccessibleName(name)
        editor.setAccessibleDescription(hint)
        editor.installEventFilter(self)
        if isinstance(editor, QSpinBox | QComboBox):
            editor.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        if not isinstance(editor, QPlainTextEdit | QCheckBox | OwnEditor):
            editor.setMinimumHeight(EDITOR_HEIGHT)
        if isinstance(editor, QLineEdit):
            editor.setTextMargins(3, 0, 3, 0)
        arrange(QVBoxLayout(self), editor, self._hint, self._mistake, margins=0, spacing=3)
        self._filling = False
        _changes(editor).connect(lambda *_: self._hear_edit())

    @property
    def label(self) -> str:
        own = self.editor.text() if isinstance(self.editor, QCheckBox) else ""
        return self.name.text() or own

    @property
    def value(self) -> Any:
        """The value in the form of the request."""
        return self._given[0] if self._given else _read(self.editor)

    @value.setter
    def value(self, value: Any) -> None:
        self._given = ()
        _write(self.editor, value)

    def retype(self, text: str) -> None:
        """Write what was typed in another spelling, whole; `value` shows a part of a long text."""
        if isinstance(self.editor, QLineEdit):
            self.editor.setText(text)
        elif isinstance(self.editor, QPlainTextEdit):
            self.editor.setPlainText(text)

    @property
    def is_strange(self) -> bool:
        """True while it holds a value that its editor cannot show."""
        return bool(self._given)

    def hold(self, value: Any) -> None:
        """Show a given value; an invalid one is kept and shown as text until it is edited."""
        self.value = value
        shown = _read(self.editor)
        exact = isinstance(self.editor, QComboBox | NumberOrWord)
        if shown == value and type(shown) is type(value) if exact else _is_shown(shown, value):
            return
        self._filling = True
        if not (isinstance(shown, list) and isinstance(value, list | tuple)):
            self._show_strange(value)
        self._filling = False
        self._given = (value,)
        self.changed.emit()

    def _show_strange(self, value: Any) -> None:
        if isinstance(self.editor, OwnEditor):
            given = self.editor.show_given(value)
        else:
            given = show_given(self.editor, value)
        if given is not None:
            given.over.connect(self._hear_edit)

    def _hear_edit(self) -> None:
        if self._filling:
            return
        self._given = ()
        if isinstance(self.editor, QCheckBox):
            self.editor.setTristate(False)
        self.changed.emit()

    @property
    def mistake(self) -> str:
        return self._mistake.text()

    def show_mistake(self, sentence: str) -> None:
        """Show an error message, or none."""
        self._mistake.show_text(sentence)
        self.editor.setAccessibleDescription(sentence or self._hint.text())
        self._mistake.setVisible(bool(sentence))
        self._hint.setVisible(bool(self._hint.text()) and not sentence)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut:
            self.left.emit()
        if event.type() == QEvent.Type.Wheel and not self.editor.hasFocus():
            event.ignore()  # Scrolling the form must not change its numbers
            return True
        return False


def number(least: int, most: int, value: int, suffix: str = "") -> QSpinBox:
    """Return a spin box that ignores the mouse wheel without focus."""
    box = QSpinBox()
    box.setRange(least, min(most, MOST_NUMBER))
    box.setValue(value)
    box.setSuffix(suffix)
    box.setGroupSeparatorShown(True)
    box.setMinimumWidth(120)
    return box


def number_or_none(least: int, most: int, none: str, suffix: str = "") -> QSpinBox:
    """Return a spin box whose minimum shows the text `none` and means None."""
    box = number(least - 1, most, least - 1, suffix)
    box.setSpecialValueText(none)
    return box


class NumberOrWord(QSpinBox):
    """Spin box whose minimum means a word of the request, such as `auto`."""

    word = ""


def number_or_word(low: int, high: int, value: int, word: str, shown: str) -> NumberOrWord:
    """Return a spin box for a number or `word`, which it shows as `shown`."""
    box = NumberOrWord()
    box.word = word
    box.setRange(low - 1, high)
    box.setSpecialValueText(shown)
    box.setValue(value)
    box.setMinimumWidth(120)
    return box


def choice(options: tuple[tuple[str, str], ...]) -> QComboBox:
    """Return a combo box of (value, text) pairs."""
    box = QComboBox()
    for value, words in options:
        box.addItem(words, value)
    return box


def _changes(editor: QWidget) -> Any:
    """Return the editor's change signal."""
    if isinstance(editor, OwnEditor):
        return editor.edited
    if isinstance(editor, QSpinBox):
        return editor.valueChanged
    if isinstance(editor, QComboBox):
        return editor.currentIndexChanged
    if isinstance(editor, QCheckBox):
        return editor.checkStateChanged
    assert isinstance(editor, QLineEdit | QPlainTextEdit)
    return editor.textChanged


def _read(editor: QWidget) -> Any:
    if isinstance(editor, OwnEditor):
        return editor.read()
    if isinstance(editor, QSpinBox):
        special = editor.specialValueText() and editor.value() == editor.minimum()
        word = editor.word if isinstance(editor, NumberOrWord) else None
        return word if special else editor.value()
    if isinstance(editor, QComboBox):
        return editor.currentData()
    if isinstance(editor, QCheckBox):
        return editor.isChecked()  # A partially checked box holds another value, see `hold`
    if isinstance(editor, Patterns):
        return editor.lines()
    if isinstance(editor, QPlainTextEdit):
        return editor.toPlainText().strip()
    assert isinstance(editor, QLineEdit)
    if isinstance(editor, SecretLine):
        return editor.reference() or editor.text()
    return editor.text().strip()


def _write(editor: QWidget, value: Any) -> None:
    """Show `value`; a value of another type, as from a file, changes nothing.

    Deceptive characters (such as a direction override) are replaced visibly, because the field's
    text is the request.
    """
    if isinstance(editor, OwnEditor):
        editor.put(value)
    elif isinstance(editor, QSpinBox):
        _write_number(editor, value)
    elif isinstance(editor, QComboBox):
        at = editor.findData(value) if isinstance(value, str) else -1
        editor.setCurrentIndex(at if at >= 0 else editor.currentIndex())
    elif isinstance(editor, QCheckBox) and isinstance(value, bool):
        editor.setChecked(value)
    else:
        _write_text(editor, value)


def _is_shown(shown: Any, value: Any) -> bool:
    """Return whether the editor shows `value`, exactly or as displayable text."""
    if isinstance(shown, str):
        return isinstance(value, str)
    if isinstance(shown, list):
        return isinstance(value, list | tuple) and len(shown) == len(value)
    return bool(shown == value and type(shown) is type(value))


def _write_text(editor: QWidget, value: Any) -> None:
    if isinstance(editor, Patterns):
        lines = value[:MOST_LINES] if isinstance(value, list | tuple) else ()
        shown = [display(line, MOST_CHARS) for line in lines if isinstance(line, str)]
        editor.setPlainText("\n".join(shown) if lines or value == [] else editor.toPlainText())
    elif isinstance(editor, SecretLine) and isinstance(value, Mapping):
        editor.show_reference(value)
    elif isinstance(editor, QPlainTextEdit) and isinstance(value, str):
        editor.setPlainText(display_lines(value, MOST_PROSE))
    elif isinstance(editor, QLineEdit) and isinstance(value, str):
        editor.setText(display(value, MOST_CHARS))


def _write_number(editor: QSpinBox, value: Any) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        editor.setValue(max(editor.minimum(), min(value, editor.maximum())))
    elif isinstance(editor, NumberOrWord):
        if value == editor.word:
            editor.setValue(editor.minimum())
    elif value is None and editor.specialValueText():
        editor.setValue(editor.minimum())


HALF = 240  # Largest width in pixels of a check box that shares a row


class Fold(QWidget):
    """Heading that expands and collapses `column`; it can show how many fields are changed."""

    unfolded = Signal(bool)

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.inner = QWidget(self)
        self.column = arrange(QVBoxLayout(self.inner), margins=(22, 2, 0, 8), spacing=10)
        self.inner.setVisible(False)
        self.toggle = QToolButton(self)
        self.title = title
        wear(self.toggle, "more")
        self.toggle.setCheckable(True)
        self.toggle.setAutoRaise(True)
        self.toggle.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.toggle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.toggle.toggled.connect(self._show)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.inner)

    @property
    def title(self) -> str:
        return self._title

    @title.setter
    def title(self, title: str) -> None:
        self._title = title
        self.toggle.setText(title)

    def show_changed(self, number: int) -> None:
        """Add to the heading how many fields are not at their default."""
        words = self.tr("{0} · {1} changed")
        self.toggle.setText(words.format(self.title, number) if number else self.title)

    @property
    def is_unfolded(self) -> bool:
        return self.toggle.isChecked()

    def unfold(self) -> None:
        self.toggle.setChecked(True)

    def holds(self, widget: QWidget) -> bool:
        """Return whether `widget` is inside the collapsible part."""
        return self.inner.isAncestorOf(widget)

    def _show(self, shown: bool) -> None:
        wear(self.toggle, "less" if shown else "more")
        self.inner.setVisible(shown)
        self.unfolded.emit(shown)


def grid_of(*fields: Field, columns: int = 2) -> QGridLayout:
    """Return a grid of fields with labels above; check boxes have their own text."""
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(10)
    place = 0
    for field in fields:
        whole = _is_long(field)  # Its text cannot wrap and would squeeze the other fields
        if whole and place % columns:
            place += columns - place % columns
        cell = QVBoxLayout()
        cell.setSpacing(4)
        if field.name.text():
            cell.addWidget(field.name)
        cell.addWidget(field)
        cell.addStretch()
        grid.addLayout(cell, place // columns, place % columns, 1, columns if whole else 1)
        place += columns if whole else 1
    for column in range(columns):
        grid.setColumnStretch(column, 1)
    return grid


def _is_long(field: Field) -> bool:
    """Return whether the field is a check box wider than half a form."""
    return isinstance(field.editor, QCheckBox) and field.editor.sizeHint().width() > HALF
