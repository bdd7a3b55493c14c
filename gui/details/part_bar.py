"""Notice above a list that it is filtered by time or position, with a way back."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from engine.text.words import clock, took
from gui.style.labels import ElidedLabel


class PartBar(QWidget):
    """Notice of a partial list, hidden while all rows are shown.

    `back` requests the newest events, `all_time` removes the time range.
    """

    back = Signal()
    all_time = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.is_place = False
        self._span: tuple[float, float] | None = None
        self._told = ElidedLabel("warning", self)
        self._all = QPushButton(self.tr("Show all"), self)
        self._back = QPushButton(self.tr("Back to the newest"), self)
        self._all.clicked.connect(self.all_time)
        self._back.clicked.connect(self.back)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 0, 0)
        row.addWidget(self._told, 1)
        row.addWidget(self._all)
        row.addWidget(self._back)
        self._show_state()

    def show_place(self, shown: bool) -> None:
        """Set whether only events around one position are loaded."""
        self.is_place = shown
        self._show_state()

    def show_span(self, span: tuple[float, float] | None) -> None:
        """Set the shown time range (ms since 1970); None: all."""
        self._span = span
        self._show_state()

    def _show_state(self) -> None:
        self.setVisible(self.is_place or self._span is not None)
        self._all.setVisible(self._span is not None)
        self._back.setVisible(self.is_place)
        self._told.show_text(self._words())

    def _words(self) -> str:
        if self._span is None:
            return self.tr("Only events around one place of the file are shown.")
        start, end = self._span
        said = self.tr("Only from {0} to {1} ({2}).")
        return said.format(clock(start, end), clock(end, end), took(end - start))
