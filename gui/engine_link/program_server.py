"""Server for other programs (MCP, HTTP) on the engine of the window, while it is switched on.

Its libraries take 0.8 s to import, so a thread imports them, and only for a server that is wanted.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.model.errors import EngineError
from engine.server.optional_libraries import import_server
from engine.service.engine import Engine
from gui.engine_link.scheduling import TaskSet

if TYPE_CHECKING:
    from engine.server.local_server import LocalServer

log = logging.getLogger(__name__)


class ServerFailed(EngineError):
    """The server ended, or did not start, for a reason that is no other error."""

    code = "server_failed"
    title = "The server failed"
    sentence = "The server for other programs ended unexpectedly: {reason}"
    advice_text = "Try again; the log has the details."


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What other programs may do; `port` 0 is any free one, the lists are those of `Settings`."""

    enabled: bool = False
    port: int = 0
    allow_private: tuple[str, ...] = ()
    allow_secrets: tuple[str, ...] = ()


class ServerState(StrEnum):
    OFF = "off"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """State of the server; `url` and `token_file` while it runs, `error` if it failed."""

    state: ServerState = ServerState.OFF
    url: str = ""
    token_file: Path | None = None
    error: EngineError | None = None


class ProgramServer(QObject):
    """Start, change and stop the server as the settings say; `changed` reports its status.

    `engine` returns the engine of the open ledger. Nothing is imported before `apply` enables it.
    """

    changed = Signal()

    def __init__(self, engine: Callable[[], Engine], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._wanted = self._applied = ServerSettings()
        self._renew = self._again = self._working = False
        self._server: LocalServer | None = None
        self._leaving: LocalServer | None = None  # was told to stop
        self._work = TaskSet(self._fail)
        self.status = ServerStatus()

    def apply(self, wanted: ServerSettings) -> None:
        """Follow these settings from now on; the ledger must be open."""
        self._wanted = wanted
        self._begin()

    def try_again(self) -> None:
        """Start a server that failed once more."""
        self._again = True
        self._begin()

    def renew_token(self) -> None:
        """Start the server with a new token; programs with the old one are refused."""
        self._renew = True
        self._begin()

    async def close(self) -> None:
        """Stop the server, and follow no further settings."""
        await self._work.close()
        await self._stop()

    def _begin(self) -> None:
        """Start working, unless the work that runs will see the change."""
        if not self._working and self._is_behind():
            self._working = True
            self._work.spawn(self._catch_up(), name="serve programs")

    def _is_behind(self) -> bool:
        return self._wanted != self._applied or self._renew or self._again

    async def _catch_up(self) -> None:
        try:
            while self._is_behind():
                try:
                    await self._take(self._wanted)
                except EngineError as error:
                    self._fail(error)
        finally:
            self._working = False

    async def _take(self, wanted: ServerSettings) -> None:
        """Bring the server into the state of `wanted`."""
        engine, before = self._engine(), self._applied
        renew, again = self._renew, self._again
        self._applied, self._renew, self._again = wanted, False, False
        moved = (wanted.enabled, wanted.port) != (before.enabled, before.port)
        if moved or renew or again:
            if self._server is not None:
                self._show(ServerStatus(ServerState.STOPPING))
                await self._stop()
            self._show(ServerStatus())
        if not wanted.enabled:
            await engine.allow((), ())
            return
        await engine.allow(wanted.allow_private, wanted.allow_secrets)
        if self._server is None:
            await self._start(engine, wanted.port, new_token=renew)

    async def _start(self, engine: Engine, port: int, *, new_token: bool) -> None:
        self._show(ServerStatus(ServerState.STARTING))
        serving = await asyncio.to_thread(_import_server)
        server: LocalServer = serving.LocalServer(engine, port=port, new_token=new_token)
        await server.start()
        self._server = server
        self._work.spawn(self._watch(server), name="watch the server for programs")
        self._show(ServerStatus(ServerState.RUNNING, server.url, server.token_file))

    async def _stop(self) -> None:
        if self._server is not None:
            self._leaving = self._server
            await self._server.stop()
            self._server = None

    async def _watch(self, server: LocalServer) -> None:
        """Report an end of the server that was not requested."""
        await server.wait()
        if self._leaving is not server:
            await self._stop()
            raise ServerFailed(reason="it no longer listens")

    def _fail(self, error: Exception) -> None:
        """Show why there is no server; `TaskSet` reports what no caller expects."""
        if not isinstance(error, EngineError):
            log.error("the server for programs failed", exc_info=error)
            error = ServerFailed(reason=str(error) or type(error).__name__)
        else:
            log.warning("programs cannot connect: %s", error)
        self._show(ServerStatus(ServerState.FAILED, error=error))

    def _show(self, status: ServerStatus) -> None:
        if status != self.status:
            self.status = status
            self.changed.emit()


def _import_server() -> ModuleType:
    """Import the server, on a thread, and what its first requests would import.

    Garbage collections wait: one of so many new objects, which all stay, takes 80 ms.
    """
    if "engine.server.local_server" in sys.modules:
        return import_server("local_server")
    collects = gc.isenabled()
    gc.disable()
    try:
        found = import_server("local_server")
        import_server("api_page").page_template()
        gc.freeze()
    finally:
        if collects:
            gc.enable()
    return found
