"""Fetches the style sheets of one crawl's pages: each address once, and none that is too much.

As in a browser they belong to the page: no delay stands between them, and what fails is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Final

from engine.errors import EngineError
from engine.work.addresses import link_address
from engine.work.style_sheets import (
    MAX_SHEET_CHARS,
    MAX_SHEETS,
    Rule,
    Sheet,
    parse_sheet,
    sheets_of,
)

SHEET_S: Final = 5.0  # until a sheet has come; later the page goes without
MAX_BYTES: Final = 64 * 1024 * 1024  # of all sheets of a crawl
MAX_DEPTH: Final = 6  # sheets that import each other, one after another
MAX_ADDED: Final = 60  # sheets of one page with all that they import
MAX_KNOWN: Final = 2_000  # sheets of a crawl that are remembered, and asked for at all
_THREAD_FROM_CHARS: Final = 64 * 1024
_NONE: Final = Sheet()

Get = Callable[[str, int], Awaitable[bytes]]
"""An address and how many bytes at most; raises EngineError, or gives nothing for what is none."""
Styles = tuple[tuple[Rule, ...], ...]


class SheetLoader:
    """The style sheets that one crawl has met; used by several workers at once."""

    def __init__(self, get: Get) -> None:
        self._get = get
        self._room = MAX_BYTES
        self._loads: dict[str, asyncio.Task[Sheet]] = {}
        self._inline: dict[bytes, Sheet] = {}

    async def close(self) -> None:
        loads, self._loads = list(self._loads.values()), {}
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)

    async def of_page(self, html: str, url: str, deadline: float) -> Styles:
        """The rules for a page, sheet by sheet; `deadline` is of the loop's clock."""
        base, named = sheets_of(html)
        if not named:
            return ()
        address = link_address(url, base) if base else None
        base = url if address is None else address.url
        order: list[tuple[str, Sheet]] = []
        for each in named:
            place = "" if each.css else _resolved(base, each.href)
            order.append((place, await self._parsed(each.css) if each.css else _NONE))
        await self._loaded([place for place, _ in order], deadline)
        rules: list[tuple[Rule, ...]] = []
        for place, sheet in order:
            whole = self._known(place) if place else sheet
            await self._add(rules, place or base, whole, deadline)
        return tuple(each for each in rules if each)

    async def _add(
        self,
        rules: list[tuple[Rule, ...]],
        at: str,
        sheet: Sheet,
        deadline: float,
        depth: int = 0,
    ) -> None:
        """Add a sheet's rules behind those of the sheets that it imports."""
        places = [_resolved(at, to) for to in sheet.imports[:MAX_SHEETS]]
        if depth == MAX_DEPTH or len(rules) >= MAX_ADDED:
            return
        await self._loaded(places, deadline)
        for place in places:
            await self._add(rules, place, self._known(place), deadline, depth + 1)
        rules.append(sheet.rules)

    async def _loaded(self, places: Sequence[str], deadline: float) -> None:
        """Wait for these sheets, or for the page's time."""
        for place in places:
            if place and place not in self._loads and len(self._loads) < MAX_KNOWN:
                self._loads[place] = asyncio.create_task(self._load(place))
        coming = [
            load
            for place in places
            if (load := self._loads.get(place)) is not None and not load.done()
        ]
        if coming:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait(coming, timeout=left)

    def _known(self, place: str) -> Sheet:
        load = self._loads.get(place)
        if load is None or not load.done() or load.cancelled():
            return _NONE
        return load.result()

    async def _load(self, place: str) -> Sheet:
        if self._room <= 0:
            return _NONE
        try:
            async with asyncio.timeout(SHEET_S):
                body = await self._get(place, MAX_SHEET_CHARS)
        except (EngineError, TimeoutError):
            return _NONE
        self._room -= len(body)
        return await _parsed(body.decode("utf-8-sig", "replace"))

    async def _parsed(self, css: str) -> Sheet:
        """The rules of a `style` element, which often stands in each page."""
        key = blake2b(css.encode("utf-8", "replace"), digest_size=16).digest()
        if key not in self._inline:
            if len(self._inline) >= MAX_KNOWN:
                del self._inline[next(iter(self._inline))]
            self._inline[key] = await _parsed(css)
        return self._inline[key]


async def _parsed(css: str) -> Sheet:
    if len(css) <= _THREAD_FROM_CHARS:
        return parse_sheet(css)
    return await asyncio.to_thread(parse_sheet, css)


def _resolved(base: str, href: str) -> str:
    address = link_address(base, href) if href else None
    return "" if address is None else address.asked
