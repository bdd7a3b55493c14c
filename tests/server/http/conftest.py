"""The HTTP face on a real socket: a server in the test's loop, and clients that know its token."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from engine.model.config import Settings
from engine.server.local_server import HttpConnection, LocalServer
from engine.service.engine import Engine

Serving = Callable[..., AbstractAsyncContextManager["Client"]]
WAIT_S = 150.0  # a crowded machine may take its time


class Client:
    """A client of one server. `call` returns status and JSON; `raw` writes bytes to a socket."""

    def __init__(self, server: LocalServer, engine: Engine, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.engine = engine
        self.session = session
        self.token = json.loads(server.token_file.read_text())["token"]
        self.url = server.url
        self.host = f"127.0.0.1:{server.port}"

    @property
    def auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        headers = {**self.auth, **more.pop("headers", {})}
        more = {"json": body, **more} if body is not None else more
        async with self.session.request(method, self.url + path, headers=headers, **more) as got:
            return got.status, await got.json()

    async def get(self, path: str, **more: Any) -> Any:
        status, data = await self.call("GET", path, **more)
        assert status == 200, data
        return data

    async def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        got, data = await self.call("POST", path, {} if body is None else body)
        assert got == status, data
        return data

    async def code(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, str]:
        """Status and code of a refusal."""
        status, data = await self.call(method, path, body, **more)
        assert set(data["error"]) >= {"code", "title", "message"}
        return status, data["error"]["code"]

    async def envelope(self, objective: str = "look around") -> str:
        """A task that runs without a browser, until somebody finishes it."""
        return str((await self.post("/tasks", {"objective": objective}, 201))["task_id"])

    def events(self, path: str, **headers: str) -> Any:
        return self.session.get(self.url + path, headers={**self.auth, **headers})

    def socket(self, path: str = "/ws", **more: Any) -> Any:
        more.setdefault("headers", self.auth)
        return self.session.ws_connect(self.url + path, **more)

    @asynccontextmanager
    async def raw(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def sent(self, data: bytes) -> tuple[int, dict[str, str], Any]:
        """Send bytes on a connection, and return status, headers and JSON of the answer."""
        async with self.raw() as (reader, writer):
            writer.write(data)
            return await answer(reader)

    def head(self, line: str = "GET /tasks HTTP/1.1", **headers: str | None) -> bytes:
        """A request head with all that is needed; a header given as None is left out."""
        usual: dict[str, str | None] = {"Host": self.host, **self.auth}
        usual |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{name}: {value}" for name, value in usual.items() if value is not None]
        return "\r\n".join([line, *lines, "", ""]).encode()


def is_held_up(server: LocalServer) -> bool:
    """Whether the server waits with an answer for a client that does not read."""
    assert server._server is not None
    connections = [*server._server.server_state.connections]
    return any(isinstance(one, HttpConnection) and one.flow.write_paused for one in connections)


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], Any]:
    """Read one answer: status, headers by lower-case name, and its JSON."""
    async with asyncio.timeout(WAIT_S):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
    return int(first.split()[1]), headers, json.loads(body)


async def sse(response: Any) -> AsyncIterator[tuple[str, str | None, Any]]:
    """Each event of a stream: name, id and data."""
    fields: dict[str, str] = {}
    async for line in response.content:
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields.get("id"), json.loads(fields["data"])
            fields = {}


@asynccontextmanager
async def served(home: Path, *, port: int = 0, **settings: Any) -> AsyncIterator[Client]:
    """A server on an engine of its own, and a client."""
    usual = {"browser_path": os.environ.get("OC_BROWSER"), **settings}
    engine = Engine(replace(Settings.at(home=home), **usual), accepts=True)
    await engine.open()
    server = LocalServer(engine, port=port)
    try:
        await server.start()
        timeout = aiohttp.ClientTimeout(total=WAIT_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            yield Client(server, engine, session)
    finally:
        await server.stop()
        await engine.close()


@pytest.fixture
def serving(home: Path, kept_browser: object) -> Serving:
    """`async with serving(allow_private=(…,)) as client:`."""

    @asynccontextmanager
    async def make(**settings: Any) -> AsyncIterator[Client]:
        async with served(home, **settings) as client:
            yield client

    return make
