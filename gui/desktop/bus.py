"""The desktop's message bus (D-Bus, on Linux), on asyncio: calls that time out, signals heard.

Where there is no bus nothing here works, and nobody is told: a window does without.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from msgspec.structs import replace

from gui.desktop.bus_wire import (
    CALL,
    ERROR,
    HEADER_BYTES,
    RETURN,
    SIGNAL,
    BadMessage,
    Message,
    length_of,
    pack,
    unpack,
)

CALL_S = 5.0  # a daemon that is slower than this is not there
CONNECT_S = 3.0
_BUS = Message(
    CALL,
    destination="org.freedesktop.DBus",
    path="/org/freedesktop/DBus",
    interface="org.freedesktop.DBus",
)
Hear = Callable[[Message], object]


class BusError(Exception):
    """The bus, or who was called over it, did not do what was asked; the text is theirs."""


def bus_address() -> str:
    """Where the session's bus listens; empty where there is none."""
    told = os.environ.get("DBUS_SESSION_BUS_ADDRESS", "")
    if told or not hasattr(os, "getuid"):
        return told
    usual = f"/run/user/{os.getuid()}/bus"
    return f"unix:path={usual}" if os.path.exists(usual) else ""


class Bus:
    """One connection. `run` reads it and ends with it; whoever connects spawns that."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._serials = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._ears: list[tuple[Message, Hear]] = []

    @classmethod
    async def connect(cls, address: str) -> Bus:
        """Connect and prove who we are; `run` must be spawned before the first call.

        Raises:
            BusError: there is no bus at this address, or it does not want us.
        """
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_unix_connection(_path_of(address))
                uid = str(os.getuid()).encode().hex()
                writer.write(f"\0AUTH EXTERNAL {uid}\r\n".encode())
                if not (await reader.readline()).startswith(b"OK "):
                    writer.close()
                    raise BusError("the bus refuses this user")
                writer.write(b"BEGIN\r\n")
        except (OSError, ValueError, TimeoutError) as error:
            raise BusError(str(error) or "the bus does not answer") from error
        return cls(reader, writer)

    @property
    def closed(self) -> bool:
        return self._writer.is_closing()

    async def run(self) -> None:
        """Hand out what comes until the connection ends; then every call fails."""
        try:
            while True:
                header = await self._reader.readexactly(HEADER_BYTES)
                rest = await self._reader.readexactly(length_of(header) - HEADER_BYTES)
                self._hand_out(unpack(header + rest))
        except (OSError, asyncio.IncompleteReadError, BadMessage):
            pass  # the session ended, or the bus speaks nonsense: the same for us
        finally:
            self.close()

    async def hello(self) -> None:
        """Ask the bus in; the first call. Raises BusError."""
        await self.call(replace(_BUS, member="Hello"))

    async def call(self, message: Message) -> tuple[Any, ...]:
        """Call a method and wait for what it returns.

        Raises:
            BusError: an error came back, nothing in 5 s, or the connection is gone.
        """
        if self._writer.is_closing():
            raise BusError("the bus is gone")
        serial = next(self._serials)
        answer = self._answers[serial] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(pack(replace(message, serial=serial)))
            async with asyncio.timeout(CALL_S):
                reply = await answer
        except (OSError, TimeoutError, BadMessage) as error:
            raise BusError(str(error) or f"{message.member} is not answered") from error
        finally:
            self._answers.pop(serial, None)
        if reply.kind == ERROR:
            raise BusError(f"{reply.error}: {' '.join(map(str, reply.body[:1]))}")
        body: tuple[Any, ...] = reply.body
        return body

    async def listen(self, signal: Message, hear: Hear) -> None:
        """Call `hear` for every signal with this sender's name, interface and member.

        Raises BusError.
        """
        rule = (
            f"type='signal',sender='{signal.sender}',"
            f"interface='{signal.interface}',member='{signal.member}'"
        )
        self._ears.append((signal, hear))
        await self.call(replace(_BUS, member="AddMatch", signature="s", body=(rule,)))

    def tell(self, signal: Message) -> None:
        """Send a signal to whoever listens. Raises BusError."""
        try:
            self._writer.write(pack(replace(signal, serial=next(self._serials))))
        except (OSError, BadMessage) as error:
            raise BusError(str(error)) from error

    def close(self) -> None:
        """End the connection; what the desktop did for it ends with it."""
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(BusError("the bus is gone"))
        self._writer.close()

    def _hand_out(self, message: Message) -> None:
        if message.kind in (RETURN, ERROR):
            answer = self._answers.get(message.reply_to)
            if answer is not None and not answer.done():
                answer.set_result(message)
        elif message.kind == SIGNAL:
            for signal, hear in self._ears:
                if (signal.interface, signal.member) == (message.interface, message.member):
                    hear(message)


def _path_of(address: str) -> str:
    """The socket in a bus address, the first that is a local one. Raises ValueError."""
    for one in address.split(";"):
        kind, _, rest = one.partition(":")
        with suppress(ValueError):
            given = dict(pair.split("=", 1) for pair in rest.split(",") if pair)
            if kind == "unix" and "path" in given:
                return unquote(given["path"])
            if kind == "unix" and "abstract" in given:
                return "\0" + unquote(given["abstract"])
    raise ValueError(f"no local socket in {address!r}")
