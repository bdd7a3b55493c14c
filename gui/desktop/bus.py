"""D-Bus client for the desktop's session bus on asyncio, with timeouts and signals.

The only module that uses dbus-fast, which is imported for the first connection. Without a bus all
calls fail silently, because the window works without them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import struct
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace
from PySide6.QtCore import QObject

if TYPE_CHECKING:
    from dbus_fast import Message as Wire
    from dbus_fast.aio import MessageBus


CALL_S = 5.0  # A slower daemon counts as missing
CONNECT_S = 3.0
CLOSE_S = 1.0
# Errors that dbus-fast raises for a lost connection or a bad value; its own errors derive from
# these.
_TROUBLE = (OSError, EOFError, ValueError, TypeError, TimeoutError, struct.error)


class BusError(Exception):
    """Failure of the bus or of the called service, with its message."""


class Variant(msgspec.Struct, frozen=True):
    """A value with an explicit D-Bus type."""

    signature: str
    value: Any


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A method call, a reply or a signal; fields that do not apply are empty."""

    path: str = ""
    interface: str = ""
    member: str = ""
    destination: str = ""
    sender: str = ""
    signature: str = ""
    body: tuple[Any, ...] = ()


_ADD_MATCH = Message(
    destination="org.freedesktop.DBus",
    path="/org/freedesktop/DBus",
    interface="org.freedesktop.DBus",
    member="AddMatch",
    signature="s",
)
Hear = Callable[[Message], object]


def bus_address() -> str:
    """Return the address of the session bus, or an empty string without one."""
    told = os.environ.get("DBUS_SESSION_BUS_ADDRESS", "")
    if told or not hasattr(os, "getuid"):
        return told
    usual = f"/run/user/{os.getuid()}/bus"
    return f"unix:path={usual}" if os.path.exists(usual) else ""


class Bus:
    """One connection, alive while `run` does; the caller of `connect` spawns `run`."""

    def __init__(self, line: MessageBus) -> None:
        self._line = line
        self._ears: list[tuple[Message, Hear]] = []
        line.add_message_handler(self._hand_out)

    @classmethod
    async def connect(cls, address: str) -> Bus:
        """Connect to the bus; spawn `run` immediately afterwards.

        Raises: BusError: no bus at this address, or the bus refused the connection.
        """
        if not address:  # With an empty address dbus-fast would search for a bus
            raise BusError("there is no bus")
        try:
            # Imported on a thread, so that the window stays responsive.
            line = await asyncio.to_thread(_library)
            async with asyncio.timeout(CONNECT_S):
                return cls(await line(bus_address=address).connect())
        except (*_TROUBLE, ImportError) as error:
            raise BusError(str(error) or "the bus does not answer") from error

    @property
    def closed(self) -> bool:
        return not self._line.connected

    async def run(self) -> None:
        """Wait until the connection ends; on cancellation close it."""
        line: Any = self._line  # The type stubs lack this method
        ended = asyncio.ensure_future(line.wait_for_disconnect())
        ended.add_done_callback(lambda one: one.cancelled() or one.exception())
        try:
            await asyncio.wait({ended})  # The cause of the end makes no difference
        finally:
            self.close()
            await asyncio.wait({ended}, timeout=CLOSE_S)

    async def call(self, message: Message) -> tuple[Any, ...]:
        """Call a method and return its reply.

        Raises: BusError: an error reply, no reply within 5 s, or a lost connection.
        """
        from dbus_fast import MessageType

        if self.closed:
            raise BusError("the bus is gone")
        try:
            async with asyncio.timeout(CALL_S):
                reply = await self._line.call(_wire(message, MessageType.METHOD_CALL))
        except _TROUBLE as error:
            raise BusError(str(error) or f"{message.member} is not answered") from error
        if reply is None:
            raise BusError("the bus is gone")
        if reply.message_type is MessageType.ERROR:
            raise BusError(f"{reply.error_name}: {' '.join(map(str, reply.body[:1]))}")
        return tuple(reply.body)

    async def listen(self, signal: Message, hear: Hear) -> None:
        """Call `hear` for every signal that matches sender, interface and member.

        Raises BusError.
        """
        rule = (
            f"type='signal',sender='{signal.sender}',"
            f"interface='{signal.interface}',member='{signal.member}'"
        )
        self._ears.append((signal, hear))
        await self.call(replace(_ADD_MATCH, body=(rule,)))

    async def tell(self, signal: Message) -> None:
        """Emit a signal on the bus. Raises BusError."""
        from dbus_fast import MessageType

        if self.closed:
            raise BusError("the bus is gone")
        try:
            async with asyncio.timeout(CALL_S):
                await self._line.send(_wire(signal, MessageType.SIGNAL))
        except _TROUBLE as error:
            raise BusError(str(error) or f"{signal.member} cannot be told") from error

    def close(self) -> None:
        """Close the connection, which also ends all requests held by it."""
        if not self.closed:
            self._line.disconnect()

    def _hand_out(self, wire: Wire) -> None:
        told = (wire.interface, wire.member)
        for signal, hear in self._ears if wire.message_type.name == "SIGNAL" else ():
            if (signal.interface, signal.member) == told:
                # Deferred, because the library would swallow an exception of the handler.
                asyncio.get_running_loop().call_soon(hear, _message(wire))


def _library() -> type[MessageBus]:
    from dbus_fast.aio import MessageBus

    return MessageBus


def _wire(message: Message, kind: Any) -> Wire:
    """Convert a message for dbus-fast. Raises ValueError, TypeError."""
    from dbus_fast import Message as Wire

    wire = Wire(
        message_type=kind,
        destination=message.destination or None,
        path=message.path,
        interface=message.interface,
        member=message.member,
        signature=message.signature,
        body=[_typed(value) for value in message.body],
    )
    # An invalid body found only on writing would leave the library waiting for a reply.
    wire.signature_tree.verify(wire.body)
    return wire


def _typed(value: Any) -> Any:
    from dbus_fast import Variant as Typed

    if isinstance(value, str):
        value.encode()  # Raises for a lone surrogate here, for the same reason
    if isinstance(value, Variant):
        return Typed(value.signature, _typed(value.value))
    if isinstance(value, dict):
        return {_typed(key): _typed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_typed(one) for one in value]
    return value


def _message(wire: Wire) -> Message:
    return Message(
        path=wire.path or "",
        interface=wire.interface or "",
        member=wire.member or "",
        sender=wire.sender or "",
        signature=wire.signature,
        body=tuple(wire.body),
    )


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
