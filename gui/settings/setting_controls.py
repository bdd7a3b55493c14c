"""Setting controls, each of which shows one preference and saves each change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QRegularExpression, Qt
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from gui.state.preferences import Preferences
from gui.style.theme import TonedLabel

CLOCK = QRegularExpression(r"(([01]?\d|2[0-3]):[0-5]\d)?")
FIELD_WIDTH = 260
Make = Callable[[QWidget], QWidget]


@dataclass(frozen=True, slots=True)
class Switch:
    """A check box with its text."""

    words: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A list of choices as pairs of value and text."""

    values: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Number:
    """An integer; `none` labels the lowest value, `one` is the suffix of 1.

    `beyond` is the message for a saved value out of range, with the nearest valid value.
    """

    low: int
    high: int
    suffix: str = ""
    none: str = ""
    one: str = ""
    beyond: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day as HH:MM, or empty; `wrong` is the message for an invalid text."""

    empty: str
    wrong: str


@dataclass(frozen=True, slots=True)
class File:
    """The path of a program or a folder."""

    empty: str
    browse: str
    is_folder: bool = False


Control = Switch | Choice | Number | Clock | File


def control_for(control: Control, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    """Return the widget for one preference, bound in both directions."""
    makers: dict[type, Callable[..., QWidget]] = {
        Switch: _switch,
        Choice: _choice,
        Number: _number,
        Clock: _clock,
        File: _file,
    }
    return makers[type(control)](control, key, preferences, parent)


def _follow(widget: QWidget, key: str, preferences: Preferences, show: Callable[[], None]) -> None:
    """Call `show` now and after each change of the preference, while `widget` exists."""

    def hear(changed: str) -> None:
        if changed == key:
            show()

    preferences.changed.connect(hear)
    widget.destroyed.connect(lambda: preferences.changed.disconnect(hear))
    show()


def _switch(control: Switch, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    box = QCheckBox(control.words, parent)
    _follow(box, key, preferences, lambda: box.setChecked(preferences.get(key, bool)))
    box.toggled.connect(lambda on: preferences.set(key, on))
    return box


def _choice(control: Choice, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    box = QComboBox(parent)
    for value, words in control.values:
        box.addItem(words, value)

    def show() -> None:
        box.setCurrentIndex(max(0, box.findData(preferences.get(key, str))))

    _follow(box, key, preferences, show)
    box.activated.connect(lambda at: preferences.set(key, box.itemData(at)))
    return _calm(box)


def _number(control: Number, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    box = QSpinBox(parent)
    box.setRange(control.low, control.high)
    box.setSuffix(control.suffix)
    box.setSpecialValueText(control.none)
    if control.one:
        suffixes = {1: control.one}
        box.valueChanged.connect(lambda value: box.setSuffix(suffixes.get(value, control.suffix)))
    _follow(box, key, preferences, lambda: box.setValue(preferences.get(key, int)))
    box.valueChanged.connect(lambda value: preferences.set(key, value))
    _calm(box)
    return _beside_beyond(box, control, key, preferences) if control.beyond else box


def _beside_beyond(box: QSpinBox, control: Number, key: str, preferences: Preferences) -> QWidget:
    both = QWidget(box.parentWidget())
    row = QHBoxLayout(both)
    row.setContentsMargins(0, 0, 0, 0)
    said = TonedLabel("", "warning", both)
    said.setWordWrap(True)

    def judge() -> None:
        kept = preferences.get(key, int)
        said.show_text(control.beyond.format(kept, min(max(kept, control.low), control.high)))
        said.setVisible(not control.low <= kept <= control.high)

    _follow(said, key, preferences, judge)
    row.addWidget(box, 1)
    row.addWidget(said, 1)
    both.setFocusProxy(box)
    return both


def _clock(control: Clock, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    both = QWidget(parent)
    row = QHBoxLayout(both)
    row.setContentsMargins(0, 0, 0, 0)
    field = _field(key, preferences, both)
    field.setPlaceholderText(control.empty)
    field.setValidator(QRegularExpressionValidator(CLOCK, field))
    wrong = TonedLabel(control.wrong, "bad", both)
    keeps = wrong.sizePolicy()
    keeps.setRetainSizeWhenHidden(True)  # The field keeps its place while the message is hidden
    wrong.setSizePolicy(keeps)

    def judge() -> None:
        wrong.setVisible(not field.hasAcceptableInput())

    field.textChanged.connect(judge)
    judge()
    row.addWidget(field, 1)
    row.addWidget(wrong, 1)
    both.setFocusProxy(field)
    return both


def _field(key: str, preferences: Preferences, parent: QWidget) -> QLineEdit:
    field = QLineEdit(parent)
    field.setMaximumWidth(FIELD_WIDTH)
    _follow(field, key, preferences, lambda: field.setText(preferences.get(key, str)))

    def keep() -> None:
        if field.hasAcceptableInput():
            preferences.set(key, field.text().strip())

    field.editingFinished.connect(keep)
    return field


def _file(control: File, key: str, preferences: Preferences, parent: QWidget) -> QWidget:
    both = QWidget(parent)
    row = QHBoxLayout(both)
    row.setContentsMargins(0, 0, 0, 0)
    field = _field(key, preferences, both)
    field.setMaximumWidth(16_777_215)
    field.setPlaceholderText(control.empty)
    browse = QPushButton(control.browse, both)
    browse.setAutoDefault(False)

    def ask() -> None:
        dialog = QFileDialog(both, control.empty)
        modes = QFileDialog.FileMode
        dialog.setFileMode(modes.Directory if control.is_folder else modes.ExistingFile)
        dialog.fileSelected.connect(lambda path: preferences.set(key, path))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    browse.clicked.connect(ask)
    row.addWidget(field, 1)
    row.addWidget(browse)
    both.setFocusProxy(field)
    return both


def _calm(box: QWidget) -> QWidget:
    """Ignore the wheel over an unfocused box, so that it scrolls the page."""
    box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    box.installEventFilter(_Wheel(box))
    return box


class _Wheel(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        away = isinstance(watched, QWidget) and not watched.hasFocus()
        if away and event.type() == QEvent.Type.Wheel:
            event.ignore()
            return True
        return False
