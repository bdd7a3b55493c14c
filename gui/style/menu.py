"""Menus whose separators can be seen in every palette."""

from __future__ import annotations

from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QApplication, QMenu

from gui.style.theme import is_dark, is_high_contrast

_INSET = 8  # Pixels at each end of a line


class Menu(QMenu):
    """Menu with a line of the palette at each separator.

    Fusion draws separators somewhat darker than the ground, which is hardly seen on dark grey and
    not at all on black.
    """

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        palette = QApplication.palette()
        if not is_dark(palette) and not is_high_contrast(palette):
            return
        painter = QPainter(self)
        painter.setPen(palette.color(QPalette.ColorRole.Mid))
        for action in filter(lambda one: one.isSeparator() and one.isVisible(), self.actions()):
            place = self.actionGeometry(action).adjusted(_INSET, 0, -_INSET, 0)
            painter.drawLine(place.topLeft(), place.topRight())
        painter.end()
