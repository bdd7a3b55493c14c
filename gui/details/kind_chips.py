"""Filter chips by kind of row, with counts; none checked means all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from engine.text.words import count
from gui.style.theme import plain_keys


class KindChips(QWidget):
    """Row of filter chips; `changed` carries the checked kinds. Kinds without rows are hidden."""

    changed = Signal(object)

    def __init__(
        self, order: Sequence[str], word: Callable[[str], str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._word, self._order = word, tuple(order)
        self._chips: dict[str, QToolButton] = {}
        self.setAccessibleName(self.tr("Which rows are shown"))
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(4)
        for kind in self._order:
            self._add(kind)

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset(kind for kind, chip in self._chips.items() if chip.isChecked())

    def clear(self) -> None:
        """Uncheck all chips for another task."""
        for chip in self._chips.values():
            chip.blockSignals(True)
            chip.setChecked(False)
            chip.blockSignals(False)

    def show_counts(self, kinds: Mapping[str, int]) -> None:
        for kind, chip in self._chips.items():
            number = kinds.get(kind, 0)
            text = self.tr("{0} ({1})").format(self._word(kind), count(number))
            chip.setText(plain_keys(text))
            chip.setVisible(number > 0 or chip.isChecked())

    def _add(self, kind: str) -> None:
        chip = QToolButton(self)
        chip.setCheckable(True)
        chip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        chip.toggled.connect(lambda _: self.changed.emit(self.wanted))
        chip.hide()
        self._row.addWidget(chip)
        self._chips[kind] = chip
