"""Fetches what the pages of one crawl share, style sheets and scripts: each address once.

As in a browser they belong to the page: no delay stands between them, and what fails is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from hashlib import blake2b
from typing import Final, Generic, TypeVar

from engine.model.addresses import in_charset, link_address
from engine.model.errors import EngineError

ASSET_S: Final = 5.0  # until one has come; later the page goes without
MAX_ASSET_CHARS: Final = 1024 * 1024  # of one; the rest is not read
MAX_BYTES: Final = 64 * 1024 * 1024  # of all of a crawl
MAX_KNOWN: Final = 2_000  # of a crawl that are remembered, and asked for at all
_THREAD_FROM_CHARS: Final = 64 * 1024

Get = Callable[[str, int], Awaitable[bytes]]
"""An address and how many bytes at most; raises EngineError, or gives nothing for what is none."""
T = TypeVar("T")


class AssetLoader(Generic[T]):
    """What one crawl has met, as `parse` made it of each text; used by several workers at once.

    `none` stands for what did not come.
    """

    def __init__(self, get: Get, parse: Callable[[str], T], none: T) -> None:
        self._get = get
        self._parse = parse
        self._none = none
        self._room = MAX_BYTES
        self._loads: dict[str, asyncio.Task[T]] = {}
        self._inline: dict[bytes, T] = {}

    async def close(self) -> None:
        loads, self._loads = list(self._loads.values()), {}
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)

    async def load(self, places: Iterable[str], deadline: float) -> None:
        """Wait for these addresses, or for the page's time; `deadline` is of the loop's clock."""
        coming: list[asyncio.Task[T]] = []
        for place in filter(None, places):
            if place not in self._loads and len(self._loads) < MAX_KNOWN:
                self._loads[place] = asyncio.create_task(self._load(place))
            load = self._loads.get(place)
            if load is not None and not load.done():
                coming.append(load)
        if coming:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait(coming, timeout=left)

    def known(self, place: str) -> T:
        load = self._loads.get(place)
        if load is None or not load.done() or load.cancelled():
            return self._none
        return load.result()

    async def parsed(self, text: str) -> T:
        """What stands in the page itself, which often is the same in each."""
        key = blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
        if key not in self._inline:
            if len(self._inline) >= MAX_KNOWN:
                del self._inline[next(iter(self._inline))]
            self._inline[key] = await self._made(text)
        return self._inline[key]

    async def _load(self, place: str) -> T:
        if self._room <= 0:
            return self._none
        try:
            async with asyncio.timeout(ASSET_S):
                body = await self._get(place, MAX_ASSET_CHARS)
        except (EngineError, TimeoutError):
            return self._none
        if not body:
            return self._none
        self._room -= len(body)
        return await self._made(body.decode("utf-8-sig", "replace"))

    async def _made(self, text: str) -> T:
        if len(text) <= _THREAD_FROM_CHARS:
            return self._parse(text)
        return await asyncio.to_thread(self._parse, text)


def resolved(base: str, href: str, charset: str = "") -> str:
    """The address that a page in `charset` asks for; empty for what is none."""
    address = link_address(base, in_charset(href, charset)) if href else None
    return "" if address is None else address.asked
