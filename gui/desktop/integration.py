"""What makes a window a good citizen of its desktop, wired together: one per window.

Leaving must work at once. What talks with the desktop comes after the first paint, which
waits neither for its imports nor for the desktop's answers.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from gui.desktop.quitting import Leaving
from gui.desktop.raise_window import come_forward

if TYPE_CHECKING:
    from gui.desktop.tray import Tray
    from gui.desktop.tray_presence import Presence
    from gui.window.main_window import MainWindow

SETTLE_MS, LATEST_MS = 600, 5000  # after the list is read; after the window is there


class Citizen(QObject):
    """How the window is left (`leaving`), and from soon after its first paint the rest."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._presence: Presence | None = None
        self._closed = False
        self.leaving = Leaving(window, self._find_tray)
        self.leaving.kept.connect(self._say_where)
        self._settling = QTimer(self, singleShot=True, interval=LATEST_MS)
        self._settling.timeout.connect(self._arrive)
        window.loaded.connect(self._settle_soon)
        app = QApplication.instance()
        if sys.platform == "darwin" and isinstance(app, QApplication):
            app.applicationStateChanged.connect(self._come_back)

    @property
    def presence(self) -> Presence:
        """Tray, pop-ups and what keeps the machine awake; made when first asked for."""
        if self._presence is None:
            from gui.desktop.tray_presence import Presence

            self._presence = Presence(self._window)
            self._presence.tray.quit_wanted.connect(self.leaving.quit)
        return self._presence

    def show_first(self) -> None:
        """Show the window for the first time, or not at all where that was chosen."""
        if not self._window.desk.preferences.get("desktop.start_hidden", bool):
            self._window.show()
            self._settling.start()
            return
        self._settle()
        if not self.presence.tray.hide_window():
            self._window.showMinimized()

    def close(self) -> None:
        """Leave the desktop as it was."""
        self._closed = True
        self._settling.stop()
        if self._presence is not None:
            self._presence.close()

    def _settle_soon(self) -> None:
        """The list is read, so the processor has time for what nobody waits for."""
        if self._settling.isActive() and self._settling.interval() != SETTLE_MS:
            self._settling.start(SETTLE_MS)

    def _arrive(self) -> None:
        self._window.bridge.spawn(self._import_and_settle(), name="arrive on the desktop")

    async def _import_and_settle(self) -> None:
        await asyncio.to_thread(
            import_module, "gui.desktop.tray_presence"
        )  # 0.1 s of a frozen window
        if not self._closed:
            self._settle()

    def _settle(self) -> None:
        self.presence.tray.show()

    def _say_where(self) -> None:
        self.presence.say_once()

    def _find_tray(self) -> Tray | None:
        return None if self._closed else self.presence.tray

    def _come_back(self, state: Qt.ApplicationState) -> None:
        """A click on the dock's sign, which is all that is left of a closed window on macOS."""
        active = state == Qt.ApplicationState.ApplicationActive
        if active and not self._closed and not self._window.isVisible():
            come_forward(self._window)
