"""The desktop's message bus (D-Bus, on Linux), on asyncio: calls that time out, signals heard.

The only place that knows dbus-fast, which is imported with the first connection. Where there
is no bus nothing here works, and nobody is told: a window does without.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from dbus_fast import Message as Wire
    from dbus_fast.aio import MessageBus

CALL_S = 5.0  # a daemon that is slower than this is not there
CONNECT_S = 3.0
CLOSE_S = 1.0
# What dbus-fast says of a bus that is gone or no bus, and of values that do not fit; its own
# errors for both are kinds of these.
_TROUBLE = (OSError, EOFError, ValueError, TypeError, TimeoutError, struct.error)


class BusError(Exception):
    """The bus, or who was called over it, did not do what was asked; the text is theirs."""


class Variant(msgspec.Struct, frozen=True):
    """A value that carries its own type."""

    signature: str
    value: Any


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A call, an answer or a signal; fields that do not apply are empty."""

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
    """Where the session's bus listens; empty where there is none."""
    told = os.environ.get("DBUS_SESSION_BUS_ADDRESS", "")
    if told or not hasattr(os, "getuid"):
        return told
    usual = f"/run/user/{os.getuid()}/bus"
    return f"unix:path={usual}" if os.path.exists(usual) else ""


class Bus:
    """One connection. `run` lasts as long as it does; whoever connects spawns that."""

    def __init__(self, line: MessageBus) -> None:
        self._line = line
        self._ears: list[tuple[Message, Hear]] = []
        line.add_message_handler(self._hand_out)

    @classmethod
    async def connect(cls, address: str) -> Bus:
        """Connect and say hello; `run` must be spawned at once.

        Raises:
            BusError: there is no bus at this address, or it does not want us.
        """
        if not address:  # dbus-fast would look for one by itself
            raise BusError("there is no bus")
        try:
            # On a thread: the window goes on meanwhile, and where there is no library, without.
            line = await asyncio.to_thread(_library)
            async with asyncio.timeout(CONNECT_S):
                return cls(await line(bus_address=address).connect())
        except (*_TROUBLE, ImportError) as error:
            raise BusError(str(error) or "the bus does not answer") from error

    @property
    def closed(self) -> bool:
        return not self._line.connected

    async def run(self) -> None:
        """Wait until the connection ends; called off, end it."""
        line: Any = self._line  # whose types leave this method out
        ended = asyncio.ensure_future(line.wait_for_disconnect())
        ended.add_done_callback(lambda one: one.cancelled() or one.exception())
        try:
            await asyncio.wait({ended})  # why it ended is the same for us
        finally:
            self.close()
            await asyncio.wait({ended}, timeout=CLOSE_S)

    async def call(self, message: Message) -> tuple[Any, ...]:
        """Call a method and wait for what it returns.

        Raises:
            BusError: an error came back, nothing in 5 s, or the connection is gone.
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
        """Call `hear` for every signal with this sender's name, interface and member.

        Raises BusError.
        """
        rule = (
            f"type='signal',sender='{signal.sender}',"
            f"interface='{signal.interface}',member='{signal.member}'"
        )
        self._ears.append((signal, hear))
        await self.call(replace(_ADD_MATCH, body=(rule,)))

    async def tell(self, signal: Message) -> None:
        """Send a signal to whoever listens. Raises BusError."""
        from dbus_fast import MessageType

        if self.closed:
            raise BusError("the bus is gone")
        try:
            async with asyncio.timeout(CALL_S):
                await self._line.send(_wire(signal, MessageType.SIGNAL))
        except _TROUBLE as error:
            raise BusError(str(error) or f"{signal.member} cannot be told") from error

    def close(self) -> None:
        """End the connection; what the desktop did for it ends with it."""
        if not self.closed:
            self._line.disconnect()

    def _hand_out(self, wire: Wire) -> None:
        told = (wire.interface, wire.member)
        for signal, hear in self._ears if wire.message_type.name == "SIGNAL" else ():
            if (signal.interface, signal.member) == told:
                # Not at once: the library would keep an error of ours to its own log.
                asyncio.get_running_loop().call_soon(hear, _message(wire))


def _library() -> type[MessageBus]:
    from dbus_fast.aio import MessageBus

    return MessageBus


def _wire(message: Message, kind: Any) -> Wire:
    """The message as dbus-fast has it. Raises ValueError, TypeError."""
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
    # Found only when it is written, a mistake would leave the library waiting for an answer.
    wire.signature_tree.verify(wire.body)
    return wire


def _typed(value: Any) -> Any:
    from dbus_fast import Variant as Typed

    if isinstance(value, str):
        value.encode()  # half a character: found here for the same reason
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
