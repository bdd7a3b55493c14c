"""Session of one window on one ledger, until its engine has closed."""

from __future__ import annotations

import asyncio
import gc
import linecache
import logging
from pathlib import Path

from PySide6.QtCore import QObject, QTimer

from engine.model.config import Settings
from gui.context.preferences import Memory
from gui.desktop.integration import DesktopIntegration, QuitHandler
from gui.desktop.launch_request import Wish, come_forward, wish_in
from gui.engine_link.bridge import CLOSE_S, Bridge
from gui.settings.program_access import ProgramAccess
from gui.startup.crash_handler import CrashHandler
from gui.startup.window_builder import furnish
from gui.style.banners import Choice
from gui.style.theme import application
from gui.window.main_window import MainWindow

log = logging.getLogger(__name__)

# Delay after loading, because the browser's imports use the processor for a while.
WARM_AFTER_MS = 250
READ_WITHIN_MS = 10_000  # A missing ledger must not keep garbage collection disabled
PATIENCE_S = 3.0  # Added to the engine's own limit for closing


class Session(QObject):
    """Connect engine, bridge and window, and close them in order.

    With `accepts=False` nothing is written or started. A given `window` has its parts already.
    """

    def __init__(
        self,
        settings: Settings,
        memory: Memory,
        alarm: CrashHandler,
        *,
        accepts: bool = True,
        window: MainWindow | None = None,
    ) -> None:
        super().__init__()
        self._alarm, self._accepts = alarm, accepts
        self._ended: asyncio.Future[Path | None] = asyncio.get_running_loop().create_future()
        self._warming = QTimer(self, singleShot=True, interval=WARM_AFTER_MS)
        self._warming.timeout.connect(self._warm)
        self._warmed = False
        self._reading = QTimer(self, singleShot=True, interval=READ_WITHIN_MS)
        self._reading.timeout.connect(self._collect_lightly)
        self._reading.timeout.connect(self._warm_soon)
        self.window = window or _window_on(Bridge(settings, accepts=accepts), settings, memory)
        self.bridge = self.window.bridge
        context, remember = self.window.context, self.window.remember
        show_tasks, finish = self.window.arrivals.show_tasks, self.window.finish_quit
        leaving = QuitHandler(context, remember, finish)
        self._desktop = DesktopIntegration(context, leaving, show_tasks) if accepts else None
        if accepts:
            ProgramAccess(context)
        self.leaving = leaving
        self.leaving.left.connect(self._end)
        self.window.close_wanted.connect(self.leaving.close)
        self.window.quit_wanted.connect(self.leaving.quit)
        self.window.folder_wanted.connect(self.leaving.open_folder)
        self.bridge.broken.connect(alarm.ring)
        self.bridge.loaded.connect(self._collect_lightly)
        alarm.window, alarm.quit_wanted = self.window, lambda: self._end(None)

    def open(self, wish: Wish | None = None) -> None:
        """Show the window; the ledger and the browser are opened after the first paint."""
        gc.disable()  # Loading creates only objects that stay, so collections would find nothing
        linecache.clearcache()  # PySide reads the source of each imported module: 8 MB of text
        self._reading.start()
        if self._desktop is not None:
            self._desktop.show_first()
        else:
            self.window.show()
        application().commitDataRequest.connect(self._end_session)
        self.window.ledger_display.begin()
        QTimer.singleShot(0, self.bridge, self.bridge.open)
        if self._accepts:
            self.bridge.loaded.connect(self._warm_soon)
            self.bridge.opened.connect(self._reading.start)
        if wish is not None:
            self.window.arrivals.take(wish)

    async def ended(self) -> Path | None:
        """Wait until the user leaves, and return the folder to open next, if any."""
        return await self._ended

    async def close(self) -> None:
        """Close engine and window within about 5 s, keeping finished units."""
        self._alarm.window = None
        self._warming.stop()
        self._reading.stop()
        gc.enable()
        application().commitDataRequest.disconnect(self._end_session)
        self.window.setEnabled(False)
        if self._desktop is not None:
            self._desktop.close()
        try:
            async with asyncio.timeout(CLOSE_S + PATIENCE_S):
                await self.bridge.close()
        except TimeoutError:
            log.error("the engine did not close in time")
        self.window.hide()
        self.window.deleteLater()

    def called(self, message: object = None) -> None:
        """Handle the message of another program start."""
        self.take(wish_in(message))

    def take(self, wish: Wish) -> None:
        """Raise the window and handle the launch request."""
        come_forward(self.window, wish.token)
        self.window.arrivals.take(wish)

    def tell_of_crash(self) -> None:
        """Report a crash of the previous run; finished units were kept."""
        words = self.tr("What it had finished is kept. The log’s folder has what it left behind.")
        choice = Choice(self.tr("Open the log’s folder"), self.window.acts["log"].trigger)
        title = self.tr("The program ended unexpectedly the last time")
        self.window.news_bar.tell(title, words, (choice,))

    def _end_session(self, _: object) -> None:
        self.leaving.end_session()

    def _collect_lightly(self) -> None:
        """Enable garbage collection, except for the loaded rows (0.3 s at 100,000 tasks)."""
        if not gc.isenabled():
            self._reading.stop()
            linecache.clearcache()  # of the modules that were imported since
            gc.freeze()
            gc.enable()

    def _warm_soon(self) -> None:
        if not self._warmed:
            self._warmed = True
            self._warming.start()

    def _warm(self) -> None:
        if not self._ended.done() and not self.bridge.look_at_health().read_only:
            self.bridge.warm()

    def _end(self, folder: Path | None) -> None:
        if not self._ended.done():
            self._ended.set_result(folder)


def _window_on(bridge: Bridge, settings: Settings, memory: Memory) -> MainWindow:
    window = MainWindow(memory, root=str(settings.root))
    furnish(window, bridge)
    return window
