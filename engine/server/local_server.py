"""Server of the HTTP face on 127.0.0.1: start, address, and an end within a limit.

It runs on the caller's event loop, also on Qt's, and handles no signals.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import uvicorn

from engine.model.errors import EngineError
from engine.server.access import MOST_BYTES, Access
from engine.server.access_file import AccessFile
from engine.server.connections import HttpConnection, WebSocketConnection
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
