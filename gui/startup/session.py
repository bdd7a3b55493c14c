"""One window on one ledger, from its first paint to the end of its engine."""

from __future__ import annotations

import asyncio
import gc
import logging
from pathlib import Path

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from engine.model.config import Settings
from gui.desktop.integration import Citizen
from gui.desktop.launch_request import Wish, wish_in
from gui.desktop.quitting import Leaving
from gui.desktop.raise_window import come_forward
from gui.engine_link.bridge import CLOSE_S, Bridge
from gui.startup.crash_handler import Alarm
from gui.startup.window_builder import furnish
from gui.state.window_state import Memory
from gui.style.banners import Choice
from gui.window.main_window import MainWindow

log = logging.getLogger(__name__)

WARM_AFTER_MS = 250  # after the list is read: the browser's imports take the processor for a while
READ_WITHIN_MS = 10_000  # a ledger that is not there yet must not keep memory from being tidied
PATIENCE_S = 3.0  # beyond the engine's own time to close, before it is left to the system


class Session(QObject):
    """Wires engine, bridge and window together, and takes them apart in order.

    `accepts=False` only looks: nothing is written, nothing can be started. A `window` that is
    furnished already is used as it is.
    """

    def __init__(
        self,
        settings: Settings,
        memory: Memory,
        alarm: Alarm,
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
        self._citizen = Citizen(self.window) if accepts else None
        self.leaving = (
            self._citizen.leaving if self._citizen else Leaving(self.window, lambda: None)
        )
        self.leaving.left.connect(self._end)
        self.window.close_wanted.connect(self.leaving.close)
        self.window.quit_wanted.connect(self.leaving.quit)
        self.window.folder_wanted.connect(self.leaving.open_folder)
        self.bridge.broken.connect(alarm.ring)
        self.window.loaded.connect(self._collect_lightly)
        alarm.window, alarm.quit_wanted = self.window, lambda: self._end(None)

    def open(self, wish: Wish | None = None) -> None:
        """Show the window at once; the ledger and the browser come after its first paint."""
        gc.disable()  # all that the first reading makes is kept: collecting finds nothing there
        self._reading.start()
        if self._citizen is not None:
            self._citizen.show_first()
        else:
            self.window.show()
        _application().commitDataRequest.connect(self._end_session)
        self.window.beside.begin()
        QTimer.singleShot(0, self.bridge, self.bridge.open)
        if self._accepts:
            self.window.loaded.connect(self._warm_soon)
            self.bridge.opened.connect(self._reading.start)
        if wish is not None:
            self.window.arrivals.take(wish)

    async def ended(self) -> Path | None:
        """Wait until the user leaves; the folder to open next, if that is why."""
        return await self._ended

    async def close(self) -> None:
        """End what runs here, keeping what is finished; about 5 s at most."""
        self._alarm.window = None
        self._warming.stop()
        self._reading.stop()
        gc.enable()
        _application().commitDataRequest.disconnect(self._end_session)
        self.window.setEnabled(False)
        if self._citizen is not None:
            self._citizen.close()
        try:
            async with asyncio.timeout(CLOSE_S + PATIENCE_S):
                await self.bridge.close()
        except TimeoutError:
            log.error("the engine did not close in time")
        self.window.hide()
        self.window.deleteLater()

    def called(self, message: object = None) -> None:
        """Another start of the program handed over to this window."""
        self.take(wish_in(message))

    def take(self, wish: Wish) -> None:
        """Come forward and do what was asked for."""
        come_forward(self.window, wish.token)
        self.window.arrivals.take(wish)

    def tell_of_crash(self) -> None:
        """The program died the last time: what it ran was cut off, what it had finished is kept."""
        words = self.tr("What it had finished is kept. The log’s folder has what it left behind.")
        choice = Choice(self.tr("Open the log’s folder"), self.window.acts["log"].trigger)
        title = self.tr("The program ended unexpectedly the last time")
        self.window.news_bar.tell(title, words, (choice,))

    def _end_session(self, _: object) -> None:
        self.leaving.end_session()

    def _collect_lightly(self) -> None:
        """Collect garbage again, without looking at what was read: 0.3 s at 100,000 tasks."""
        if not gc.isenabled():
            self._reading.stop()
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


def _application() -> QApplication:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app
