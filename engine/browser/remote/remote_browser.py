"""A browser of another machine, for the tasks of this one; see `browser_server`.

All connections live on the proxy's loop, because the engine's loop may belong to a window. The
ports that the proxy opens for contexts are published there: connections of the
browser to them come back here, and go through the same proxy as the traffic of a local browser.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from engine.browser.page.failures import NoScreen
from engine.browser.remote.remote_address import (
    RemoteBrowserToken,
    RemoteBrowserUnreachable,
    RemotePlace,
)
from engine.browser.remote.remote_connection import (
    ENDED,
    PING_S,
    SILENT_S,
    Message,
    Pipe,
    WrongToken,
    connect,
    read_message,
    relay,
    send,
    trust,
)
from engine.egress.connecting import why_not_connected
from engine.model.listening import close_server

START_S: Final = 40.0  # above the limit of a start there
PUBLISH_S: Final = 10.0
NEWS_S: Final = 5.0  # for the news that the browser has ended
MOST_CONNECTIONS: Final = 600  # of a browser, with those that are being made
_LOST: Final = "the connection to it is lost"


class RemoteBrowser:
    """A session with a browser server. Bound to the proxy's loop, but for its attributes."""

    def __init__(
        self, place: RemotePlace, tls: ssl.SSLContext | None, pipe: Pipe, message: Message
    ) -> None:
        self.browser = message.browser
        self.endpoint = ""  # for Playwright
        self._place = place
        self._tls = tls
        self._reader, self._writer = pipe
        self._session, self._path = message.session, message.path
        self._numbers: dict[int, int] = {}  # of published ports
        self._asked: dict[int, asyncio.Future[int]] = {}
        self._last = 0
        self._server: asyncio.Server | None = None
        self._is_driven = False
        self._is_closed = False
        self._has_ended = False  # the browser itself, as the server reported
        self._left = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls, place: RemotePlace, opened: list[RemoteBrowser], *, headed: bool, windows: bool
    ) -> RemoteBrowser:
        """Have a browser started, and put it into `opened`: a cancellation may come too late.

        Raises:
            RemoteBrowserToken: the server has another token.
            RemoteBrowserUnreachable: nothing answers, or the server refuses; it may have no screen.
        """
        try:
            async with asyncio.timeout(START_S):
                opened.append(await cls._open(place, headed=headed, windows=windows))
                return opened[0]
        except WrongToken:
            raise RemoteBrowserToken(address=place.address, reason="it has another token") from None
        except EOFError as failed:
            reason = str(failed) or "the connection ended"
        except OSError as failed:
            reason = why_not_connected(failed)
            if isinstance(failed, ssl.SSLCertVerificationError):
                reason += "; SSL_CERT_FILE names others that are trusted"
            elif isinstance(failed, ssl.SSLError):
                reason += "; it may be a tcp:// server"
        raise RemoteBrowserUnreachable(address=place.address, reason=reason)

    @classmethod
    async def _open(cls, place: RemotePlace, *, headed: bool, windows: bool) -> RemoteBrowser:
        tls = await trust(place)
        pipe = await connect(place, tls, "browser")
        try:
            send(pipe[1], Message(headed=headed, windows=windows))
            message = await read_message(pipe[0])
            if message.code == NoScreen.code:
                reason = "its machine has no screen; use --headless, or no window"
                raise RemoteBrowserUnreachable(address=place.address, reason=reason)
            if message.error:
                raise RemoteBrowserUnreachable(address=place.address, reason=message.error)
            opened = cls(place, tls, pipe, message)
            await opened._begin()
        except BaseException:
            pipe[1].transport.abort()
            raise
        return opened

    async def _begin(self) -> None:
        self._server = await asyncio.start_server(self._on_driver, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.endpoint = f"ws://127.0.0.1:{port}{self._path}"
        self._run(self._follow())
        self._run(self._ping())

    async def publish(self, port: int) -> int:
        """Return the port of the other machine that leads to a `port` of this one.

        Raises:
            RemoteBrowserUnreachable: the connection is lost.
        """
        if self._is_closed:
            raise RemoteBrowserUnreachable(address=self._place.address, reason=_LOST)
        self._last += 1
        self._numbers[self._last] = port
        answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked[self._last] = answered
        send(self._writer, Message(listen=self._last))
        try:
            async with asyncio.timeout(PUBLISH_S):
                return await answered
        except (TimeoutError, EOFError) as failed:
            reason = str(failed) or "it does not answer"
            raise RemoteBrowserUnreachable(address=self._place.address, reason=reason) from failed

    async def was_lost(self) -> bool:
        """Return whether a browser that is gone was lost with its connection; else it ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(NEWS_S):
                await self._left.wait()
        return not self._has_ended

    def withdraw(self, port: int) -> None:
        """Close the other machine's port for `port`; repeated calls do nothing."""
        for number in [one for one, known in self._numbers.items() if known == port]:
            del self._numbers[number]
            send(self._writer, Message(shut=number))

    async def close(self) -> None:
        """End the browser with its connections; repeated calls do nothing."""
        self._is_closed = True
        self._left.set()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(EOFError(_LOST))
        server, self._server = self._server, None
        if server is not None:
            await close_server(server)
        self._writer.transport.abort()
        mine = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not mine]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        """Take the connections of the browser, until the session ends."""
        try:
            while True:
                async with asyncio.timeout(SILENT_S):
                    self._heed(await read_message(self._reader))
        except (EOFError, TimeoutError):
            await self.close()

    def _heed(self, message: Message) -> None:
        """Take a connection of the browser, the answer about a port, or the news of its end."""
        self._has_ended = self._has_ended or message.code == ENDED
        if message.stream:
            if message.listen in self._numbers and len(self._tasks) < MOST_CONNECTIONS:
                self._run(self._take(self._numbers[message.listen], message.stream))
            return
        asked = self._asked.pop(message.listen, None)
        if asked is None or asked.done():
            return
        if message.error:
            asked.set_exception(EOFError(message.error))
        else:
            asked.set_result(message.port)

    async def _ping(self) -> None:
        while True:
            send(self._writer, Message())
            await asyncio.sleep(PING_S)

    async def _take(self, port: int, stream: str) -> None:
        """Carry a connection of the browser to the proxy's `port`."""
        try:
            there = await connect(self._place, self._tls, "stream", f"{self._session}/{stream}")
        except (WrongToken, EOFError, OSError):
            return
        await self._join(there, port)

    async def _join(self, there: Pipe, port: int) -> None:
        try:
            here = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            there[1].transport.abort()  # the context was closed meanwhile
            return
        except asyncio.CancelledError:
            there[1].transport.abort()
            raise
        await relay(there, here)

    def _on_driver(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_driven or self._is_closed:
            writer.transport.abort()  # Playwright connects once
            return
        self._is_driven = True
        self._run(self._drive((reader, writer)))

    async def _drive(self, here: Pipe) -> None:
        """Carry Playwright's connection; the secret path is its key."""
        try:
            there = await connect(self._place, self._tls, "driver", self._session)
        except (WrongToken, EOFError, OSError):
            here[1].transport.abort()
            return
        await relay(here, there)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="remote browser")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
