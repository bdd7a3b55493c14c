"""Tray icon with its menu, and restoring the window from the tray."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from engine.model.display import display
from engine.model.records import Health
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.desktop.bus import BusError
from gui.desktop.raise_window import come_forward
from gui.desktop.session_bus import SessionBus, method
from gui.style.icons import window_icon

LOOK_MS = 5000  # Longest time in ms that a hidden window stays hidden without a tray
SIGN_SIZES = (16, 22, 32, 44, 64)
ALERT = QColor(0xE0, 0x5A, 0x00)
_WATCHER = "org.kde.StatusNotifierWatcher"
_HAS_OWNER = method("org.freedesktop.DBus", "/org/freedesktop/DBus", "NameHasOwner")


class Tray(QObject):
    """Tray icon that shows running tasks and tasks that need attention.

    `quit_wanted` comes from its menu; `came_back` reports that a hidden window was shown because
    the tray disappeared.
    """

    quit_wanted = Signal()
    came_back = Signal()

    def __init__(self, ctx: WindowContext, bus: SessionBus) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._bus = ctx, bus
        self._running = self._attention = 0
        self._by_bus = False
        self._icon: QSystemTrayIcon | None = None
        self._menu = QMenu(ctx.parent)
        self._looking = QTimer(self, interval=LOOK_MS)
        self._looking.timeout.connect(self._look)
        ctx.bridge.health.connect(self._show_health)
        ctx.model.counts_changed.connect(self._show_counts)
        ctx.preferences.changed.connect(self._follow_preference)

    @property
    def available(self) -> bool:
        """True while a tray exists and the icon is enabled;

        checked each time, because trays disappear.
        """
        wanted = self._ctx.preferences.get("desktop.tray", bool)
        return wanted and QSystemTrayIcon.isSystemTrayAvailable()

    @property
    def icon(self) -> QSystemTrayIcon | None:
        """The tray icon, or None while it is disabled."""
        return self._icon

    def show(self) -> None:
        """Show the icon, or wait until a tray appears."""
        # Only on X11 may a tray appear later; elsewhere Qt waits in vain and logs a warning.
        may_come = QGuiApplication.platformName() == "xcb"
        wanted = self._ctx.preferences.get("desktop.tray", bool)
        if self._icon is not None or not (self.available or (wanted and may_come)):
            return
        self._fill_menu()
        self._icon = QSystemTrayIcon(self)
        self._icon.setContextMenu(self._menu)
        self._icon.activated.connect(self._act)
        self._redraw()
        self._icon.show()

    def hide(self) -> None:
        """Remove the icon before the window closes."""
        self._looking.stop()
        if self._icon is not None:
            self._icon.hide()
            self._icon.deleteLater()
            self._icon = None

    def hide_window(self) -> bool:
        """Hide the window; False without a tray icon to restore it from."""
        if not self.available or self._icon is None:
            return False
        self._ctx.parent.hide()
        self._bus.try_to(self._find_watcher, name="the tray's watcher")
        self._looking.start()
        return True

    def show_window(self) -> None:
        self._looking.stop()
        come_forward(self._ctx.parent)

    def _fill_menu(self) -> None:
        self._menu.clear()
        self._menu.addAction(self.tr("&Show the window")).triggered.connect(self.show_window)
        self._menu.addAction(self.tr("&New task…")).triggered.connect(self._new_task)
        self._menu.addSeparator()
        self._menu.addAction(self.tr("&Quit")).triggered.connect(self.quit_wanted)

    def _new_task(self) -> None:
        self.show_window()
        self._ctx.actions["new"].trigger()

    def _act(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason != QSystemTrayIcon.ActivationReason.Trigger or sys.platform == "darwin":
            return  # On macOS a click opens the menu
        if self._ctx.parent.isVisible() and not self._ctx.parent.isMinimized():
            self.hide_window()
        else:
            self.show_window()

    def _follow_preference(self, key: str) -> None:
        if key != "desktop.tray":
            return
        if self._ctx.preferences.get(key, bool):
            self.show()
            return
        self.hide()
        if not self._ctx.parent.isVisible():
            self.show_window()

    def _look(self) -> None:
        """Show the hidden window again when the tray disappears."""
        if self._ctx.parent.isVisible():
            self._looking.stop()
        elif not QSystemTrayIcon.isSystemTrayAvailable():
            self._come_back()
        elif self._by_bus:  # Qt checks the bus for a tray only once
            self._bus.try_to(self._find_watcher, name="the tray's watcher")

    async def _find_watcher(self) -> None:
        try:
            (there,) = await self._bus.call(_HAS_OWNER, "s", _WATCHER)
        except BusError:
            there = False
        gone, self._by_bus = self._by_bus and not there, bool(there)
        if gone and not self._ctx.parent.isVisible():
            self._come_back()

    def _come_back(self) -> None:
        self.show_window()
        self.came_back.emit()

    def _show_health(self, health: Health) -> None:
        if health.running != self._running:
            self._running = health.running
            self._redraw()

    def _show_counts(self, counts: dict[str, int]) -> None:
        if counts.get("attention", 0) != self._attention:
            self._attention = counts.get("attention", 0)
            self._redraw()

    def _redraw(self) -> None:
        if self._icon is not None:
            self._icon.setToolTip(self.words)
            self._icon.setIcon(_sign(self._attention > 0))

    @property
    def words(self) -> str:
        """The tool tip of the icon."""
        name = display(QGuiApplication.applicationDisplayName())
        lines = [name, self.tr("{0} running here").format(count(self._running))]
        if self._attention:
            lines.append(self.tr("{0} need attention").format(count(self._attention)))
        return "\n".join(lines)


def _sign(alert: bool) -> QIcon:
    """Return the program icon, with a dot for tasks that need attention."""
    whole = window_icon()
    if not alert:
        return whole
    found = QIcon()
    for size in SIGN_SIZES:
        pixmap = QPixmap(whole.pixmap(size, size))
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.GlobalColor.white)
        painter.setBrush(ALERT)
        radius = max(3, size // 5)
        painter.drawEllipse(QPoint(size - radius - 1, radius + 1), radius, radius)
        painter.end()
        found.addPixmap(pixmap)
    return found
