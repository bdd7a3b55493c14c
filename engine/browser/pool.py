"""The browser's side of a crawl: one context, a few tabs, used again and again.

A tab is renewed when it is spoiled (timeout, crash, dialog, popup, download, cancel) and
after `PAGES_PER_TAB` pages, so that what a site leaves in a renderer does not add up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from playwright.async_api import Error

from engine.browser.contexts import open_context
from engine.browser.gate import Ward
from engine.browser.page import Tab, first_script, open_tab
from engine.errors import BrowserGone
from engine.work.fetch import Fetched, PageOptions

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

    from engine.browser.lane import Lane
    from engine.browser.launch import Chromium
    from engine.browser.session import FetcherOptions

PAGES_PER_TAB = 100
PAGES_PER_CONTEXT = 1_000
OPEN_S = 15.0
SLACK_S = 10.0  # beyond a page's own limits; only a browser that died is cut off by this
CLOSE_S = 2.0


class TabPool:
    """A `Fetcher` on real Chromium; see the module. Made by `BrowserSession.fetcher`."""

    def __init__(self, options: FetcherOptions, browser: Callable[[], Awaitable[Chromium]]) -> None:
        self._options = options
        self._browser = browser
        self._room = asyncio.Semaphore(options.pages)
        self._opening = asyncio.Lock()
        self._chromium: Chromium | None = None
        self._context: BrowserContext | None = None
        self._lane: Lane | None = None
        self._free: list[Tab] = []
        self._doomed: list[Tab] = []
        self._left = PAGES_PER_CONTEXT
        self._busy = 0

    async def fetch(self, url: str, options: PageOptions) -> Fetched:
        """Load one page; see `Fetcher.fetch`. Returns within its limit + 1 s, cleaning apart."""
        await self._options.policy.check(url)
        async with self._room:
            tab: Tab | None = None
            self._busy += 1
            try:
                tab, chromium = await self._tab()
                async with chromium.within(options.timeout_ms / 1000 + SLACK_S):
                    return await tab.take(url, options)
            except (Error, TimeoutError) as gone:
                if tab is not None:
                    tab.spoiled = tab.spoiled or "gone"
                raise BrowserGone(url=url) from gone
            finally:
                self._busy -= 1
                if tab is not None:
                    self._put_back(tab)

    async def close(self) -> None:
        """Close the context and with it every tab; bounded; harmless when called twice."""
        chromium, self._chromium = self._chromium, None
        context, self._context = self._context, None
        for tab in self._free + self._doomed:
            if chromium:
                chromium.gate.dismiss(tab.frame_id)
        self._free, self._doomed = [], []
        if chromium and context and not await _closed(context):
            await chromium.kill()

    def _put_back(self, tab: Tab) -> None:
        if tab.spoiled is None and tab.taken < PAGES_PER_TAB:
            self._free.append(tab)
        else:
            self._doomed.append(tab)

    async def _tab(self) -> tuple[Tab, Chromium]:
        """A tab that is ready; those that are done for are closed first."""
        await self._bury()
        async with self._opening:
            chromium, context = await self._ready_context()
            self._left -= 1
            if self._free:
                return self._free.pop(), chromium
            async with chromium.within(OPEN_S):
                page = await context.new_page()
                return await open_tab(page, chromium.gate, self._ward), chromium

    async def _bury(self) -> None:
        doomed, self._doomed = self._doomed, []
        chromium = self._chromium
        for tab in doomed:
            if chromium is None:
                return
            chromium.gate.dismiss(tab.frame_id)
            if not await tab.close():
                await chromium.kill()  # a tab that cannot be closed goes with its process

    async def _ready_context(self) -> tuple[Chromium, BrowserContext]:
        worn = self._left <= 0 and self._busy <= 1
        if self._chromium is not None and (not self._chromium.alive or worn):
            await self.close()
        if self._chromium is None or self._context is None:
            self._chromium = await self._browser()
            self._left = PAGES_PER_CONTEXT
            async with self._chromium.within(OPEN_S):
                policy, locale = self._options.policy, self._options.locale
                context, self._lane = await open_context(self._chromium, policy, locale=locale)
                await context.add_init_script(first_script())
            self._context = context
        return self._chromium, self._context

    def _ward(self, frames: Callable[[], Awaitable[frozenset[str]]]) -> Ward:
        return Ward(self._options.policy, self._options.credentials, frames, lane=self._lane)


async def _closed(context: BrowserContext) -> bool:
    try:
        async with asyncio.timeout(CLOSE_S):
            await context.close()
    except TimeoutError:
        return False
    except Error:
        return True  # it went with its browser
    return True
