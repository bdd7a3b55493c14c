"""A private message bus with the services of a desktop, for tests."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "linux":  # elsewhere there is neither the library nor a bus
    from dbus_fast import Message, MessageType
    from dbus_fast.aio import MessageBus

needs_bus = pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="no dbus-daemon here")
_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/>
<allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>"""
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
        async with asyncio.timeout(60):
            line = await daemon.stdout.readline()
        yield line.decode().strip()
    finally:
        daemon.terminate()
        await daemon.wait()


class Desktop:
    """A program on the bus: `answers` by member, everything it was called with in `calls`."""

    def __init__(self, line: MessageBus) -> None:
        self.line = line
        self.answers: dict[str, Answer] = {}
        self.calls: list[Message] = []
        self._heard = asyncio.Event()
        line.add_message_handler(self._serve)

    @classmethod
    @asynccontextmanager
    async def on(cls, address: str, *names: str) -> AsyncIterator[Desktop]:
        """Connected, known by `names`."""
        line = await MessageBus(bus_address=address).connect()
        try:
            me = cls(line)
            for name in names:
                await line.request_name(name)
            yield me
        finally:
            line.disconnect()
            ended: Any = line
            await ended.wait_for_disconnect()

    async def called(self, member: str, times: int = 1) -> Message:
        """The call number `times` of this member, once it has come."""
        async with asyncio.timeout(60):
            while len(found := [one for one in self.calls if one.member == member]) < times:
                self._heard.clear()
                await self._heard.wait()
        return found[times - 1]

    async def ring(self, interface: str, member: str, signature: str, *body: Any) -> None:
        """Send a signal."""
        path = "/" + interface.replace(".", "/")
        await self.line.send(Message.new_signal(path, interface, member, signature, list(body)))

    def _serve(self, message: Message) -> Message | None:
        if message.message_type is not MessageType.METHOD_CALL:
            return None
        self.calls.append(message)
        self._heard.set()
        answer = self.answers.get(message.member or "")
        if answer is None:
            return None  # the library says that there is no such method
        signature, body = answer(message)
        return Message.new_method_return(message, signature, list(body))
