"""One connection to the desktop's bus for one window: made when first needed, shared by all."""

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
    """Who owns the tasks that run in the background."""

    def __call__(self, work: Coroutine[Any, Any, object], *, name: str) -> None: ...


class SessionBus(QObject):
    """Lets parts of a window talk over the bus without knowing of each other.

    `spawn` owns the tasks; they end with the window, and the connection with them.
    """

    def __init__(self, spawn: Spawner, parent: QObject | None = None, address: str = "") -> None:
        super().__init__(parent)
        self._spawn, self._address = spawn, address or bus_address()
        self._bus: Bus | None = None
        self._connecting = asyncio.Lock()

    async def call(self, target: Message, signature: str = "", *values: Any) -> tuple[Any, ...]:
        """Call a method of `target` (see `method`) with these values.

        Raises:
            BusError: there is no bus, nobody has that name, or it went wrong there.
        """
        bus = await self._open()
        return await bus.call(replace(target, signature=signature, body=values))

    async def listen(self, signal: Message, hear: Hear) -> None:
        """Call `hear` for these signals as long as the window lives. Raises BusError."""
        await (await self._open()).listen(signal, hear)

    async def tell(self, signal: Message) -> None:
        """Send a signal to whoever listens. Raises BusError."""
        await (await self._open()).tell(signal)

    def try_to(self, work: Callable[[], Coroutine[Any, Any, object]], *, name: str) -> None:
        """Run `work` in the background; that the bus fails is written down and no more."""
        self._spawn(self._try(work), name=name)

    def close(self) -> None:
        """Hang up: what the desktop did for this connection ends with it."""
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
    """Whom to call: `interface` is the service's own name where nothing else is said."""
    return Message(destination=service, path=path, interface=interface or service, member=name)
