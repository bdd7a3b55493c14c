"""Removable chips for the conditions of the filter, in as many lines as needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QToolButton, QWidget

from engine.model.display import display, elide_right
from gui.style.icons import icon
from gui.style.theme import plain_keys, plain_tip

_CHARS = 40
_GAP = 4
_ICON = 12
_TAKE_AWAY = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace, Qt.Key.Key_Return, Qt.Key.Key_Enter)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition with its display `name` and its `query` in the filter language."""

    name: str
    query: str
    remove: Callable[[], object]


class FilterChips(QWidget):
    """One chip for each condition, hidden without conditions.

    `save_wanted` requests to save them as a view, `clear_wanted` to remove all.
    """

    save_wanted = Signal()
    clear_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Conditions of the filter"))
        self._chips: list[_Chip] = []
        self._shown: tuple[tuple[str, str], ...] = ()
        self._clear = self._button(self.tr("Clear all"), self.clear_wanted.emit)
        self._save = self._button(self.tr("Save view…"), self.save_wanted.emit)
        self.hide()

    def show_conditions(self, conditions: Sequence[Condition]) -> None:
        """Show exactly these conditions, and keep the focus position where possible."""
        shown = tuple((one.name, one.query) for one in conditions)
        if shown == self._shown:
            return
        self._shown = shown
        held = next((at for at, chip in enumerate(self._chips) if chip.hasFocus()), -1)
        for chip in self._chips:
            chip.hide()
            chip.deleteLater()
        self._chips = [self._chip(condition) for condition in conditions]
        self.setVisible(bool(conditions))
        self._place()
        if held >= 0 and self._chips:
            self._chips[min(held, len(self._chips) - 1)].setFocus()

    @property
    def names(self) -> tuple[str, ...]:
        """The texts of the chips."""
        return tuple(name for name, _ in self._shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            for chip in self._chips:
                chip.setIcon(icon("close"))

    def _chip(self, condition: Condition) -> _Chip:
        chip = _Chip(condition, self)
        chip.stepped.connect(self._step)
        chip.show()
        return chip

    def _button(self, text: str, act: Callable[[], object]) -> QToolButton:
        button = QToolButton(self)
        button.setText(text)
        button.setAutoRaise(True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(lambda _=False: act())
        return button

    def _step(self, by: int) -> None:
        here = next((at for at, chip in enumerate(self._chips) if chip.hasFocus()), 0)
        self._chips[max(0, min(len(self._chips) - 1, here + by))].setFocus()

    def _place(self) -> None:
        x = y = line = 0
        parts: list[QToolButton] = [*self._chips, self._clear, self._save]
        for before, part in zip([None, *parts], parts, strict=False):
            size = part.sizeHint()
            if x and x + size.width() > self.width():
                x, y, line = 0, y + line + _GAP, 0
            part.setGeometry(x, y, min(size.width(), max(1, self.width())), size.height())
            x, line = x + size.width() + _GAP, max(line, size.height())
            if before is not None:
                QWidget.setTabOrder(before, part)
        self.setFixedHeight(y + line)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())


class _Chip(QToolButton):
    """Chip of one condition: a click, Enter or Del removes it, arrows move between chips."""

    stepped = Signal(int)

    def __init__(self, condition: Condition, parent: QWidget) -> None:
        super().__init__(parent)
        name = elide_right(display(condition.name), _CHARS)
        self.setText(plain_keys(name))
        self.setIcon(icon("close"))
        self.setIconSize(QSize(_ICON, _ICON))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(self.tr("Take away the condition {0}").format(name))
        self.setToolTip(plain_tip(self.tr("Take away: {0}").format(display(condition.query))))
        self.clicked.connect(lambda _=False: condition.remove())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _TAKE_AWAY:
            self.click()
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.stepped.emit(1 if event.key() == Qt.Key.Key_Right else -1)
        else:
            super().keyPressEvent(event)
