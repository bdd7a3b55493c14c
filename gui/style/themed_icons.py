"""Signs on buttons that follow the theme, also in a dialog that is open when it changes."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QAbstractButton

from gui.style.icons import icon


def wear(button: QAbstractButton, name: str) -> None:
    """Put the sign called `name` on `button`, now and in whatever colours come later."""
    worn = button.findChild(_Worn) or _Worn(button)
    worn.put(name)


class _Worn(QObject):
    """Draws it anew with every palette."""

    def __init__(self, button: QAbstractButton) -> None:
        super().__init__(button)
        self._button, self._name = button, ""
        button.installEventFilter(self)

    def put(self, name: str) -> None:
        self._name = name
        self._button.setIcon(icon(name))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.PaletteChange:
            self.put(self._name)
        return False
