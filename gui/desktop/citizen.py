"""What makes a window a good citizen of its desktop, wired together: one per window."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from gui.desktop.awake import Awake, keeper_for
from gui.desktop.badge import Badge
from gui.desktop.forward import come_forward
from gui.desktop.leaving import Leaving
from gui.desktop.news import News
from gui.desktop.popups import Popup, Popups
from gui.desktop.session_bus import SessionBus
from gui.desktop.tray import Tray

if TYPE_CHECKING:
    from gui.main_window import MainWindow

SETTLE_MS = 600  # the tray comes after the first paint: asking for one may ask the desktop's bus


class Citizen(QObject):
    """Tray, pop-ups, no sleep, and how the window is left (`leaving`)."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._bus = SessionBus(window.bridge.spawn, self)
        self.tray = Tray(window, self._bus)
        self.leaving = Leaving(window, self.tray)
        self.awake = Awake(window, keeper_for(sys.platform, self._bus))
        self.popups = Popups(self._bus, lambda: self.tray.icon, self)
        self._badge = Badge(self._bus)
        self._settling = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settling.timeout.connect(self.tray.show)
        self._connect()

    def show_first(self) -> None:
        """Show the window for the first time, or not at all where that was chosen."""
        if not self._window.desk.preferences.get("desktop.start_hidden", bool):
            self._window.show()
            self._settling.start()
            return
        self.tray.show()
        if not self.tray.hide_window():
            self._window.showMinimized()

    def close(self) -> None:
        """Leave the desktop as it was."""
        self._settling.stop()
        self.tray.hide()
        self.awake.release()
        self._bus.close()

    def _connect(self) -> None:
        self.tray.quit_wanted.connect(self.leaving.quit)
        self.leaving.kept.connect(self._say_once)
        self.popups.clicked.connect(self._go)
        news = self._window.findChild(News)
        if news is not None:
            news.told.connect(self._tell)
            news.changed.connect(lambda: self._badge.show(news.unread))
        app = QApplication.instance()
        if sys.platform == "darwin" and isinstance(app, QApplication):
            app.applicationStateChanged.connect(self._come_back)

    def _tell(self, popup: Popup) -> None:
        self.popups.show(popup)
        QApplication.alert(self._window)  # the task bar's entry asks for attention

    def _go(self, task_ids: tuple[str, ...], token: str) -> None:
        come_forward(self._window, token)
        self._window.arrivals.show_tasks(task_ids)

    def _come_back(self, state: Qt.ApplicationState) -> None:
        """A click on the dock's sign, which is all that is left of a closed window on macOS."""
        if state == Qt.ApplicationState.ApplicationActive and not self._window.isVisible():
            come_forward(self._window)

    def _say_once(self) -> None:
        """The first time that a window goes into the tray it says where it went."""
        memory = self._window.memory
        if memory.flag("told-tray", False):
            return
        memory.keep_flag("told-tray", True)
        name = QGuiApplication.applicationDisplayName()
        title = self.tr("{0} goes on in the tray").format(name)
        body = self.tr("The settings can change this. You will not be told again.")
        self.popups.show(Popup(title, body))
