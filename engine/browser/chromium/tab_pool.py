"""The browser's side of a crawl: a few tabs, in a context that is renewed now and then.

When the context or its browser is worn, new pages go to a fresh one, while those that are
under way are finished where they are: nothing is loaded twice, and nobody waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from playwright.async_api import Error

from engine.browser.chromium.contexts import open_context
from engine.browser.chromium.crawl_context import OPEN_S, Berth, NoTab
from engine.browser.egress.navigation_filter import Ward
from engine.browser.page.crawl_tab import first_script
from engine.browser.page.held_open import HeldOpen
from engine.model.errors import BrowserGone
from engine.pages.fetch import Fetched, PageOptions
from engine.secrets.echo_matching import Echoes

if TYPE_CHECKING:
    from playwright.async_api import Page

    from engine.browser.chromium.browser_session import FetcherOptions
    from engine.browser.chromium.launch import Chromium

TRIES: Final = 3  # a browser may die, or be killed, before the page has begun: nobody's fault


class TabPool:
    """A `Fetcher` on real Chromium; see the module. Made by `BrowserSession.fetcher`."""

    def __init__(self, options: FetcherOptions, browser: Callable[[], Awaitable[Chromium]]) -> None:
        self._options = options
        self._browser = browser
        self._room = asyncio.Semaphore(options.pages)
        self._opening = asyncio.Lock()
        self._held = HeldOpen()
        self._echoes = Echoes(value for value, _ in options.secrets)
        self._berth: Berth | None = None  # where new pages go
        self._leaving: list[Berth] = []

    async def fetch(self, url: str, options: PageOptions) -> Fetched:
        """Load one page; see `Fetcher.fetch`. Returns within its limit + 1 s, cleaning apart."""
        await self._options.policy.check(url)
        async with self._room:
            for _ in range(TRIES):
                with suppress(Error, TimeoutError, NoTab):
                    return await (await self._ready(fresh=options.fresh)).take(url, options)
            raise BrowserGone(url=url)

    @property
    def pages(self) -> list[Page]:
        """The tabs that are open, for who looks on."""
        berths = [*self._leaving, *filter(None, [self._berth])]
        return [page for berth in berths if berth.lives for page in berth.context.pages]

    async def close(self) -> None:
        """Close the contexts and with them every tab; bounded; harmless when called twice."""
        berths, self._leaving = self._leaving, []
        if self._berth is not None:
            berths.append(self._berth)
            self._berth = None
        await asyncio.gather(*(berth.close() for berth in berths))

    async def _ready(self, *, fresh: bool = False) -> Berth:
        """Where the next page goes; `fresh`: to a context that no page was in yet."""
        berth = self._berth
        if fresh and berth is not None and berth.used:
            berth.wear_out()
        await self._leave()
        if berth is not None and berth.lives and (not berth.worn or self._opening.locked()):
            return berth
        async with self._opening:
            berth = self._berth
            if berth is not None and berth.lives and not berth.worn:
                return berth
            opened = await self._open()
            if berth is not None:
                self._leaving.append(berth)
            self._berth = opened
        if fresh:
            await self._leave()  # what earlier pages still do there is nothing of this one
        return opened

    async def _leave(self) -> None:
        """Close the contexts in which the last page is done."""
        done = [berth for berth in self._leaving if not berth.busy]
        if done:
            self._leaving = [berth for berth in self._leaving if berth.busy]
            await asyncio.gather(*(berth.close() for berth in done))

    async def _open(self) -> Berth:
        chromium = await self._browser()
        async with chromium.within(OPEN_S):
            policy, options = self._options.policy, self._options
            context, lane = await open_context(
                chromium,
                policy,
                script=first_script(),
                locale=options.locale,
                user_agent=options.user_agent,
            )
        known = self._options.credentials
        return Berth(
            chromium,
            context,
            lambda frames: Ward(policy, known, frames, lane=lane),
            self._held,
            self._echoes,
        )
