"""Server of the HTTP face on 127.0.0.1: start, address, and an end within a limit.

It runs on the caller's event loop, also on Qt's, and handles no signals. Its connections have
limits that uvicorn's do not have: on their number, and on the time that their clients take. At most
`MOST_CONNECTIONS` are served. As many again are answered 503 when their request arrives, so that a
client sees why; more are closed at once, since each one costs a file descriptor.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import h11
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from engine.model.errors import EngineError
from engine.server.access import MOST_BYTES, Access
from engine.server.access_file import AccessFile
from engine.server.http_answers import (
    BAD_HANDSHAKE,
    BAD_REQUEST,
    HEAD_TIMEOUT,
    TOO_MANY,
    Refusal,
    refusal_bytes,
)
from engine.server.http_app import HttpApp
from engine.server.mcp_server import McpServer
from engine.service.engine import Engine

log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
BACKLOG: Final = 1_024
KEEP_ALIVE_S: Final = 5
GRACE_S: Final = 2.0  # for requests in progress, when the server ends
CANCEL_S: Final = 1.0  # for them to end after they were cancelled
LEAVE_TURNS: Final = 20  # of the loop: an aborted connection leaves in a callback
MOST_CONNECTIONS: Final = 200
HEAD_S: Final = 10.0  # for a whole request head, and to discard the body of a refused request
STALL_S: Final = 30.0  # for a client to read something of what is sent to it
REFUSED_S: Final = 2.0  # for the request of a connection beyond the limit
_SSE_WATCHER: Final = "_shutdown_watcher"  # of sse_starlette; `stopping` ends the streams instead
_NOT_ALLOWED: Final = {errno.EACCES, errno.EPERM}


class PortTaken(EngineError):
    """Another program listens on the port."""

    code = "port_taken"
    title = "The port is in use"
    sentence = "Another program listens on port {port} of this machine."
    advice_text = "Choose another port, or 0 for a free one."


class PortRefused(EngineError):
    """The system does not let this user listen on the port."""

    code = "port_refused"
    title = "The port cannot be used"
    sentence = "The system refuses port {port}: {reason}"
    advice_text = "Choose a port above 1023, or 0 for a free one."


class LocalServer:
    """HTTP, WebSocket and MCP on one engine, for programs of this user."""

    def __init__(self, engine: Engine, *, port: int = 0, new_token: bool = False) -> None:
        self._engine = engine
        self._wanted = port
        self._new_token = new_token
        self._file = AccessFile(engine.settings.home)
        self._server: _Server | None = None
        self._app: HttpApp | None = None
        self._serving: asyncio.Task[None] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """The address, once it has started."""
        return f"http://{HOST}:{self.port}"

    @property
    def token_file(self) -> Path:
        """The file with the address and the token."""
        return self._file.path

    @property
    def is_running(self) -> bool:
        return self._serving is not None and not self._serving.done()

    async def start(self) -> None:
        """Listen, and write the file with the address and the token.

        Raises:
            PortTaken, PortRefused: nothing can listen on this port.
            ServerRunning: another server of this home runs.
            AccessFileUnsafe, LedgerReadOnly, LedgerWriteFailed, LedgerUnusable: the file with the
                token cannot be used.
        """
        listening = bind(self._wanted)
        try:
            self.port = listening.getsockname()[1]
            token = await asyncio.to_thread(self._file.open, new_token=self._new_token)
            self._app = HttpApp(self._engine, Access(self.port, token), McpServer(self._engine))
            self._server = _Server(_config(self._app))
            self._serving = asyncio.create_task(self._serve(listening), name="serve HTTP")
            await self._server.wait_ready(self._serving)
            await asyncio.to_thread(self._file.announce, self.port, token)
        except BaseException:
            await self.stop()
            with suppress(EngineError):
                await asyncio.to_thread(self._file.withdraw)
            listening.close()
            raise

    async def stop(self) -> None:
        """End every connection within some seconds. Idempotent."""
        serving = self._serving
        if serving is None or self._server is None or self._app is None:
            return
        self._app.stopping.set()
        self._server.leave.set()
        await asyncio.wait({serving})
        await _end_sse_watcher()
        with suppress(EngineError):  # the address stays in the file; its pid is proof enough
            await asyncio.to_thread(self._file.withdraw)
        self._serving = None
        if not serving.cancelled() and (error := serving.exception()) is not None:
            log.error("the HTTP server ended with an error", exc_info=error)

    async def wait(self) -> None:
        """Wait until the server has ended."""
        if self._serving is not None:
            await asyncio.wait({self._serving})

    async def _serve(self, listening: socket.socket) -> None:
        assert self._app is not None
        assert self._server is not None
        # Not by uvicorn, which ends the whole process when a lifespan fails.
        async with self._app.lifespan():
            await self._server.serve(sockets=[listening])


async def _end_sse_watcher() -> None:
    """End the task of the SDK's event streams, which looks for a signal until the loop ends."""
    tasks = asyncio.all_tasks()
    left = {each for each in tasks if getattr(each.get_coro(), "__name__", "") == _SSE_WATCHER}
    for each in left:
        each.cancel()
    if left:
        await asyncio.wait(left)


def bind(port: int) -> socket.socket:
    """Bind a socket of this machine alone. Raises PortTaken, PortRefused."""
    # With the protocol named, asyncio sets TCP_NODELAY; without it each answer takes 40 ms more.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after a restart
        else:
            exclusive = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
            listening.setsockopt(socket.SOL_SOCKET, exclusive, 1)
        listening.bind((HOST, port))
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except (OSError, OverflowError) as error:
        listening.close()
        number = error.errno if isinstance(error, OSError) else None
        if number == errno.EADDRINUSE or (os.name == "nt" and number in _NOT_ALLOWED):
            raise PortTaken(port=port) from error
        reason = getattr(error, "strerror", None) or str(error)
        raise PortRefused(port=port, reason=reason) from error
    return listening


def _config(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=HttpConnection,
        ws=WebSocketConnection,
        ws_max_size=MOST_BYTES,
        ws_per_message_deflate=False,  # a small message must stay small
        interface="asgi3",
        lifespan="off",
        log_config=None,
        log_level="warning",  # its lines about WebSockets hold whole addresses
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        forwarded_allow_ips="",  # these two would else come from the environment
        workers=1,
        timeout_keep_alive=KEEP_ALIVE_S,
        backlog=BACKLOG,
    )


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers and its timer, and with an end in time."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.leave = asyncio.Event()
        self._ready = asyncio.Event()

    async def wait_ready(self, serving: asyncio.Task[None]) -> None:
        """Wait until it listens. Raises what ended `serving` before."""
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait({ready, serving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if serving.done():
            serving.result()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    async def main_loop(self) -> None:
        await self.leave.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new connections, let requests end for `GRACE_S`, and close the rest."""
        state = self.server_state
        for server in self.servers:
            server.close()
        for each in sockets or ():
            each.close()
        for connection in tuple(state.connections):
            connection.shutdown()
        if state.tasks:
            _, late = await asyncio.wait(tuple(state.tasks), timeout=GRACE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=CANCEL_S)
        for connection in tuple(state.connections):
            connection.transport.abort()
        for _ in range(LEAVE_TURNS):
            if state.connections:
                await asyncio.sleep(0)


class _Deadline:
    """One timer at a time that closes a connection."""

    def __init__(self, close: Callable[[], object]) -> None:
        self._close = close
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float) -> None:
        """Start the time, unless it runs."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._close)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    headers, body = refusal_bytes(TOO_MANY)
    await send({"type": "http.response.start", "status": TOO_MANY.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class HttpConnection(H11Protocol):
    """HTTP connection with limits on its number and on the time that its client takes."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._head = _Deadline(self._late)
        self._stall = _Deadline(self._abort)
        self._is_refused = False

    # uvicorn narrows the type of asyncio's own method, too.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        over = len(self.connections) - MOST_CONNECTIONS
        if over > MOST_CONNECTIONS:
            transport.abort()
            return
        self._is_refused = over > 0
        if self._is_refused:
            self.app = _too_many
        self._head.begin(REFUSED_S if self._is_refused else HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head.end()
        self._stall.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Limit the time of an incomplete head, and of a body that is only discarded."""
        waits = self.conn.their_state is h11.IDLE
        discards = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if (waits or discards) and not self.transport.is_closing():
            self._head.begin(HEAD_S)
        else:
            self._head.end()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.begin(STALL_S)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall.end()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._head.end()
        if self._is_refused:
            self.answer(TOO_MANY)
        else:
            super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        self.answer(BAD_REQUEST)

    def answer(self, refusal: Refusal) -> None:
        """Send a refusal without an application, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers, body = refusal_bytes(refusal)
            for event in (
                h11.Response(status_code=refusal.status, headers=headers),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _late(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.answer(HEAD_TIMEOUT)
        else:
            self._abort()

    def _abort(self) -> None:
        self.transport.abort()


class _Handshake(ServerProtocol):
    """WebSocket protocol that refuses a wrong handshake with JSON, like every other request."""

    def accept(self, request: Request) -> Response:
        response = super().accept(request)
        if response.status_code == 101:
            return response
        pairs, body = refusal_bytes(BAD_HANDSHAKE)
        headers = Headers([(name.decode(), value.decode()) for name, value in pairs])
        return Response(BAD_HANDSHAKE.status, "Bad Request", headers, body)


class WebSocketConnection(WebSocketsSansIOProtocol):
    """WebSocket connection that is closed when its client stops reading."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.conn = _Handshake(max_size=self.config.ws_max_size, logger=self.conn.logger)
        self._stall = _Deadline(self._abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stall.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.begin(STALL_S)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall.end()

    def _abort(self) -> None:
        self.transport.abort()
