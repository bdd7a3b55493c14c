"""The bell in the status bar: how many notices nobody has seen yet."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QToolButton, QWidget

from engine.text.words import count
from gui.style.icons import icon
from gui.style.theme import plain_tip

MOST_SHOWN = 99


class Bell(QToolButton):
    """Opens the list of news; says its number in words as well."""

    def __init__(self, action: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(action.trigger)
        self.show_number(0)
        self._draw()

    def show_number(self, number: int) -> None:
        """Show how many are new; without any it is only a sign."""
        style = Qt.ToolButtonStyle
        self.setToolButtonStyle(
            style.ToolButtonTextBesideIcon if number else style.ToolButtonIconOnly
        )
        self.setText(count(number) if number <= MOST_SHOWN else f"{MOST_SHOWN}+")
        if not number:
            said = self.tr("No new notices")
        elif number == 1:
            said = self.tr("1 new notice")
        else:
            said = self.tr("{0} new notices").format(count(number))
        self.setAccessibleName(said)
        self.setToolTip(plain_tip(said))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()

    def _draw(self) -> None:
        self.setIcon(icon("bell"))
