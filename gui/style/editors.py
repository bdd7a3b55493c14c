"""Editors missing in Qt: lists of lines, texts, seconds, check boxes, secrets, completions."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QSpinBox,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display, display_lines
from engine.query import Completion, Offer
from gui.style.tables import AnyIndex
from gui.style.theme import MOST_CHARS, fixed_pitch, tone
from gui.style.widgets import arrange


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


SECOND = 1000


class Patterns(QPlainTextEdit):
    """Multi-line editor with one value per line; Tab moves to the next field."""

    LINES = 3

    def __init__(self, lines: int = LINES) -> None:
        super().__init__()
        self.setTabChangesFocus(True)
        frame = 2 * self.frameWidth() + 8
        self.setFixedHeight(self.fontMetrics().lineSpacing() * lines + frame)

    def lines(self) -> list[str]:
        """Return the lines without blank ones."""
        return [line.strip() for line in self.toPlainText().splitlines() if line.strip()]


class Prose(QPlainTextEdit):
    """Multi-line editor for one text; Tab moves to the next field."""

    def __init__(self, lines: int = 3) -> None:
        super().__init__()
        self.setTabChangesFocus(True)
        frame = 2 * self.frameWidth() + 8
        self.setMinimumHeight(self.fontMetrics().lineSpacing() * lines + frame)
        self.setMaximumHeight(self.fontMetrics().lineSpacing() * max(lines, 5) + frame)


def read_only_text(
    parent: QWidget, name: str, text: str = "", *, fixed: bool = False
) -> QPlainTextEdit:
    """Return selectable text, `fixed` in a fixed-pitch font; Tab moves to the next field."""
    pane = QPlainTextEdit(text, parent)
    pane.setReadOnly(True)
    pane.setTabChangesFocus(True)
    pane.setAccessibleName(name)
    if fixed:
        fixed_pitch(pane)
    return pane


class OwnEditor(QWidget):
    """Editor that reads and shows its value itself."""

    edited = Signal()
    target: QWidget  # Widget that takes the focus; a focus proxy would break the Tab order

    # The type checker enforces the abstract methods, because Qt classes have their own metaclass.
    @abstractmethod
    def read(self) -> Any:
        """Return the value in the form of a request."""

    @abstractmethod
    def put(self, value: Any) -> None:
        """Show `value`; a value of another type changes nothing."""

    @abstractmethod
    def show_given(self, value: Any) -> GivenText | None:
        """Show an invalid value as it was written, or show nothing."""


class Seconds(OwnEditor):
    """Duration editor: seconds on screen, milliseconds in the request, None at the minimum."""

    def __init__(self, least_ms: int, most_ms: int, value_ms: int | None, none: str = "") -> None:
        super().__init__()
        self._box = _SecondsBox(self)
        self._none = none
        least = 0.0 if none else least_ms / SECOND
        self._box.setRange(least, most_ms / SECOND)
        self._box.setSpecialValueText(none)
        self._box.setSuffix(self.tr(" s", "seconds"))
        self.put(value_ms)
        self._box.valueChanged.connect(lambda _: self.edited.emit())
        arrange(QHBoxLayout(self), self._box, margins=0)
        self.target = self._box

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        self._box.setAccessibleName(name)

    def read(self) -> int | None:
        if self._none and self._box.value() == self._box.minimum():
            return None
        return round(self._box.value() * SECOND)

    def put(self, value: Any) -> None:
        if isinstance(value, int) and not isinstance(value, bool):
            self._box.setValue(value / SECOND)
        elif value is None and self._none:
            self._box.setValue(self._box.minimum())

    def show_given(self, value: Any) -> GivenText | None:
        return show_given(self._box, value)


class _SecondsBox(QDoubleSpinBox):
    """Spin box without trailing zeros."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setDecimals(3)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumHeight(28)
        self.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def textFromValue(self, value: float) -> str:
        whole = self.locale().toString(value, "f", 3)
        point = self.locale().decimalPoint()
        return whole.rstrip("0").rstrip(point) if point in whole else whole


class Several(OwnEditor):
    """Multiple choice with a check box for each option."""

    def __init__(self, options: Sequence[tuple[str, str]], chosen: Sequence[str]) -> None:
        super().__init__()
        self._boxes = {value: QCheckBox(words, self) for value, words in options}
        column = arrange(QVBoxLayout(self), margins=0, spacing=4)
        for value, box in self._boxes.items():
            box.setChecked(value in chosen)
            box.toggled.connect(lambda _: self.edited.emit())
            column.addWidget(box)
        self.target = next(iter(self._boxes.values()))

    def read(self) -> list[str]:
        return [value for value, box in self._boxes.items() if box.isChecked()]

    def put(self, value: Any) -> None:
        if isinstance(value, list | tuple):
            for name, box in self._boxes.items():
                box.setChecked(name in value)

    def show_given(self, value: Any) -> GivenText | None:
        self.put(())
        return None


class NameLine(QLineEdit):
    """Line edit whose Enter does not press the default button of a dialog."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        super().keyPressEvent(event)
        _keep_enter(event)


class Choices(QListWidget):
    """List whose Enter chooses an item without pressing the default button."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        super().keyPressEvent(event)
        _keep_enter(event)


class Rows(QTableView):
    """Table whose Enter does not press the default button."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        super().keyPressEvent(event)
        _keep_enter(event)


def _keep_enter(event: QKeyEvent) -> None:
    if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.modifiers():
        event.accept()


class SecretLine(QLineEdit):
    """Line edit for a text or the reference to a secret, such as `{"secret": "env:NAME"}`."""

    def reference(self) -> dict[str, Any] | None:
        """Return the reference, or None for a plain text."""
        text = self.text().strip()
        if not text.startswith("{") or "secret" not in text:
            return None
        try:
            found = json.loads(text)
        except ValueError:
            return None
        return found if isinstance(found, dict) and "secret" in found else None

    def show_reference(self, value: Mapping[str, Any]) -> None:
        self.setText(display(json.dumps(dict(value), ensure_ascii=False), MOST_CHARS))


_WIDTH = 460
_FIELD_WIDTH = 190
_EDGE = 4
_ROOM = 8


class Roomy(QStyledItemDelegate):
    """Delegate with extra row height."""

    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        hint = super().sizeHint(option, index)
        return QSize(hint.width(), hint.height() + _ROOM)


class CompletionPopup(QTreeWidget):
    """Popup over the window that takes no focus; `taken` carries the chosen completion.

    It is a child widget, because on some desktops a popup window takes the focus from the box.
    """

    taken = Signal(object)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._completion = Completion(0, 0)
        self.setAccessibleName(self.tr("What may follow"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setFrameShape(QFrame.Shape.Box)
        self.setItemDelegate(Roomy(self))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
        self.header().resizeSection(0, _FIELD_WIDTH)
        self.itemClicked.connect(lambda item, _: self._take(item))
        self.hide()

    def offer(self, completion: Completion, below: QPoint) -> None:
        """Show completions with the top left corner at `below`, in window coordinates."""
        self._completion = completion
        self.clear()
        if not completion.offers:
            self.hide()
            return
        muted = tone("muted", QApplication.palette())
        for offer in completion.offers:
            item = QTreeWidgetItem(self, [display(offer.text), offer.help])
            item.setForeground(1, muted)
        window = self.window()
        width = min(_WIDTH, window.width() - below.x() - _EDGE)
        height = self.sizeHintForRow(0) * len(completion.offers) + 2 * self.frameWidth() + _EDGE
        self.setGeometry(below.x(), below.y(), width, min(height, window.height() - below.y()))
        self.show()
        self.raise_()

    @property
    def completion(self) -> Completion:
        return self._completion

    @property
    def shown(self) -> tuple[str, ...]:
        return () if self.isHidden() else tuple(one.text for one in self._completion.offers)

    def step(self, by: int) -> None:
        """Select the next completion, wrapping around."""
        count, here = self.topLevelItemCount(), self.currentIndex().row()
        at = (here + by) % count if here >= 0 else (0 if by > 0 else count - 1)
        self.setCurrentIndex(self.model().index(at, 0))

    def take(self, *, first: bool = False) -> bool:
        """Insert the selected completion (or the `first`); False if there is none."""
        item = self.currentItem() or (self.topLevelItem(0) if first else None)
        if self.isHidden() or item is None:
            return False
        self._take(item)
        return True

    def _take(self, item: QTreeWidgetItem) -> None:
        offer: Offer = self._completion.offers[self.indexOfTopLevelItem(item)]
        self.hide()
        self.taken.emit(offer)
