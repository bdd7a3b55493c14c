"""The number on the program's sign in a dock or task bar, where it can carry one."""

from __future__ import annotations

import sys

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from gui.desktop.bus import Message, Variant
from gui.desktop.session_bus import SessionBus

_FACE = "com.canonical.Unity.LauncherEntry"  # Ubuntu's dock, KDE's task bar, Dash to Dock, Plank


class Badge:
    """On Linux by our own signal: Qt 6.11 makes an invalid path of a name with a dash in it."""

    def __init__(self, bus: SessionBus) -> None:
        self._bus = bus
        self._number = 0

    def show(self, number: int) -> None:
        """Show `number`; nothing for 0."""
        if number == self._number:
            return
        self._number = number
        platform: str = sys.platform  # mypy judges a platform by the machine it runs on
        if platform.startswith("linux"):
            self._bus.try_to(self._tell, name="the badge")
            return
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.setBadgeNumber(number)

    async def _tell(self) -> None:
        number = self._number
        shown = {"count": Variant("x", number), "count-visible": Variant("b", number > 0)}
        entry = f"application://{QGuiApplication.desktopFileName()}.desktop"
        path = "/" + _FACE.replace(".", "/")
        await self._bus.tell(
            Message(
                path=path,
                interface=_FACE,
                member="Update",
                signature="sa{sv}",
                body=(entry, shown),
            )
        )
