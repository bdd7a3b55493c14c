"""Allowed requests pass the proxy unchanged (real Chromium)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from engine.browser.chromium.browser_options import FetcherOptions, InstanceOptions
from engine.model.errors import PageError
from engine.model.listening import close_server
from engine.pages.fetch import PageOptions
from tests.egress.conftest import PUBLIC, START, World
from tests.support.engines import until

OPTIONS = PageOptions(timeout_ms=100_000, settle_ms=0)
_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Site:
    """Keeps the head and body of each request; echoes WebSocket frames of a few bytes."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.port = 0
        self.connections = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._answer(reader, writer)
        finally:
            self.connections -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                if b"Upgrade: websocket" in head:
                    await self._socket(head, reader, writer)
                    break
                if head.startswith(b"GET /silent"):
                    break
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self.bodies.append(await reader.readexactly(int(length or 0)))
                body = b"z" * 3_000_000 if head.startswith(b"GET /large") else b"<p>here</p>"
                kept = b"Content-Type: text/html\r\nContent-Length: %d\r\n" % len(body)
                writer.write(b"HTTP/1.1 200 OK\r\n" + kept + b"\r\n" + body)
                await writer.drain()

    async def _socket(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        key = head.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
        accept = base64.b64encode(hashlib.sha1(key + _ACCEPT).digest())
        writer.write(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
        writer.write(b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        frame = await reader.readexactly(6)
        sent = await reader.readexactly(frame[1] & 127)
        plain = bytes(byte ^ frame[2 + at % 4] for at, byte in enumerate(sent))
        writer.write(bytes([0x81, len(plain)]) + plain)
        await reader.read()


@pytest.fixture
def site() -> Site:
    return Site()


@asynccontextmanager
async def served(world: World, site: Site) -> AsyncIterator[None]:
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.port = world.routes[PUBLIC] = server.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        await close_server(server)
        await server.wait_closed()
        await until(lambda: not site.connections)  # the browser's processes end one by one


def names(head: bytes) -> set[bytes]:
    return {line.partition(b":")[0] for line in head.split(b"\r\n")[1:]}


async def test_servers_see_no_difference_through_the_proxy(world: World, site: Site) -> None:
    async with served(world, site), world.browser() as session:
        for start in (START, f"http://127.0.0.1:{site.port}/"):
            async with session.fetcher(FetcherOptions(world.policy(start))) as fetcher:
                assert (await fetcher.fetch(f"{start}a?b=c", OPTIONS)).text == "here"
    fenced, free = (head for head in site.heads if head.startswith(b"GET /a"))
    # This machine counts as a secure place, so that it is told a little more.
    assert names(free) - names(fenced) <= {
        *(b"Sec-Fetch-" + name for name in (b"Dest", b"Mode", b"Site", b"User", b"Storage-Access")),
        *(b"sec-ch-ua" + name for name in (b"", b"-mobile", b"-platform")),
    }
    assert names(fenced) <= names(free)
    assert b"Connection: keep-alive\r\n" in fenced
    assert b"Host: trap.example\r\n" in fenced
    assert world.reached == [(PUBLIC, 80)], "the start of this machine needs no proxy"


async def test_sockets_and_large_bodies_pass_the_proxy(world: World, site: Site) -> None:
    script = """async () => {
      const said = new Promise((resolve) => {
        const socket = new WebSocket('ws://trap.example/socket');
        socket.onopen = () => socket.send('hello');
        socket.onmessage = (event) => resolve(event.data);
      });
      const large = (await (await fetch('/large')).arrayBuffer()).byteLength;
      await fetch('/upload', {method: 'POST', body: 'y'.repeat(2_000_000)});
      return [await said, large];
    }"""
    async with (
        served(world, site),
        world.browser() as session,
        session.instance(InstanceOptions(world.policy())) as instance,
    ):
        tab = await instance.new_page()
        await tab.goto(START)
        assert await tab.evaluate(script) == ["hello", 3_000_000]
    assert b"y" * 2_000_000 in site.bodies
    assert not any(b"proxy" in head.lower() for head in site.heads)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://trap.example:81/", "connection refused"),
        ("https://trap.example:82/", "connection refused"),
        ("http://trap.example/silent", "the server sent nothing"),
        ("http://nobody.example/", "name not found"),
    ],
)
async def test_failures_keep_their_words(world: World, site: Site, url: str, reason: str) -> None:
    through = world.through

    async def shut(address, port, make):
        if port in (81, 82):
            raise ConnectionRefusedError
        return await through(address, port, make)

    world.through = shut
    async with (
        served(world, site),
        world.browser() as session,
        session.fetcher(FetcherOptions(world.policy())) as fetcher,
    ):
        with pytest.raises(PageError) as failed:
            await fetcher.fetch(url, OPTIONS)
        assert str(failed.value) == reason
        assert (await fetcher.fetch(START, OPTIONS)).text == "here"
