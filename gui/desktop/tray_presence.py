"""What a window shows of itself on the desktop: a sign in the tray, pop-ups, a number, no sleep."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from gui.desktop.badge import Badge
from gui.desktop.keep_awake import Awake, keeper_for
from gui.desktop.notification_rules import Popup
from gui.desktop.notifications import News
from gui.desktop.popups import Popups
from gui.desktop.raise_window import come_forward
from gui.desktop.session_bus import SessionBus
from gui.desktop.tray import Tray

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow


class Presence(QObject):
    """One for each window; all of it talks over one line to the desktop's bus."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._bus = SessionBus(window.bridge.spawn, self)
        self.tray = Tray(window, self._bus)
        self._awake = Awake(window, keeper_for(sys.platform, self._bus))
        self._popups = Popups(self._bus, lambda: self.tray.icon, self)
        self._badge = Badge(self._bus)
        self._popups.clicked.connect(self._go)
        news = window.findChild(News)
        if news is not None:
            news.told.connect(self._tell)
            news.changed.connect(lambda: self._badge.show(news.unread))
        self._awake.show_health(window.bridge.look_at_health())

    def say_once(self) -> None:
        """The first time that a window goes into the tray it says where it went."""
        memory = self._window.memory
        if memory.flag("told-tray", False):
            return
        memory.keep_flag("told-tray", True)
        name = QGuiApplication.applicationDisplayName()
        title = self.tr("{0} goes on in the tray").format(name)
        body = self.tr("The settings can change this. You will not be told again.")
        self._popups.show(Popup(title, body))

    def close(self) -> None:
        """Take the sign away, allow sleep, hang up."""
        self.tray.hide()
        self._awake.release()
        self._bus.close()

    def _tell(self, popup: Popup) -> None:
        self._popups.show(popup)
        QApplication.alert(self._window)  # the task bar's entry asks for attention

    def _go(self, task_ids: tuple[str, ...], token: str) -> None:
        come_forward(self._window, token)
        self._window.arrivals.show_tasks(task_ids)
