"""Button icons that follow the theme, also in open dialogs."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QAbstractButton

from gui.style.icons import icon


def wear(button: QAbstractButton, name: str) -> None:
    """Set the icon `name` on `button`, also after palette changes."""
    worn = button.findChild(_Worn) or _Worn(button)
    worn.put(name)


class _Worn(QObject):
    """Redraw the icon after each palette change."""

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
