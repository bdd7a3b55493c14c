"""A button that reads like a link: a lesser way on beside the real buttons."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QPushButton, QWidget


class LinkButton(QPushButton):
    """Flat and in the colour of links, also after the theme has changed."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setFlat(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._colour()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()

    def _colour(self) -> None:
        palette = self.palette()
        colour = QApplication.palette().color(QPalette.ColorRole.Link)
        if palette.color(QPalette.ColorRole.ButtonText) != colour:
            palette.setColor(QPalette.ColorRole.ButtonText, colour)
            self.setPalette(palette)
