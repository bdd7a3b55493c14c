"""The desktop's message bus: bytes as the specification has them, and a real daemon."""

from __future__ import annotations

import asyncio
import os
import shutil
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gui.desktop.bus import Bus, BusError
from gui.desktop.bus_wire import (
    CALL,
    HEADER_BYTES,
    RETURN,
    SIGNAL,
    BadMessage,
    Message,
    Variant,
    length_of,
    pack,
    types_in,
    unpack,
)
from tests.gui.desktop_services import Desktop, a_bus, needs_bus

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "y": st.integers(0, 255),
    "b": st.booleans(),
    "i": st.integers(-(2**31), 2**31 - 1),
    "u": st.integers(0, 2**32 - 1),
    "x": st.integers(-(2**63), 2**63 - 1),
    "d": st.floats(allow_nan=False),
    "s": texts,
    "as": st.lists(texts, max_size=4),
    "(is)": st.tuples(st.integers(-9, 9), texts),
    "a{sv}": st.dictionaries(texts, st.integers(0, 9).map(lambda n: Variant("u", n)), max_size=3),
    "a(yv)": st.lists(st.tuples(st.integers(0, 255), texts.map(lambda t: Variant("s", t)))),
    "aas": st.lists(st.lists(texts, max_size=2), max_size=3),
}
typed = st.lists(st.sampled_from(sorted(VALUES)), max_size=6).flatmap(
    lambda signs: st.tuples(st.just("".join(signs)), st.tuples(*(VALUES[sign] for sign in signs)))
)


@given(typed, st.integers(1, 2**32 - 1))
def test_what_is_packed_comes_out_as_it_was(
    value: tuple[str, tuple[Any, ...]], serial: int
) -> None:
    message = Message(CALL, serial, "/a/b", "x.Y", "Z", signature=value[0], body=value[1])
    data = pack(message)
    assert length_of(data[:HEADER_BYTES]) == len(data)
    assert unpack(data) == message


def test_a_message_has_the_bytes_that_the_specification_gives_it() -> None:
    data = pack(Message(CALL, 1, "/a", member="M", signature="u", body=(7,)))
    fields = b"\x01\x01o\0\x02\0\0\0/a\0" + bytes(5) + b"\x03\x01s\0\x01\0\0\0M\0" + bytes(6)
    fields += b"\x08\x01g\0\x01u\0"
    head = b"l\x01\0\x01" + struct.pack("<III", 4, 1, len(fields))
    assert data == head + fields + bytes(-len(fields) % 8) + struct.pack("<I", 7)


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    for start in (b"", b"l\x01\0\x01", b"B\x02\0\x01"):
        try:
            length_of(start + data)
            unpack(start + data)
        except BadMessage:
            continue


@pytest.mark.parametrize("signature", ["a", "(i", "a{s"])
def test_a_signature_that_breaks_off_is_refused(signature: str) -> None:
    with pytest.raises(BadMessage):
        list(types_in(signature))


def test_a_value_that_does_not_fit_is_refused() -> None:
    for value in (-1, "7", None):
        with pytest.raises(BadMessage):
            pack(Message(CALL, signature="u", body=(value,)))


@asynccontextmanager
async def a_socket(folder: Path, greeting: bytes) -> AsyncIterator[str]:
    """Something that listens like a bus, and says only this."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, folder / "bus")
    async with server:
        yield f"unix:path={folder / 'bus'}"


@pytest.mark.skipif(os.name == "nt", reason="sockets with a path")
@pytest.mark.parametrize("greeting", [b"", b"REJECTED EXTERNAL\r\n", b"\xff" * 100 + b"\r\n"])
async def test_a_bus_that_does_not_want_us_is_an_error_of_its_own(
    tmp_path: Path, greeting: bytes
) -> None:
    async with a_socket(tmp_path, greeting) as address:
        with pytest.raises(BusError):
            await Bus.connect(address)


@pytest.mark.skipif(os.name == "nt", reason="sockets with a path")
@pytest.mark.parametrize("address", ["", "unix:path=/nowhere/bus", "tcp:host=localhost", "?"])
async def test_no_bus_is_an_error_of_its_own(address: str) -> None:
    with pytest.raises(BusError):
        await Bus.connect(address)


@needs_bus
async def test_two_programs_talk_over_a_real_bus(tmp_path: Path) -> None:
    assert shutil.which("dbus-daemon")
    async with a_bus(tmp_path) as address, Desktop.on(address, "x.Test") as other:
        other.answers["Add"] = lambda message: ("u", (sum(message.body),))
        async with Desktop.on(address) as me:
            target = Message(
                CALL, destination="x.Test", path="/x", interface="x.Test", member="Add"
            )
            asked = Message(**{**_fields(target), "signature": "uu", "body": (2, 3)})
            assert await me.bus.call(asked) == (5,)
            with pytest.raises(BusError, match="UnknownMethod"):
                await me.bus.call(Message(**{**_fields(target), "member": "Nothing"}))
            told: list[Message] = []
            await me.bus.listen(
                Message(SIGNAL, sender="x.Test", interface="x.Test", member="Rung"), told.append
            )
            await other.ring("x.Test", "Rung", "s", "ding")
            await me.bus.call(Message(**{**_fields(target), "member": "Add"}))
            assert [message.body for message in told] == [("ding",)]


@needs_bus
async def test_a_call_fails_at_once_when_the_bus_goes(tmp_path: Path) -> None:
    async with a_bus(tmp_path) as address, Desktop.on(address) as me:
        me.bus.close()
        with pytest.raises(BusError, match="gone"):
            await me.bus.call(Message(RETURN))


def _fields(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__struct_fields__}
