"""Desktop integration of one window: closing and quitting, tray, pop-ups, keep-awake.

Closing must work immediately. Parts that communicate with the desktop are loaded after the first
paint, which waits neither for their imports nor for the desktop.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication, QCheckBox

from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.desktop.launch_request import come_forward
from gui.style.questions import Question

if TYPE_CHECKING:
    from gui.desktop.awaited_ends import FinishThenQuit
    from gui.desktop.tray_presence import Presence, Tray


# Time between the session manager's save and quit requests; a log-out can be cancelled.
SESSION_END_S = 60.0
KEEP, FINISH, CANCEL, STAY = "keep", "finish", "cancel", "stay"


class QuitHandler(QObject):
    """Handle close and quit requests. `left` carries the folder to open next, or None.

    Running tasks are cancelled only after a question, or by a preference of the user.
    """

    left = Signal(object)
    kept = Signal()

    def __init__(
        self, ctx: WindowContext, remember: Callable[[], object], finish: FinishThenQuit
    ) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._finish = ctx, finish
        self._remember = remember
        self._tray: Callable[[], Tray | None] = lambda: None
        finish.wanted.connect(finish.begin)
        finish.finished.connect(lambda: self.left.emit(None))
        self._preferences = ctx.preferences
        self._question: Question | None = None
        self._always: QCheckBox | None = None
        self._session_ends_at = 0.0

    def use_tray(self, tray: Callable[[], Tray | None]) -> None:
        """Offer to hide the window in this tray, where there is one."""
        self._tray = tray

    def close(self) -> None:
        """Handle the close button: hide the window if configured, otherwise quit."""
        hides = self._preferences.get("desktop.close_to_tray", bool)
        if self._question is None and hides and self._keep():
            return
        if sys.platform == "darwin" and self._question is None:
            self._ctx.parent.hide()  # On macOS the program keeps running with its dock icon
            return
        self.quit()

    def quit(self) -> None:
        """End the program, after a question if tasks of this window would be cancelled."""
        self._leave(None)

    def open_folder(self, folder: Path) -> None:
        """Close the window to open another ledger."""
        self._leave(folder)

    def end_session(self) -> None:
        """Prepare for the end of the desktop session, where no question can be answered.

        Finished units of running tasks are on disk already; the tasks are cancelled in order.
        """
        self._session_ends_at = time.monotonic() + SESSION_END_S
        self._remember()
        if self._question is not None:
            self._question.reject()

    def obey(self) -> None:
        """Handle the desktop's request to quit."""
        if time.monotonic() < self._session_ends_at:
            self.left.emit(None)
        else:
            self.quit()

    def _leave(self, folder: Path | None) -> None:
        if self._question is not None:
            come_forward(self._ctx.parent)
            return
        running = len(self._ctx.bridge.own_tasks)
        chosen = self._preferences.get("desktop.quit_with_tasks", str)
        if not running or (chosen == CANCEL and folder is None):
            self.left.emit(folder)
        elif chosen == KEEP and folder is None and self._keep():
            return
        elif chosen == FINISH and folder is None and self._may_finish:
            self._finish.begin()
        else:
            self._ask(running, folder)

    def _ask(self, running: int, folder: Path | None) -> None:
        come_forward(self._ctx.parent)
        question = self._question = Question(self._ctx.parent)
        headline = (
            self.tr("1 task of this window is still running.")
            if running == 1
            else self.tr("{0} tasks of this window are still running.").format(count(running))
        )
        title, leave, stay = self._words_for(folder)
        question.ask(title, headline)
        question.add_text(self.tr("Cancelled tasks keep their finished pages."))
        if folder is None:
            self._offer_more(question)
        question.add_button(CANCEL, leave, destroys=True)
        question.add_button(STAY, stay, default=True)
        question.when_answered(lambda answer: self._act(answer, folder))
        question.open()

    def _offer_more(self, question: Question) -> None:
        """Add the options of quitting: finish first, keep running in the tray, and skip the
        question."""
        self._always = QCheckBox(self.tr("Do this &every time; the settings can change it"))
        question.body.addWidget(self._always)
        if self._may_finish:
            question.add_button(FINISH, self.tr("Finish them, then quit"))
        tray = self._tray()
        if tray is not None and tray.available:
            question.add_button(KEEP, self.tr("Keep running in background"))

    def _words_for(self, folder: Path | None) -> tuple[str, str, str]:
        """Return the title and two answers, for quitting or for opening another folder."""
        if folder is None:
            return self.tr("Quit"), self.tr("Cancel tasks and quit"), self.tr("Don’t quit")
        leave = self.tr("Cancel tasks and open it")
        return self.tr("Open another folder"), leave, self.tr("Stay here")

    def _act(self, answer: str, folder: Path | None) -> None:
        always = self._always is not None and self._always.isChecked()
        if self._question is not None:
            self._question.deleteLater()
        self._question = self._always = None
        if always and answer in (KEEP, FINISH, CANCEL):
            self._preferences.set("desktop.quit_with_tasks", answer)
        if answer == CANCEL:
            self.left.emit(folder)
        elif answer == KEEP:
            self._keep()
        elif answer == FINISH:
            self._finish.begin()
        elif answer == STAY and folder is None:
            self._finish.stop()  # also a quit that waits for the running tasks

    @property
    def _may_finish(self) -> bool:
        return self._finish.running > 0 and not self._finish.is_active

    def _keep(self) -> bool:
        """Hide the window in the tray; False without one, as the window would be unreachable."""
        tray = self._tray()
        if tray is None or not tray.hide_window():
            return False
        self.kept.emit()
        return True


# Delays after the list is loaded, and at most after the window is shown.
SETTLE_MS, LATEST_MS = 600, 5000


class DesktopIntegration(QObject):
    """Closing of the window (`leaving`), and other integration soon after the first paint."""

    def __init__(
        self,
        ctx: WindowContext,
        leaving: QuitHandler,
        show_tasks: Callable[[tuple[str, ...]], object],
    ) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._show_tasks = show_tasks
        self._presence: Presence | None = None
        self._closed = False
        self.leaving = leaving
        leaving.use_tray(self._find_tray)
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
        # The import would block the window for 0.1 s.
        await asyncio.to_thread(import_module, "gui.desktop.tray_presence")
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
