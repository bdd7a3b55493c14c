"""The browser's side of a crawl: a few tabs, in a context that is renewed now and then.

When the context or its browser is worn, new pages go to a fresh one, while those that are
under way are finished where they are: nothing is loaded twice, and nobody waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from playwright.async_api import Error

from engine.browser.chromium.context_closing import close_context
from engine.browser.chromium.contexts import open_context
from engine.browser.chromium.cookie_jar import CUT, is_suspect, unproved
from engine.browser.egress.navigation_filter import Ward
from engine.browser.page.crawl_tab import Tab, first_script
from engine.browser.page.failures import LeftByOthers, PageFloods, PageTooHeavy, no_answer
from engine.browser.page.held_open import HeldOpen
from engine.model.errors import BrowserGone, PageError
from engine.pages.fetch import Fetched, PageOptions
from engine.secrets.echo_matching import Echoes

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

    from engine.browser.chromium.browser_session import FetcherOptions
    from engine.browser.chromium.launch import Chromium


# One context of one browser, and the tabs that a crawl keeps in it, used again and again.
#
# A tab is renewed when it is spoiled (timeout, crash, dialog, popup, download, cancel), when a
# page of the browser holds much memory, and after `PAGES_PER_TAB` pages, so that what a site
# leaves in a renderer does not add up. What a page does to its tab stays with that page: only
# a browser that says nothing any more is given up as a whole.

PAGES_PER_TAB = 100
PAGES_PER_CONTEXT = 1_000
OPEN_S = 15.0
SLACK_S = 10.0  # beyond a page's own limits; only a browser that died is cut off by this
CLOSE_S = 4.0
MakeWard = Callable[..., Ward]


class NoTab(Exception):
    """There is no tab to load the page in: the page can be taken elsewhere."""


class Berth:
    """See the module. Made by `TabPool`, which opens another one when this one is worn."""

    def __init__(
        self,
        chromium: Chromium,
        context: BrowserContext,
        ward: MakeWard,
        held: HeldOpen,
        echoes: Echoes,
    ) -> None:
        self.chromium = chromium
        self.context = context
        self.free: list[Tab] = []
        self.busy = 0
        self._ward = ward
        self._held = held
        self._echoes = echoes
        self._doomed: list[Tab] = []
        self._bounded_s = 0.0  # when cookies were deleted last
        self._left = PAGES_PER_CONTEXT

    @property
    def lives(self) -> bool:
        return self.chromium.alive

    @property
    def worn(self) -> bool:
        """Should new pages go elsewhere?"""
        return self._left <= 0 or self.chromium.worn

    @property
    def used(self) -> bool:
        """Was a page in it?"""
        return self._left < PAGES_PER_CONTEXT

    def wear_out(self) -> None:
        """Send new pages elsewhere from now on."""
        self._left = 0

    async def take(self, url: str, options: PageOptions) -> Fetched:
        """Load one page; see `Fetcher.fetch`.

        Raises:
            NoTab: the browser died or hangs, and nothing of the page has begun.
        """
        tab: Tab | None = None
        began_s = time.monotonic()
        self.busy += 1
        self._left -= 1
        self.chromium.pages += 1
        try:
            tab = await self._opened()
            async with self.chromium.within(options.timeout_ms / 1000 + SLACK_S):
                fetched = await tab.take(url, options)
                if not options.fresh:
                    await self._doubt(tab, fetched, options, began_s)
                if await tab.jar.bound(fetched.final_url, fetched.cookie_chars):
                    self._bounded_s = time.monotonic()
                return fetched
        except PageError as failed:
            if tab is not None and not options.fresh and failed.kind in CUT:
                failed.unproved |= await self._cookies_explain(tab, url, 0, began_s)
            failed.unproved |= failed.kind == "timeout" and self.chromium.was_flooded(began_s)
            raise await self._reason(failed, url, options, began_s) from failed
        except (Error, TimeoutError) as gone:
            if tab is not None:
                tab.spoiled = tab.spoiled or "gone"
            raise self._gone(url, options, began_s) from gone
        finally:
            self.busy -= 1
            if tab is not None:
                self._put_back(tab)

    async def close(self) -> None:
        """Close the context and with it every tab; bounded; harmless when called twice."""
        for tab in self.free + self._doomed:
            self.chromium.gate.dismiss(tab.frame_id)
        self.free, self._doomed = [], []
        if self.lives:
            await close_context(self.chromium, self.context, CLOSE_S)

    async def _doubt(
        self, tab: Tab, fetched: Fetched, options: PageOptions, began_s: float
    ) -> None:
        """Raise when other pages may be why the answer is what it is."""
        if await self._cookies_explain(tab, fetched.url, fetched.status, began_s):
            raise unproved(fetched.status)
        if await self._is_poorer(tab, fetched, began_s):
            self.wear_out()
            raise LeftByOthers()
        if not fetched.settled and self.chromium.was_flooded(began_s):
            raise no_answer(options.timeout_ms)  # it may have had no time to come to rest

    async def _cookies_explain(self, tab: Tab, url: str, status: int, began_s: float) -> bool:
        """May cookies be why the page was refused, also those that are deleted again by now?"""
        deleted = self._bounded_s > began_s and is_suspect(status)
        if not (deleted or await tab.jar.may_explain(url, status)):
            return False
        self.wear_out()  # the pages after it would be refused as well
        return True

    async def _is_poorer(self, tab: Tab, fetched: Fetched, began_s: float) -> bool:
        """May the page lack something because of what other pages left in the context?"""
        if fetched.storage_full:
            return True
        if not fetched.part_refused:
            return False
        return self._bounded_s > began_s or await tab.jar.holds(fetched.final_url)

    def _gone(self, url: str, options: PageOptions, began_s: float) -> Exception:
        """Why the browser is gone: of a page that was alone, that it flooded it until then."""
        flooded = options.fresh and self.chromium.was_flooded(began_s)
        return PageFloods() if flooded else BrowserGone(url=url)

    async def _reason(
        self, failed: PageError, url: str, options: PageOptions, began_s: float
    ) -> Exception:
        """What really ended the page: its memory, a browser that hangs, or the page itself."""
        if failed.kind == "crash" and self.chromium.load.took_too_much():
            return PageTooHeavy()
        if failed.kind == "crash" and self.chromium.was_flooded():
            return PageFloods()
        if failed.kind != "timeout" or await self.chromium.answers():
            return failed
        # A page that floods the browser with messages holds up what all others say.
        if await self.chromium.calm() and await self.chromium.answers():
            return failed
        self.chromium.give_up()
        return self._gone(url, options, began_s)

    def _put_back(self, tab: Tab) -> None:
        worn = tab.taken >= PAGES_PER_TAB or self.chromium.load.heavy
        (self.free if tab.spoiled is None and not worn else self._doomed).append(tab)

    async def _opened(self) -> Tab:
        try:
            return await self._tab()
        except (Error, TimeoutError) as gone:
            self.chromium.give_up()
            raise NoTab from gone

    async def _tab(self) -> Tab:
        """A tab that is ready; those that are done for are closed first."""
        if self.chromium.load.heavy:  # the next page would be blamed for what the last one left
            self._doomed += self.free
            self.free = []
        await self._bury()
        while self.free:
            tab = self.free.pop()
            if tab.spoiled is None:
                return tab
            self._doomed.append(tab)  # it crashed while it waited
        async with self.chromium.within(OPEN_S):
            return await self._new_tab()

    async def _new_tab(self) -> Tab:
        """A tab with the gate watching its documents."""
        page = await self.context.new_page()
        wire = await self.context.new_cdp_session(page)
        told = await wire.send("Target.getTargetInfo")
        tab = Tab(page, wire, str(told["targetInfo"]["targetId"]), self._held)
        tab.ward = self._ward(tab.frames)
        tab.echoes = self._echoes
        self.chromium.gate.admit(tab.frame_id, tab.ward)
        return tab

    async def _bury(self) -> None:
        while self._doomed:  # one by one: whoever is called off leaves the rest to the next
            tab = self._doomed.pop()
            self.chromium.gate.dismiss(tab.frame_id)
            if await tab.close():
                continue
            if not await self.chromium.calm() or not await tab.close():
                await self.chromium.kill()  # a tab that cannot be closed goes with its process


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
