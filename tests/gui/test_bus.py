"""The desktop's message bus on a window's loop: a real daemon, and broken ones."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from gui.desktop import bus as bus_module
from gui.desktop.bus import Bus, BusError, Message, Variant
from tests.gui.desktop_services import Desktop, a_bus, needs_bus

sockets = pytest.mark.skipif(sys.platform != "linux", reason="there is no message bus")
ADD = Message(destination="x.Test", path="/x", interface="x.Test", member="Add")
RUNG = Message(sender="x.Test", interface="x.Test", member="Rung")


@asynccontextmanager
async def a_socket(folder: Path, greeting: bytes | None) -> AsyncIterator[str]:
    """Something that listens like a bus, and says only this; None: nothing at all."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if greeting is None:
            await reader.read()
        else:
            writer.write(greeting)
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, folder / "bus")
    async with server:
        yield f"unix:path={folder / 'bus'}"


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Bus]:
    bus = await Bus.connect(address)
    running = asyncio.create_task(bus.run())
    try:
        yield bus
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@sockets
@pytest.mark.parametrize(
    "greeting",
    [
        b"",
        b"REJECTED EXTERNAL\r\n",
        b"\xff" * 100 + b"\r\n",
        b"OK 1\r\n",
        b"OK 1\r\n" + b"\xff" * 99,
    ],
)
async def test_a_refusing_bus_raises_an_error(tmp_path: Path, greeting: bytes) -> None:
    async with a_socket(tmp_path, greeting) as address:
        with pytest.raises(BusError):
            await Bus.connect(address)


@sockets
async def test_a_silent_bus_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "CONNECT_S", 0.2)
    async with a_socket(tmp_path, None) as address:
        with pytest.raises(BusError, match="does not answer"):
            await Bus.connect(address)


@pytest.mark.parametrize("address", ["", "unix:path=/nowhere/bus", "tcp:host=localhost", "?"])
async def test_no_bus_is_an_error_of_its_own(address: str) -> None:
    with pytest.raises(BusError):
        await Bus.connect(address)


@needs_bus
async def test_two_programs_talk_over_a_real_bus(tmp_path: Path) -> None:
    async with (
        a_bus(tmp_path) as address,
        Desktop.on(address, "x.Test") as other,
        connected(address) as bus,
    ):
        other.answers["Add"] = lambda message: ("u", (sum(message.body),))
        assert await bus.call(replace(ADD, signature="uu", body=(2, 3))) == (5,)
        with pytest.raises(BusError, match="UnknownMethod"):
            await bus.call(replace(ADD, member="Nothing"))
        told: list[Message] = []
        await bus.listen(RUNG, told.append)
        await other.ring("x.Test", "Elsewhere", "s", "dong")
        await other.ring("x.Test", "Rung", "s", "ding")
        await bus.call(replace(ADD, signature="u", body=(1,)))
        await asyncio.sleep(0)
        assert [message.body for message in told] == [("ding",)]


@needs_bus
async def test_values_keep_the_type_that_was_given_to_them(tmp_path: Path) -> None:
    async with (
        a_bus(tmp_path) as address,
        Desktop.on(address, "x.Test") as other,
        connected(address) as bus,
    ):
        other.answers["Add"] = lambda _: ("", ())
        hints = {"urgency": Variant("y", 2), "names": Variant("as", ["a", "é"])}
        await bus.call(replace(ADD, signature="ua{sv}", body=(2**32 - 1, hints)))
        number, given = (await other.called("Add")).body
        assert number == 2**32 - 1
        assert {key: (one.signature, one.value) for key, one in given.items()} == {
            "urgency": ("y", 2),
            "names": ("as", ["a", "é"]),
        }


@needs_bus
@pytest.mark.parametrize(
    ("sign", "value"), [("u", -1), ("u", 2**32), ("u", "7"), ("u", None), ("s", "\ud800")]
)
async def test_a_bad_value_keeps_the_connection(tmp_path: Path, sign: str, value: object) -> None:
    async with (
        a_bus(tmp_path) as address,
        Desktop.on(address, "x.Test") as other,
        connected(address) as bus,
    ):
        other.answers["Add"] = lambda message: ("u", tuple(message.body))
        with pytest.raises(BusError):
            await bus.call(replace(ADD, signature=sign, body=(value,)))
        assert await bus.call(replace(ADD, signature="u", body=(7,))) == (7,)


@needs_bus
async def test_a_silent_peer_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        a_bus(tmp_path) as address,
        Desktop.on(address, "x.Test") as other,
        connected(address) as bus,
    ):
        monkeypatch.setattr(bus_module, "CALL_S", 0.2)
        other.line.add_message_handler(lambda _: True)  # takes it, and says nothing
        other.line.remove_message_handler(other._serve)
        with pytest.raises(BusError, match="Add is not answered"):
            await bus.call(ADD)


@needs_bus
async def test_calls_fail_at_once_when_the_bus_goes(tmp_path: Path) -> None:
    async with a_bus(tmp_path) as address, connected(address) as bus:
        bus.close()
        assert bus.closed
        with pytest.raises(BusError, match="gone"):
            await bus.call(ADD)
        with pytest.raises(BusError, match="gone"):
            await bus.tell(RUNG)


@needs_bus
async def test_a_connection_ends_with_its_daemon(tmp_path: Path) -> None:
    async with a_bus(tmp_path) as address:
        bus = await Bus.connect(address)
        running = asyncio.create_task(bus.run())
    async with asyncio.timeout(60):
        await running
    assert bus.closed


def test_the_library_is_not_loaded_before_it_is_needed() -> None:
    modules = "gui.window.main_window, gui.startup.session"
    words = f"import sys, {modules}; sys.exit('dbus_fast' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", words],
        cwd=Path(__file__).resolve().parents[2],
        env=os.environ | {"PYTHONPATH": "."},
        check=False,
    )
    assert done.returncode == 0
