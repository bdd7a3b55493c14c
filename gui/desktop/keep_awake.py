"""Prevent system sleep while tasks run; the screen may turn off.

The request ends with this process, so that no request is left behind after a crash.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from PySide6.QtCore import QObject, QProcess, QTimer
from PySide6.QtGui import QGuiApplication

from engine.model.records import Health
from gui.context.window_context import WindowContext
from gui.desktop.bus import BusError, Message, SessionBus, Variant, method

CAFFEINATE = "/usr/bin/caffeinate"
LINGER_MS = 5000  # Delay in ms that bridges the gap between two tasks
_SUSPEND = 4  # Suspend flag of org.gnome.SessionManager and of the portal
_CONTINUOUS, _SYSTEM = 0x80000000, 0x00000001  # ES_CONTINUOUS, ES_SYSTEM_REQUIRED


class Keeper(Protocol):
    """Keep-awake backend of one platform; `hold` is idempotent."""

    def hold(self, reason: str) -> None: ...

    def release(self) -> None: ...


class KeepAwake(QObject):
    """Keep the system awake from the first running task until shortly after the last."""

    def __init__(self, ctx: WindowContext, keeper: Keeper) -> None:
        super().__init__(ctx.parent)
        self._preferences, self._keeper = ctx.preferences, keeper
        self._busy = self._held = False
        self._linger = QTimer(self, singleShot=True, interval=LINGER_MS)
        self._linger.timeout.connect(self._look)
        ctx.bridge.health.connect(self.show_health)
        self._preferences.changed.connect(self._follow_preference)

    @property
    def held(self) -> bool:
        """True while system sleep is prevented."""
        return self._held

    def release(self) -> None:
        """Allow sleep again when the window closes."""
        self._linger.stop()
        self._busy = False
        self._look()

    def show_health(self, health: Health) -> None:
        """Update the number of running and queued tasks."""
        self._busy = health.running + health.queued > 0
        if self._busy:
            self._linger.stop()
            self._look()
        elif self._held and not self._linger.isActive():
            self._linger.start()

    def _follow_preference(self, key: str) -> None:
        if key == "desktop.keep_awake":
            self._look()

    def _look(self) -> None:
        wanted = self._busy and self._preferences.get("desktop.keep_awake", bool)
        if wanted == self._held:
            return
        self._held = wanted
        if wanted:
            self._keeper.hold(self.tr("Tasks are running"))
        else:
            self._keeper.release()


def keeper_for(platform: str, bus: SessionBus) -> Keeper:
    """Return the backend for a `sys.platform`."""
    if platform == "win32":
        return _Windows()
    return _MacOS(bus) if platform == "darwin" else _Linux(bus)


class _Windows:
    """Windows backend; the state belongs to the calling thread, which is the window's."""

    def hold(self, reason: str) -> None:
        self._tell(_CONTINUOUS | _SYSTEM)

    def release(self) -> None:
        self._tell(_CONTINUOUS)

    @staticmethod
    def _tell(state: int) -> None:
        if sys.platform == "win32":
            import ctypes

            ctypes.windll.kernel32.SetThreadExecutionState(state)


class _MacOS:
    """macOS backend: `caffeinate -w` ends with this process, also after a crash."""

    def __init__(self, parent: QObject) -> None:
        self._parent = parent
        self._process: QProcess | None = None

    def hold(self, reason: str) -> None:
        if self._process is not None:
            return
        # A new one each time: one that was just ended refuses to start until its end is noticed.
        self._process = QProcess(self._parent)
        self._process.finished.connect(self._process.deleteLater)
        self._process.start(CAFFEINATE, ["-i", "-w", str(os.getpid())])

    def release(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None


class _Service(msgspec.Struct, frozen=True):
    """A D-Bus service that prevents sleep, and its release call."""

    hold: Message
    signature: str
    values: Callable[[str, str], tuple[Any, ...]]
    release: Message | None = None  # None: close the handle that `hold` returned


_POWER = "org.freedesktop.PowerManagement"
_POWER_PATH, _POWER_FACE = "/org/freedesktop/PowerManagement/Inhibit", f"{_POWER}.Inhibit"
_GNOME, _GNOME_PATH = "org.gnome.SessionManager", "/org/gnome/SessionManager"
_PORTAL, _PORTAL_PATH = "org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop"
# In this order: KDE, Xfce and others; GNOME, MATE, Cinnamon; sandboxes and all others.
_SERVICES = (
    _Service(
        method(_POWER, _POWER_PATH, "Inhibit", _POWER_FACE),
        "ss",
        lambda name, reason: (name, reason),
        method(_POWER, _POWER_PATH, "UnInhibit", _POWER_FACE),
    ),
    _Service(
        method(_GNOME, _GNOME_PATH, "Inhibit"),
        "susu",
        lambda name, reason: (name, 0, reason, _SUSPEND),
        method(_GNOME, _GNOME_PATH, "Uninhibit"),
    ),
    _Service(
        method(_PORTAL, _PORTAL_PATH, "Inhibit", "org.freedesktop.portal.Inhibit"),
        "sua{sv}",
        lambda name, reason: ("", _SUSPEND, {"reason": Variant("s", reason)}),
    ),
)


class _Linux:
    """Linux backend that tries the services in order; each releases on disconnect."""

    def __init__(self, bus: SessionBus) -> None:
        self._bus = bus
        self._wanted = ""
        self._let_go: tuple[Message, str, Any] | None = None
        self._turn = asyncio.Lock()

    def hold(self, reason: str) -> None:
        self._wanted = reason
        self._bus.try_to(self._follow, name="no sleep")

    def release(self) -> None:
        self._wanted = ""
        self._bus.try_to(self._follow, name="no sleep")

    async def _follow(self) -> None:
        """Bring the desktop's state in line with the request."""
        # Without a lock, one of two simultaneous requests would never be released.
        async with self._turn:
            if self._wanted and self._let_go is None:
                self._let_go = await self._ask(self._wanted)
            if not self._wanted and self._let_go is not None:
                (target, signature, cookie), self._let_go = self._let_go, None
                await self._bus.call(target, signature, *([cookie] if signature else []))

    async def _ask(self, reason: str) -> tuple[Message, str, Any]:
        """Request keep-awake and return the release call. Raises BusError without any service."""
        name = QGuiApplication.desktopFileName() or QGuiApplication.applicationName()
        for service in _SERVICES:
            values = service.values(name, reason)
            try:
                (handle,) = await self._bus.call(service.hold, service.signature, *values)
            except BusError:
                continue
            if service.release is not None:
                return service.release, "u", handle
            return method(_PORTAL, handle, "Close", "org.freedesktop.portal.Request"), "", None
        raise BusError("no service of this desktop keeps it awake")
