"""Tray icon, desktop notifications, badge and keep-awake of one window."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QApplication, QSystemTrayIcon

from engine.model.display import display, display_lines
from engine.model.records import Health
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.desktop.bus import BusError, Message, SessionBus, Variant, method
from gui.desktop.keep_awake import KeepAwake, keeper_for
from gui.desktop.launch_request import come_forward
from gui.desktop.notifications import Popup
from gui.style.icons import window_icon
from gui.style.menu import Menu
from gui.style.theme import application

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
        self._menu = Menu(ctx.parent)
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
        self._menu.addActions(self._ctx.actions.known(("hold", "finish_quit")))
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


# Desktop notifications over D-Bus, or as a message of the tray icon.

TITLE_CHARS, BODY_CHARS = 120, 500
SHOWN_MS = 10_000
_SERVICE, _PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
_NOTIFY = method(_SERVICE, _PATH, "Notify")
_ABLE = method(_SERVICE, _PATH, "GetCapabilities")
_MOST_KEPT = 100
_CALM, _URGENT = 1, 2


class Popups(QObject):
    """Show notifications; `clicked` carries the tasks and the activation token."""

    clicked = Signal(tuple, str)

    def __init__(
        self, bus: SessionBus, tray: Callable[[], QSystemTrayIcon | None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bus, self._tray = bus, tray
        self._shown: dict[int, tuple[str, ...]] = {}
        self._tokens: dict[int, str] = {}
        self._able: list[str] | None = None
        self._last: tuple[str, ...] = ()
        self._joined: QSystemTrayIcon | None = None

    def show(self, popup: Popup) -> None:
        """Show a notification; without desktop support only the history in the window has it."""
        self._bus.try_to(lambda: self._show(popup), name="a pop-up")

    async def _show(self, popup: Popup) -> None:
        try:
            await self._notify(popup)
        except BusError:
            self._show_beside_tray(popup)

    async def _notify(self, popup: Popup) -> None:
        """Notify over D-Bus. Raises BusError."""
        able = await self._abilities()
        body = display_lines(popup.body, BODY_CHARS)
        if "body-markup" in able:  # Without this capability `&lt;` would be shown literally
            body = html.escape(body, quote=False)
        hints = {
            "desktop-entry": Variant("s", QGuiApplication.desktopFileName()),
            "urgency": Variant("y", _URGENT if popup.urgent else _CALM),
            "suppress-sound": Variant("b", not popup.sound),
        }
        (number,) = await self._bus.call(
            *(_NOTIFY, "susssasa{sv}i", QGuiApplication.applicationDisplayName(), 0),
            *(QGuiApplication.desktopFileName(), display(popup.title, TITLE_CHARS), body),
            *(["default", self.tr("Show")] if popup.task_ids else [], hints, -1),
        )
        self._shown[number] = popup.task_ids
        while len(self._shown) > _MOST_KEPT:
            self._shown.pop(next(iter(self._shown)))

    async def _abilities(self) -> list[str]:
        """Return the capabilities of the service, which starts it. Raises BusError."""
        if self._able is None:
            for member, hear in (
                ("ActionInvoked", self._take_click),
                ("ActivationToken", self._take_token),
                ("NotificationClosed", self._take_end),
            ):
                signal = Message(sender=_SERVICE, interface=_SERVICE, member=member)
                await self._bus.listen(signal, hear)
            (self._able,) = await self._bus.call(_ABLE)
        return self._able

    def _take_token(self, signal: Message) -> None:
        if signal.body[0] in self._shown:  # The token arrives before its click
            self._tokens[signal.body[0]] = signal.body[1]

    def _take_click(self, signal: Message) -> None:
        number = signal.body[0]
        if number in self._shown:
            self.clicked.emit(self._shown[number], self._tokens.pop(number, ""))

    def _take_end(self, signal: Message) -> None:
        self._shown.pop(signal.body[0], None)
        self._tokens.pop(signal.body[0], None)

    def _show_beside_tray(self, popup: Popup) -> None:
        tray = self._tray()
        if tray is None or not QSystemTrayIcon.supportsMessages():
            return
        if tray is not self._joined:
            self._joined = tray
            tray.messageClicked.connect(lambda: self.clicked.emit(self._last, ""))
        self._last = popup.task_ids
        signs = QSystemTrayIcon.MessageIcon
        sign = signs.Warning if popup.urgent else signs.Information
        title, body = display(popup.title, TITLE_CHARS), display_lines(popup.body, BODY_CHARS)
        tray.showMessage(title, body, sign, SHOWN_MS)


# Badge on the program icon in a dock or task bar.

_FACE = "com.canonical.Unity.LauncherEntry"  # Ubuntu's dock, KDE's task bar, Dash to Dock, Plank


class Badge:
    """Badge on the program icon.

    On Linux this sends the signal itself, because Qt 6.11 builds an invalid path of a name with a
    dash.
    """

    def __init__(self, bus: SessionBus) -> None:
        self._bus = bus
        self._number = 0

    def show(self, number: int) -> None:
        """Show `number`, or no badge for 0."""
        if number == self._number:
            return
        self._number = number
        # The annotation keeps mypy from narrowing to the current platform.
        platform: str = sys.platform
        if platform.startswith("linux"):
            self._bus.try_to(self._tell, name="the badge")
        else:
            application().setBadgeNumber(number)

    async def _tell(self) -> None:
        number = self._number
        shown = {"count": Variant("x", number), "count-visible": Variant("b", number > 0)}
        entry = f"application://{QGuiApplication.desktopFileName()}.desktop"
        path = "/" + _FACE.replace(".", "/")
        await self._bus.tell(
            Message(
                path=path, interface=_FACE, member="Update", signature="sa{sv}", body=(entry, shown)
            )
        )


class Presence(QObject):
    """Desktop presence of one window over one shared bus connection."""

    def __init__(self, ctx: WindowContext, show_tasks: Callable[[tuple[str, ...]], object]) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._show_tasks = show_tasks
        self._bus = SessionBus(ctx.bridge.spawn, self)
        self.tray = Tray(ctx, self._bus)
        self._awake = KeepAwake(ctx, keeper_for(sys.platform, self._bus))
        self._popups = Popups(self._bus, lambda: self.tray.icon, self)
        self._badge = Badge(self._bus)
        self._popups.clicked.connect(self._go)
        wishes = ctx.services.wishes
        wishes.pop_up.connect(self._tell)
        wishes.unread.connect(self._badge.show)
        self._awake.show_health(ctx.bridge.look_at_health())

    def say_once(self) -> None:
        """Notify once that the window keeps running in the tray."""
        memory = self._ctx.memory
        if memory.flag("told-tray", False):
            return
        memory.keep_flag("told-tray", True)
        name = QGuiApplication.applicationDisplayName()
        title = self.tr("{0} goes on in the tray").format(name)
        body = self.tr("The settings can change this. You will not be told again.")
        self._popups.show(Popup(title, body))

    def close(self) -> None:
        """Remove the icon, allow sleep and close the bus connection."""
        self.tray.hide()
        self._awake.release()
        self._bus.close()

    def _tell(self, popup: Popup) -> None:
        self._popups.show(popup)
        QApplication.alert(self._ctx.parent)  # The task bar entry is highlighted

    def _go(self, task_ids: tuple[str, ...], token: str) -> None:
        come_forward(self._ctx.parent, token)
        self._show_tasks(task_ids)
