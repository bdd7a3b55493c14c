"""Button that looks like a link, for secondary actions."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import QApplication, QPushButton, QSizePolicy, QWidget

from gui.style.theme import plain_tip

MARGIN = 16  # Pixels of a button around its text


class LinkButton(QPushButton):
    """Flat button in the link colour, also after a theme change."""

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


class ElidedLink(LinkButton):
    """One-line link that elides its text and keeps the full text as tool tip."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._whole = ""
        self.setAutoDefault(False)
        self.setStyleSheet("text-align: left")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    @property
    def whole(self) -> str:
        """The full text."""
        return self._whole

    def show_text(self, text: str) -> None:
        self._whole = " ".join(text.split())
        self.setAccessibleName(self._whole)
        self.setToolTip(plain_tip(text) if text else "")
        self._elide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        room = max(self.width() - MARGIN, 0)
        shown = self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, room)
        self.setText(shown.replace("&", "&&"))
