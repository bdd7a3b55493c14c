"""Minimal HTTP/1.1 server: fast, keep-alive, and able to misbehave on purpose.

It has only what the sample site needs (GET and HEAD, no request bodies), on a loop in its own
thread, so that a page that never answers costs no thread and does not delay the shutdown.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from engine.model.listening import close_server

HTML = "text/html; charset=utf-8"
MAX_HEAD_BYTES = 64 * 1024
PIECES = 10  # a body that is spread over time comes in this many writes


@dataclass(frozen=True, slots=True)
class Request:
    """HTTP request: `path` is decoded, `target` is the raw one."""

    method: str
    target: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """HTTP response with deliberate faults.

    `delay_s` passes before the headers, `spread_s` over the body; `stops` hangs the response
    `before` the headers or `midway` in the body, the connection open.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    spread_s: float = 0.0
    stops: Literal["", "before", "midway"] = ""

    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {_phrase(self.status)}"]
        if self.content_type:
            lines.append(f"Content-Type: {self.content_type}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines.append(f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


@dataclass(slots=True)
class _Connection(asyncio.Protocol):
    """Connection of one client: requests are answered in order, one at a time."""

    server: Server
    buffer: bytearray = field(default_factory=bytearray)
    busy: bool = False
    transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        self.transport = None

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if len(self.buffer) > MAX_HEAD_BYTES and self.transport is not None:
            self.transport.abort()
        self._next()

    def _next(self) -> None:
        while not self.busy and (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end])
            del self.buffer[: end + 4]
            request = parse_request(head)
            self.busy = True
            self._answer(request, self.server.answer(request))

    def _answer(self, request: Request, answer: Answer) -> None:
        if answer.stops == "before":
            return
        if answer.delay_s:
            asyncio.get_running_loop().call_later(answer.delay_s, self._write, request, answer)
        else:
            self._write(request, answer)

    def _write(self, request: Request, answer: Answer) -> None:
        if self.transport is None:
            return
        body = b"" if request.method == "HEAD" else answer.body
        if answer.stops == "midway":
            self.transport.write(answer.head() + body[: len(body) // 2])
        elif answer.spread_s and body:
            self.transport.write(answer.head())
            self._spread(body, max(1, len(body) // PIECES), answer.spread_s / PIECES)
        else:
            self.transport.write(answer.head() + body)
            self.busy = False

    def _spread(self, body: bytes, size: int, wait_s: float) -> None:
        if self.transport is None:
            return
        self.transport.write(body[:size])
        if body[size:]:
            asyncio.get_running_loop().call_later(wait_s, self._spread, body[size:], size, wait_s)
        else:
            self._done()

    def _done(self) -> None:
        self.busy = False
        self._next()

    def __hash__(self) -> int:
        return id(self)


def parse_request(head: bytes) -> Request:
    """Parse a request's head; an invalid one becomes a request for an empty path."""
    first, *rest = head.decode("latin-1").split("\r\n")
    method, _, target = first.partition(" ")
    target = target.rpartition(" ")[0]
    headers = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Request(method, target, unquote(parts.path), query, headers)


class Server:
    """Serves `answer` on `host:port` from a thread between `start` and `stop`."""

    def __init__(self, answer: Callable[[Request], Answer], host: str, port: int) -> None:
        self.answer = answer
        self.host = host
        self.port = port
        self.connections: set[_Connection] = set()
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="sample-site", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()

    def start(self) -> None:
        """Listen; `port` is the real one afterwards. Raises OSError when the address is taken."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        """Close every connection, in whatever state."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as failure:
            self._failure = failure
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        server = await self._loop.create_server(lambda: _Connection(self), self.host, self.port)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        await close_server(server)
        for connection in list(self.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # `abort` has queued each connection_lost; let them run
        await server.wait_closed()
