"""Servers that speak Dask's framing: a scheduler that lists workers, and workers of any manners.

They stand for Dask alone: what loads pages behind them is the program's own `PageServer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from engine.cluster.page_records import BUNDLE, FETCH, HELLO, LEAVES, report_of
from engine.cluster.page_server import PageServer
from engine.pages.fetch import IdleState
from tests.support.ports import free_port

HEAD = struct.Struct("=QQQ")
SLOTS = 4
STOP_S = 60.0
Answer = Callable[[dict[str, Any]], Awaitable[bytes | None]]


def message(value: object) -> bytes:
    """One message of one frame."""
    body = msgspec.msgpack.encode(value)
    return HEAD.pack(16 + len(body), 1, len(body)) + body


class Peer:
    """A server of Dask on a free port. An operation's answer is its raw bytes; None: hang up.

    What it is asked has a function `send` for messages before the answer.

    It keeps its port from `start` until `close`, also while it is stopped.
    """

    def __init__(self, **operations: Answer) -> None:
        self.operations: dict[str, Answer] = dict(operations)
        self.calls: list[str] = []
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_stopped = True
        self._stack = contextlib.ExitStack()
        self.port = 0
        self.tls: ssl.SSLContext | None = None

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        return len(self._serving)

    async def start(self) -> None:
        if not self.port:
            self.port = self._stack.enter_context(free_port())
        self._is_stopped = False
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, ssl=self.tls
        )

    async def stop(self) -> None:
        """End as a killed process does."""
        server, self._server, self._is_stopped = self._server, None, True
        if server is None:
            return
        server.close()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        # Since Python 3.12.1 this waits for the end of all connections.
        async with asyncio.timeout(STOP_S):
            await server.wait_closed()

    async def leave(self) -> None:
        """End as a worker that is asked to end, which has no page in progress."""
        for writer in self._writers:
            writer.write(message(LEAVES))
            await writer.drain()
        await self.stop()

    async def close(self) -> None:
        """Stop for good: other processes may have the port."""
        try:
            await self.stop()
        finally:
            self._stack.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_stopped:  # the system accepted it before
            writer.transport.abort()
            return
        serving = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        self._writers.add(writer)
        serving.add_done_callback(lambda _: self._writers.discard(writer))
        # Also of a task that is cancelled before it begins.
        serving.add_done_callback(lambda _: writer.transport.abort())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            writer.write(message({"compression": None, "python": [3, 11], "pickle-protocol": 5}))
            await self._read(reader)
            while await self._answer(await self._read(reader), writer):
                pass

    async def _answer(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        operation = asked["op"]
        self.calls.append(operation)
        asked["send"] = lambda value: writer.write(message(value))
        answer = self.operations.get(operation)
        found = message(None) if answer is None else await answer(asked)
        if found is not None:
            writer.write(found)
            await writer.drain()
        return found is not None

    @staticmethod
    async def _read(reader: asyncio.StreamReader) -> dict[str, Any]:
        _, _, size = HEAD.unpack(await reader.readexactly(HEAD.size))
        found: dict[str, Any] = msgspec.msgpack.decode(await reader.readexactly(size))
        return found


class Cluster:
    """A scheduler that lists `workers`, name by address; each loads pages as it was made to."""

    def __init__(self) -> None:
        self.listed: dict[str, str] = {}
        self.scheduler = Peer(identity=self._identity)
        self._stack = contextlib.AsyncExitStack()

    async def _identity(self, _: dict[str, Any]) -> bytes:
        workers = {address: {"name": name} for address, name in self.listed.items()}
        return message({"type": "Scheduler", "workers": workers})

    @property
    def address(self) -> str:
        return self.scheduler.address

    async def add(self, name: str, **operations: Answer) -> Peer:
        """Add a worker with four slots; `operations` replace those of a real one."""
        server = PageServer(name, SLOTS)
        await self._stack.enter_async_context(server.running())

        async def hello(_: dict[str, Any]) -> bytes:
            return message(server.hello())

        async def fetch(asked: dict[str, Any]) -> bytes:
            def report(state: IdleState) -> None:
                asked["send"](report_of(state))

            return message(await server.fetch(asked["page"], report))

        async def bundle(asked: dict[str, Any]) -> bytes:
            return message(await server.bundle(asked["page"]))

        peer = Peer(**{HELLO: hello, FETCH: fetch, BUNDLE: bundle, **operations})
        self._stack.push_async_callback(peer.close)
        await peer.start()
        self.listed[peer.address] = name
        return peer


@contextlib.asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster without workers."""
    found = Cluster()
    await found.scheduler.start()
    try:
        yield found
    finally:
        await found.scheduler.close()
        await found._stack.aclose()
