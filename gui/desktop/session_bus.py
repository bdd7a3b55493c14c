"""Shared session bus connection of one window, opened on first use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from msgspec.structs import replace
from PySide6.QtCore import QObject

from gui.desktop.bus import Bus, BusError, Hear, Message, bus_address

log = logging.getLogger(__name__)


class Spawner(Protocol):
    """Function that runs a background task and owns it."""

    def __call__(self, work: Coroutine[Any, Any, object], *, name: str) -> None: ...


class SessionBus(QObject):
    """Session bus access shared by the parts of a window.

    `spawn` owns the background tasks, which end with the window, as does the connection.
    """

    def __init__(self, spawn: Spawner, parent: QObject | None = None, address: str = "") -> None:
        super().__init__(parent)
        self._spawn, self._address = spawn, address or bus_address()
        self._bus: Bus | None = None
        self._connecting = asyncio.Lock()

    async def call(self, target: Message, signature: str = "", *values: Any) -> tuple[Any, ...]:
        """Call a method of `target` (see `method`) with these values.

        Raises: BusError: no bus, no such service, or an error reply.
        """
        bus = await self._open()
        return await bus.call(replace(target, signature=signature, body=values))

    async def listen(self, signal: Message, hear: Hear) -> None:
        """Call `hear` for these signals for the lifetime of the window. Raises BusError."""
        await (await self._open()).listen(signal, hear)

    async def tell(self, signal: Message) -> None:
        """Emit a signal on the bus. Raises BusError."""
        await (await self._open()).tell(signal)

    def try_to(self, work: Callable[[], Coroutine[Any, Any, object]], *, name: str) -> None:
        """Run `work` in the background; a bus failure is only logged."""
        self._spawn(self._try(work), name=name)

    def close(self) -> None:
        """Close the connection, which also ends all requests held by it."""
        if self._bus is not None:
            self._bus.close()

    async def _try(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        try:
            await work()
        except BusError as error:
            log.info("the desktop's bus: %s", error)

    async def _open(self) -> Bus:
        async with self._connecting:
            if self._bus is None or self._bus.closed:
                self._bus = await Bus.connect(self._address)
                self._spawn(self._bus.run(), name="the desktop's bus")
        return self._bus


def method(service: str, path: str, name: str, interface: str = "") -> Message:
    """Return the target of a call; `interface` defaults to the service name."""
    return Message(destination=service, path=path, interface=interface or service, member=name)
