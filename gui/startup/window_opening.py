"""Opening of one window: first paint, loading of its parts, and early requests.

Importing the parts takes far longer than painting the frame, so a thread imports them and they are
created in steps, while the window can be moved and closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.model.config import Settings
from gui.desktop.launch_request import Wish, here, wish_in, wish_of
from gui.desktop.raise_window import come_forward
from gui.engine_link.background import TaskSet
from gui.startup.crash_handler import CrashHandler
from gui.state.preferences import Preferences
from gui.state.window_state import Memory
from gui.window.main_window import MainWindow

if TYPE_CHECKING:
    from gui.startup.session import Session

PAINT_S = 0.5  # A covered window is never painted, and must not be waited for


class WindowOpening(QObject):
    """Handle requests to a window that is loading; `broken` is set when that fails."""

    def __init__(self, window: MainWindow, settings: Settings, alarm: CrashHandler) -> None:
        super().__init__()
        self.window, self._settings, self._alarm = window, settings, alarm
        self._session: Session | None = None
        self._wish: Wish | None = None
        self._settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._painted = asyncio.Event()
        self._first: list[Callable[[], object]] = []
        self._next: list[Callable[[], object]] = []
        self._work = TaskSet(self._fail)
        window.painted.connect(self._painted.set)
        window.close_wanted.connect(self._settle)
        alarm.window, alarm.quit_wanted = window, self._settle
        self.broken = False

    @classmethod
    def on(
        cls, settings: Settings, memory: Memory, preferences: Preferences, alarm: CrashHandler
    ) -> WindowOpening:
        """Create a window on the ledger of `settings`."""
        return cls(MainWindow(memory, preferences, str(settings.root)), settings, alarm)

    def show(self) -> None:
        """Show the window, unless it is configured to start hidden."""
        if not self.window.preferences.get("desktop.start_hidden", bool):
            self.window.show()

    def when_painted(self, act: Callable[[], object]) -> None:
        """Call `act` after the first paint, before the parts are imported."""
        self._first.append(act)

    def when_imported(self, act: Callable[[], object]) -> None:
        """Call `act` on the event loop before the first part is created, after the imports."""
        self._next.append(act)

    async def ended(self, wish: Wish, *, crashed: bool) -> Path | None:
        """Load the window, handle the launch request, and wait until the user leaves.

        Returns the folder to open next, if any. `crashed` reports a crash of the previous run.
        """
        session = await self._furnished()
        if session is None:
            return None
        if crashed:
            session.tell_of_crash()
        session.open(wish)
        if self._wish is not None:
            session.take(self._wish)
        return await session.ended()

    async def close(self) -> None:
        """Save the window state and close the session."""
        self.window.remember()
        if self._session is not None:
            await self._session.close()
            return
        self._alarm.window = None
        self.window.hide()
        self.window.deleteLater()

    def called(self, message: object = None) -> None:
        """Handle the message of another program start."""
        self._take(wish_in(message))

    def open_address(self, address: str) -> None:
        """Open an address sent by the desktop (macOS)."""
        self._take(wish_of([address], here()))

    def obey(self) -> None:
        """Handle the desktop's request to quit."""
        if self._session is not None:
            self._session.leaving.obey()
        else:
            self._settle()

    def _take(self, wish: Wish) -> None:
        if self._session is not None:
            self._session.take(wish)
        else:
            come_forward(self.window, wish.token)
            self._wish = wish

    async def _furnished(self) -> Session | None:
        """Return the session, or None if the window was closed or failed to load."""
        self._work.spawn(self._furnish(), name="furnish the window")
        try:
            await self._settled
        finally:
            await self._work.close()
        return self._session

    def _fail(self, error: Exception) -> None:
        """Report the error and keep the window open for it."""
        self.broken = True
        self._alarm.ring(error)
        from gui.startup.failure_reports import show_broken

        if not self.window.furnished:
            show_broken(self.window, error, self._settle)

    async def _furnish(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PAINT_S if self.window.isVisible() else 0):
                await self._painted.wait()
        for act in self._first:
            act()
        await asyncio.to_thread(import_module, "gui.startup.session")
        from gui.commands.help_actions import as_chosen
        from gui.engine_link.bridge import Bridge
        from gui.startup.failure_reports import BrokenParts
        from gui.startup.session import Session
        from gui.startup.window_builder import furnishing

        window = self.window
        for act in self._next:
            act()
        settings = as_chosen(self._settings, window.preferences)
        parts = BrokenParts(window)
        for _ in furnishing(window, Bridge(settings), parts.note):
            await asyncio.sleep(0)  # Qt processes events
        parts.tell(lambda bar: window.insert_bar(bar, after=window.banner))
        window.close_wanted.disconnect(self._settle)
        self._session = Session(settings, window.memory, self._alarm, window=window)
        self._settle()

    def _settle(self) -> None:
        if not self._settled.done():
            self._settled.set_result(None)
