"""One switch for each kind of event, in as many lines as they need."""

from __future__ import annotations

from collections import Counter

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QToolButton, QWidget

from engine.model.display import elide_right
from engine.text import words
from gui.details.event_model import OTHER
from gui.engine_link.event_rows import kind_name
from gui.style.theme import plain_keys

_NAME_CHARS = 24
_GAP = 4


class Chips(QWidget):
    """`changed` carries the hidden kinds. Asks for no width: kinds are a stranger's words."""

    changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(words.say("events.kinds"))
        self._chips: dict[str, QToolButton] = {}

    def clear(self) -> None:
        for chip in self._chips.values():
            chip.hide()
            chip.deleteLater()
        self._chips.clear()

    def show_counts(self, kinds: Counter[str]) -> None:
        for kind, number in kinds.items():
            chip = self._chips.get(kind) or self._add(kind)
            name = words.say("events.other") if kind == OTHER else kind_name(kind)
            name = plain_keys(elide_right(name, _NAME_CHARS))
            chip.setText(words.say("events.chip", name=name, count=words.count(number)))
        self._place()

    def show_all(self) -> None:
        """Switch every kind on."""
        for chip in self._chips.values():
            chip.setChecked(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _add(self, kind: str) -> QToolButton:
        chip = QToolButton(self)
        chip.setCheckable(True)
        chip.setChecked(True)
        chip.toggled.connect(lambda _: self.changed.emit(self._hidden()))
        chip.show()
        self._chips[kind] = chip
        return chip

    def _place(self) -> None:
        x = y = line = 0
        for chip in self._chips.values():
            size = chip.sizeHint()
            if x and x + size.width() > self.width():
                x, y, line = 0, y + line + _GAP, 0
            chip.setGeometry(x, y, size.width(), size.height())
            x, line = x + size.width() + _GAP, max(line, size.height())
        self.setFixedHeight(y + line)

    def _hidden(self) -> frozenset[str]:
        return frozenset(kind for kind, chip in self._chips.items() if not chip.isChecked())
