"""Recording of what the pages of one tab receive, for a web archive.

Passive: Chromium keeps the bodies, and each is read as soon as its request has finished. Frames of
other sites and workers are included. What a page's end takes away before it was read is counted.
In a task with a sign-in the texts of a page are stored when it is at rest, because only then all
tokens are known that the page was given.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from playwright.async_api import Error

from engine.archive.exchange import Exchange
from engine.model.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from playwright.async_api import Page, Request, Response

    from engine.archive.exchange import Archive

READ_S: Final = 20.0  # for one body; 20 MB of text take some seconds
DRAIN_S: Final = 5.0  # for the bodies of a page that is at rest
AT_ONCE: Final = 6  # bodies of one crawl in memory, each up to 20 MB
HELD_BYTES: Final = 8 * 1024 * 1024  # of one page, until it is at rest
MOST_HELD: Final = 1_000  # answers of it
_NO_TEXT: Final = ("image/", "font/", "audio/", "video/")
_WEB: Final = ("http://", "https://")
_BODILESS: Final = frozenset({204, 205, 304})


class NetworkCapture:
    """Records the finished requests of `page` in `archive`; `room` limits the bodies in memory.

    `holds`: the texts are stored when the page is at rest. `peer` returns the server's address for
    a URL.
    """

    def __init__(
        self,
        page: Page,
        archive: Archive,
        room: asyncio.Semaphore,
        *,
        holds: bool = False,
        peer: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._holds, self._peer = holds, peer
        self._held: deque[Exchange] = deque()
        self._held_bytes = 0
        self._page = page
        self._archive = archive
        self._reading: set[asyncio.Task[None]] = set()
        self._room = room
        self._failed: EngineError | None = None
        page.on("requestfinished", self._on_finished)
        page.on("requestfailed", self._on_failed)

    @property
    def ended(self) -> bool:
        """Whether its tab is closed, and everything stored."""
        return not self._reading and not self._held and self._page.is_closed()

    async def drain(self) -> None:
        """Wait until the bodies of the page are stored, before the page is left.

        Raises:
            EngineError: the archive could not be written.
        """
        if self._reading:
            await asyncio.wait(self._reading, timeout=DRAIN_S)
        await self._store_held()
        if self._failed is not None:
            raise self._failed

    async def close(self) -> None:
        """Wait for the last records, after the tab was closed: no body can be read any more."""
        if self._reading:
            await asyncio.wait(self._reading)
        await self._store_held()

    def _on_finished(self, request: Request) -> None:
        if request.url.startswith(_WEB):
            self._start(self._record(request))

    def _on_failed(self, request: Request) -> None:
        if request.url.startswith(_WEB) and request.existing_response is not None:
            self._archive.leave_out("unfinished")

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="record a request")
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _record(self, request: Request) -> None:
        async with self._room:
            if self._archive.is_full:
                self._archive.leave_out("over_limit")
                return
            try:
                async with asyncio.timeout(READ_S):
                    exchange = await _exchange(request, self._peer(request.url))
            except (Error, TimeoutError):
                self._archive.leave_out("unreadable")
                return
            if exchange is None:
                return
            if self._holds and self._may_hold(exchange):
                self._held.append(exchange)
                self._held_bytes += len(exchange.body)
            else:
                await self._store(exchange)

    def _may_hold(self, exchange: Exchange) -> bool:
        kind = next((v for name, v in exchange.headers if name.lower() == "content-type"), "")
        size = self._held_bytes + len(exchange.body)
        has_room = size <= HELD_BYTES and len(self._held) < MOST_HELD
        return has_room and not kind.strip().lower().startswith(_NO_TEXT)

    async def _store_held(self) -> None:
        while self._held:
            exchange = self._held.popleft()
            self._held_bytes -= len(exchange.body)
            await self._store(exchange)

    async def _store(self, exchange: Exchange) -> None:
        try:
            await self._archive.record(exchange)
        except EngineError as failed:
            self._failed = self._failed or failed


async def _exchange(request: Request, peer: str) -> Exchange | None:
    """Read a finished request; None if it had no answer. Raises playwright.Error."""
    response = request.existing_response or await request.response()
    if response is None:
        return None
    asked, headers, body = await asyncio.gather(
        request.headers_array(), response.headers_array(), _body(request, response)
    )
    began_ms = request.timing["startTime"]
    return Exchange(
        url=request.url,
        method=request.method,
        request_headers=[(one["name"], one["value"]) for one in asked],
        status=response.status,
        headers=[(one["name"], one["value"]) for one in headers],
        at_ms=round(began_ms if began_ms > 0 else time.time() * 1000),
        body=body,
        request_body=request.post_data_buffer or b"",
        reason=response.status_text,
        peer=peer,
    )


async def _body(request: Request, response: Response) -> bytes:
    redirects = 300 <= response.status < 400 and "location" in response.headers
    if redirects or request.method == "HEAD" or response.status in _BODILESS:
        return b""  # Chromium keeps no body of a redirect
    return await response.body()
