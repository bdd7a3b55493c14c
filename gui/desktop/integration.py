"""Desktop integration of one window: closing, tray, pop-ups, keep-awake.

Closing must work immediately. Parts that communicate with the desktop are loaded after the first
paint, which waits neither for their imports nor for the desktop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from gui.context.window_context import WindowContext
from gui.desktop.quitting import QuitHandler
from gui.desktop.raise_window import come_forward

if TYPE_CHECKING:
    from gui.desktop.tray_presence import Presence, Tray

# Delays after the list is loaded, and at most after the window is shown.
SETTLE_MS, LATEST_MS = 600, 5000


class DesktopIntegration(QObject):
    """Closing of the window (`leaving`), and other integration soon after the first paint."""

    def __init__(
        self,
        ctx: WindowContext,
        remember: Callable[[], object],
        show_tasks: Callable[[tuple[str, ...]], object],
    ) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._show_tasks = show_tasks
        self._presence: Presence | None = None
        self._closed = False
        self.leaving = QuitHandler(ctx, remember, self._find_tray)
        self.leaving.kept.connect(self._say_where)
        self._settling = QTimer(self, singleShot=True, interval=LATEST_MS)
        self._settling.timeout.connect(self._arrive)
        ctx.bridge.loaded.connect(self._settle_soon)
        app = QApplication.instance()
        if sys.platform == "darwin" and isinstance(app, QApplication):
            app.applicationStateChanged.connect(self._come_back)

    @property
    def presence(self) -> Presence:
        """The tray icon, pop-ups and keep-awake, created on first use."""
        if self._presence is None:
            from gui.desktop.tray_presence import Presence

            self._presence = Presence(self._ctx, self._show_tasks)
            self._presence.tray.quit_wanted.connect(self.leaving.quit)
        return self._presence

    def show_first(self) -> None:
        """Show the window at the start, or keep it hidden if the user chose so."""
        if not self._ctx.preferences.get("desktop.start_hidden", bool):
            self._ctx.parent.show()
            self._settling.start()
            return
        self._settle()
        if not self.presence.tray.hide_window():
            self._ctx.parent.showMinimized()

    def close(self) -> None:
        """Remove the tray icon and release all desktop requests."""
        self._closed = True
        self._settling.stop()
        if self._presence is not None:
            self._presence.close()

    def _settle_soon(self) -> None:
        """Start the integration soon after the list is loaded."""
        if self._settling.isActive() and self._settling.interval() != SETTLE_MS:
            self._settling.start(SETTLE_MS)

    def _arrive(self) -> None:
        self._ctx.bridge.spawn(self._import_and_settle(), name="arrive on the desktop")

    async def _import_and_settle(self) -> None:
        await asyncio.to_thread(
            import_module, "gui.desktop.tray_presence"
        )  # The import would block the window for 0.1 s
        if not self._closed:
            self._settle()

    def _settle(self) -> None:
        self.presence.tray.show()

    def _say_where(self) -> None:
        self.presence.say_once()

    def _find_tray(self) -> Tray | None:
        return None if self._closed else self.presence.tray

    def _come_back(self, state: Qt.ApplicationState) -> None:
        """Show the window again on a click on the dock icon (macOS)."""
        active = state == Qt.ApplicationState.ApplicationActive
        if active and not self._closed and not self._ctx.parent.isVisible():
            come_forward(self._ctx.parent)
