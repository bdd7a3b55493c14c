"""A real message bus of its own, and what a desktop offers on it: for tests, never the user's."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gui.desktop.bus import Bus
from gui.desktop.bus_wire import CALL, ERROR, RETURN, SIGNAL, Message, pack

needs_bus = pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="no dbus-daemon here")
_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/>
<allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>"""
_DBUS: dict[str, Any] = {
    "destination": "org.freedesktop.DBus",
    "path": "/org/freedesktop/DBus",
    "interface": "org.freedesktop.DBus",
}
Answer = Callable[[Message], tuple[str, tuple[Any, ...]]]


@asynccontextmanager
async def a_bus(folder: Path) -> AsyncIterator[str]:
    """A bus daemon that starts no service; its address."""
    socket, config = folder / "bus", folder / "bus.conf"
    config.write_text(_CONFIG.format(socket=socket))
    daemon = await asyncio.create_subprocess_exec(
        *("dbus-daemon", f"--config-file={config}", "--nofork", "--print-address"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert daemon.stdout is not None
        async with asyncio.timeout(20):
            line = await daemon.stdout.readline()
        yield line.decode().strip()
    finally:
        daemon.terminate()
        await daemon.wait()


class Desktop:
    """A program on the bus: `answers` by member, everything it was called with in `calls`."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.answers: dict[str, Answer] = {}
        self.calls: list[Message] = []
        self._heard = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def on(cls, address: str, *names: str) -> AsyncIterator[Desktop]:
        """Connected, known by `names`."""
        bus = await Bus.connect(address)
        me = cls(bus)
        hand_out = bus._hand_out
        bus._hand_out = lambda message: (  # a client that serves as well
            me._serve(message) if message.kind == CALL else hand_out(message)
        )
        running = asyncio.ensure_future(bus.run())
        try:
            await bus.hello()
            for name in names:
                await bus.call(
                    Message(CALL, **_DBUS, member="RequestName", signature="su", body=(name, 0))
                )
            yield me
        finally:
            bus.close()
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def called(self, member: str, times: int = 1) -> Message:
        """The call number `times` of this member, once it has come."""
        async with asyncio.timeout(20):
            while len(found := [one for one in self.calls if one.member == member]) < times:
                self._heard.clear()
                await self._heard.wait()
        return found[times - 1]

    async def ring(self, interface: str, member: str, signature: str, *body: Any) -> None:
        """Send a signal."""
        path = "/" + interface.replace(".", "/")
        signal = Message(SIGNAL, 99, path, interface, member, signature=signature, body=tuple(body))
        self.bus._writer.write(pack(signal))
        await self.bus._writer.drain()

    def _serve(self, message: Message) -> None:
        self.calls.append(message)
        answer = self.answers.get(message.member)
        kind, error, signature, body = ERROR, "org.freedesktop.DBus.Error.UnknownMethod", "", ()
        if answer is not None:
            signature, body = answer(message)
            kind, error = RETURN, ""
        reply = Message(
            kind,
            serial=len(self.calls) + 1000,
            error=error,
            reply_to=message.serial,
            destination=message.sender,
            signature=signature,
            body=body,
        )
        self.bus._writer.write(pack(reply))
        self._heard.set()
