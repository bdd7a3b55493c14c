"""Tab pool of a crawl, in a context that is renewed from time to time.

When the context or its browser is worn, new pages use a fresh one, while pages in progress are
finished where they are: nothing is loaded twice, and no page waits. Only if earlier pages may fail
new ones in the old context, new pages wait until the fresh one is open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from playwright.async_api import Error

from engine.browser.chromium.browser_instance import Opened, close_context, open_context
from engine.browser.chromium.cookie_jar import CUT, hear_cookies, is_suspect, unproved
from engine.browser.chromium.navigation_filter import TabFilter
from engine.browser.chromium.user_agent import present
from engine.browser.direct.devtools_connection import NO_BODIES
from engine.browser.direct.pushed import PushedExtraction
from engine.browser.page.consent import ConsentBanners, TabConsent
from engine.browser.page.crawl_tab import PENDING, HeldOpen, Tab, first_script
from engine.browser.page.failures import (
    LeftByOthers,
    PageFloods,
    PageTooHeavy,
    Withheld,
    no_answer,
)
from engine.browser.page.network_capture import AT_ONCE, NetworkCapture
from engine.browser.page.request_queue import Connections, RequestQueue
from engine.egress.egress_policy import Place, place_of
from engine.egress.proxy_listener import MOST_TO_PLACE, STALL_S
from engine.model.errors import BrowserGone, PageError, PageOutOfFiles
from engine.model.process_limits import has_few_files, was_short
from engine.pages.fetch import PASSING, Fetched, IdleState, OnIdle, PageOptions
from engine.secrets.value_search import Echoes

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

    from engine.browser.chromium.browser_options import FetcherOptions
    from engine.browser.chromium.launch import Chromium
    from engine.browser.direct.devtools_connection import Session
    from engine.browser.direct.direct_page import DirectPage
    from engine.profiles.sign_in import SignIn
    from engine.profiles.storage_state import State


# One context of one browser, with reused tabs of a crawl.
#
# A tab is renewed when it is spoiled (timeout, crash, dialog, popup, download, cancel), when a
# page of the browser holds much memory, and after `PAGES_PER_TAB` pages, so that a site's remains
# in a renderer do not accumulate. A tab that no page needed for `IDLE_S` is closed: where fewer
# pages load at once than before, a lack of memory may be the reason. The effects of a page on its
# tab stay with that page: only a browser that no longer responds is abandoned as a whole.

PAGES_PER_TAB = 100
PAGES_PER_CONTEXT = 1_000
IDLE_S = 10.0
OPEN_S = 15.0
SLACK_S = 10.0  # added to a page's own limits; reached only if the browser died
CLOSE_S = 4.0
MAX_DOUBTS, MAX_WEAK_DOUBTS = 10, 3
OUTLIVES_S = 30.0  # Chromium's limit for requests whose page was left
MOST_OUTLIVING = MOST_TO_PLACE
MakeTabFilter = Callable[..., TabFilter]


class NoTab(Exception):
    """No tab is available to load the page, which can be loaded in another context."""


class Doubts:
    """Limit of the second attempts in one crawl that change nothing."""

    def __init__(self) -> None:
        self._in_vain = 0

    def may_retry(self, limit: int) -> bool:
        """Return whether one more page may be loaded a second time, and count it."""
        if self._in_vain >= limit:
            return False
        self._in_vain += 1
        return True

    def confirm(self) -> None:
        """Record that a second attempt was better than the first."""
        self._in_vain = max(self._in_vain - 1, 0)


class CrawlContext:
    """A context with reused tabs; `TabPool` opens another one when it is worn."""

    def __init__(
        self,
        chromium: Chromium,
        opened: Opened,
        tab_filter: MakeTabFilter,
        held: HeldOpen,
        doubts: Doubts,
        echoes: Callable[[], Echoes],
    ) -> None:
        self.chromium = chromium
        self.context, self._listener = opened
        self.began: State = {}  # the state of a sign-in with which it was opened
        self.free: list[Tab] = []
        self.busy = 0
        self._make_tab_filter = tab_filter
        self._held = held
        self._doubts = doubts
        self._echoes = echoes
        self.make_capture: Callable[[Page], NetworkCapture] | None = None  # for a web archive
        self.sign_in: SignIn | None = None  # which learns the tokens that the pages are given
        self.at_rest: Callable[[str], Awaitable[None]] | None = None
        self.banners: ConsentBanners | None = None  # to dismiss
        self._connections = Connections()
        self._captures: list[NetworkCapture] = []
        self._doomed: list[Tab] = []
        self._bounded_s = 0.0  # time of the last deletion of cookies
        self._outliving: list[tuple[float, int]] = []  # when, and how many requests a page left
        self._exhausted = False  # pages left requests that may hold all connections to a place
        self._left = PAGES_PER_CONTEXT
        self.harms = False  # what earlier pages left in it may fail new pages

    @property
    def lives(self) -> bool:
        return self.chromium.alive

    @property
    def worn(self) -> bool:
        """Whether new pages should use another context."""
        return self._left <= 0 or self.chromium.worn

    @property
    def used(self) -> bool:
        """Whether a page was loaded in it."""
        return self._left < PAGES_PER_CONTEXT

    def wear_out(self) -> None:
        """Send new pages to another context from now on, because this one may harm them."""
        self._left = 0
        self.harms = True

    async def take(self, url: str, options: PageOptions, on_idle: OnIdle | None = None) -> Fetched:
        """Load one page; see `Fetcher.fetch`.

        Raises:
            NoTab: the browser died or hangs, and the page has not begun.
        """
        tab: Tab | None = None
        began_s = time.monotonic()
        self.busy += 1
        self._left -= 1
        self.chromium.pages += 1
        try:
            tab = await self._opened()
            tab.idle.begin(self._reporting(on_idle))
            async with self.chromium.within(options.timeout_ms / 1000 + SLACK_S):
                fetched = await tab.take(url, options)
                await self._doubt(tab, fetched, options, began_s)
                self._held.note(tab.left_open)
                self._note_outliving(tab.outliving)
                if await tab.jar.bound(fetched.final_url, fetched.cookie_chars):
                    self._bounded_s = time.monotonic()
            tab.idle.end()
            await self._click_links(tab, fetched, options)
            if not fetched.settled and not await self.chromium.network_answers():
                self.chromium.give_up()  # the next page would not load in it
            return fetched
        except PageError as failed:
            if await self._descriptors_explain(failed, began_s):
                raise PageOutOfFiles() from failed
            if tab is not None and not options.fresh:
                failed.unproved |= await self._others_explain(failed, tab, url, options, began_s)
            failed.unproved |= failed.kind == "timeout" and self.chromium.was_flooded(began_s)
            raise await self._reason(failed, url, options, began_s) from failed
        except (Error, TimeoutError) as gone:
            if tab is not None:
                tab.spoiled = tab.spoiled or "gone"
            if has_few_files() or was_short(began_s):
                raise PageOutOfFiles() from gone
            raise self._gone(url, options, began_s) from gone
        finally:
            self.busy -= 1
            if tab is not None:
                tab.idle.end()
                self._put_back(tab)

    def _reporting(self, on_idle: OnIdle | None) -> OnIdle | None:
        """Return the report of one page; none in a large browser, which has no room for more."""
        if on_idle is None or not self.chromium.load.is_roomy:
            return None
        return partial(self._report, on_idle)

    def _report(self, on_idle: OnIdle, state: IdleState) -> None:
        if state == "again":
            self._held.expect_crowd()
        on_idle(state)

    async def _click_links(self, tab: Tab, fetched: Fetched, options: PageOptions) -> None:
        """Click the links of a page whose result is known; a browser that dies cuts them short."""
        if not options.click_links:
            return
        try:
            async with self.chromium.within(options.clicks_ms / 1000 + SLACK_S):
                await tab.click_links(fetched, options)
        except (Error, TimeoutError):
            fetched.clicks_cut = True
            tab.spoiled = tab.spoiled or "gone"

    async def close(self) -> None:
        """Close the context and its tabs within a limit; repeated calls do nothing."""
        for tab in self.free + self._doomed:
            self.chromium.navigation_filter.dismiss(tab.frame_id)
        self.free, self._doomed = [], []
        if self.lives:
            await close_context(self.chromium, self.context, CLOSE_S)
        await asyncio.gather(*(capture.close() for capture in self._captures))

    async def _doubt(
        self, tab: Tab, fetched: Fetched, options: PageOptions, began_s: float
    ) -> None:
        """Raise if other pages may have influenced the result."""
        if options.fresh:
            if fetched.settled:
                self._doubts.confirm()
            return
        if await self._cookies_explain(tab, fetched.url, fetched.status, began_s):
            raise unproved(fetched.status, fetched.retry_after_s)
        if await self._is_poorer(tab, fetched, began_s):
            self.wear_out()
            raise LeftByOthers()
        if not fetched.settled and (
            self.chromium.was_flooded(began_s) or not await self.chromium.network_answers()
        ):
            raise no_answer(options.timeout_ms)  # it may have had no time to come to rest
        if not fetched.settled and self._withheld(
            tab, fetched.final_url, options, began_s, begun=True
        ):
            raise Withheld()

    async def _descriptors_explain(self, failed: PageError, since_s: float) -> bool:
        """Return whether a lack of descriptors, here or in the browser, may explain the failure."""
        if failed.kind == "crash":
            return has_few_files() or was_short(since_s)
        if failed.kind not in PASSING and failed.kind != "no_content":
            return False
        return was_short(since_s) or await self.chromium.lacks_files()

    def _note_outliving(self, count: int) -> None:
        """Record requests of a page that continue without it (`fetch` with `keepalive`)."""
        now_s = time.monotonic()
        self._outliving = [one for one in self._outliving if one[0] > now_s - OUTLIVES_S]
        self._outliving += [(now_s, count)] * bool(count)
        if sum(number for _, number in self._outliving) >= MOST_OUTLIVING:
            self._exhausted = True
            self.wear_out()

    async def _others_explain(
        self, failed: PageError, tab: Tab, url: str, options: PageOptions, began_s: float
    ) -> bool:
        """Return whether what other pages left or hold may explain the failure."""
        if failed.kind == "timeout":
            return self._withheld(tab, url, options, began_s, begun=tab.begun)
        return failed.kind in CUT and await self._cookies_explain(tab, url, 0, began_s)

    def _withheld(
        self, tab: Tab, url: str, options: PageOptions, began_s: float, *, begun: bool
    ) -> bool:
        """Return whether other pages may have held the connections that the page needed."""
        if PAGES_PER_CONTEXT - self._left == 1:
            return False  # it was alone
        place = place_of(url)
        proved = self._exhausted or self._listener.withheld(place, began_s, begun=begun)
        if not proved and not self._may_have_waited(place, options, began_s, begun=begun):
            return False
        self.wear_out()  # later pages would wait as well
        return self._doubts.may_retry(MAX_DOUBTS if proved or tab.waited else MAX_WEAK_DOUBTS)

    def _may_have_waited(
        self, place: Place, options: PageOptions, began_s: float, *, begun: bool
    ) -> bool:
        """Return whether a page whose connections are unknown may have waited for one."""
        if begun and options.wait_for:
            return False  # it waited for a selector
        return self._listener.is_bypassed(place) and time.monotonic() - began_s >= STALL_S

    async def _cookies_explain(self, tab: Tab, url: str, status: int, began_s: float) -> bool:
        """Return whether cookies, also deleted ones, may explain the refusal of the page."""
        deleted = self._bounded_s > began_s and is_suspect(status)
        if not (deleted or await tab.jar.may_explain(url, status)):
            return False
        self.wear_out()  # later pages would be refused as well
        return True

    async def _is_poorer(self, tab: Tab, fetched: Fetched, began_s: float) -> bool:
        """Return whether the page may lack parts because of other pages' data in the context."""
        if fetched.storage_full:
            return True
        if not fetched.part_refused:
            return False
        return self._bounded_s > began_s or await tab.jar.holds(fetched.final_url)

    def _gone(self, url: str, options: PageOptions, began_s: float) -> Exception:
        """Return the reason of a browser's end: a flood, if the page was alone in it."""
        flooded = options.fresh and self.chromium.was_flooded(began_s)
        return PageFloods() if flooded else BrowserGone(url=url)

    async def _reason(
        self, failed: PageError, url: str, options: PageOptions, began_s: float
    ) -> Exception:
        """Return the cause of a page's end: its memory, a hung browser, or the page itself."""
        if failed.kind == "crash" and self.chromium.load.took_too_much():
            return PageTooHeavy()
        if failed.kind == "crash" and self.chromium.was_flooded():
            return PageFloods()
        if failed.kind != "timeout":
            return failed
        if await self.chromium.answers():
            if not await self.chromium.network_answers():
                self.chromium.give_up()  # nothing loads in it, and closing the page does not help
                failed.unproved, failed.proved = not options.fresh, options.fresh
            return failed
        # A page that floods the browser with messages delays the messages of all others.
        if await self.chromium.calm() and await self.chromium.answers():
            return failed
        self.chromium.give_up()
        return self._gone(url, options, began_s)

    def _put_back(self, tab: Tab) -> None:
        tab.queue.end()
        tab.idle_since_s = time.monotonic()
        worn = tab.page_count >= PAGES_PER_TAB or self.chromium.load.heavy
        (self.free if tab.spoiled is None and not worn else self._doomed).append(tab)
        if tab.connections or tab.clicked:
            self.chromium.see_to(self._bury())  # now, because other pages may wait for them

    async def _opened(self) -> Tab:
        try:
            return await self._tab()
        except (Error, TimeoutError) as gone:
            self.chromium.give_up()
            raise NoTab from gone

    async def _tab(self) -> Tab:
        """Return a usable tab, after closing unusable ones."""
        if self.chromium.load.heavy:  # else the next page is blamed for the last one's memory
            self._doomed += self.free
            self.free = []
        self._close_unused()
        await self._bury()
        while self.free:
            tab = self.free.pop()
            if tab.spoiled is None:
                return tab
            self._doomed.append(tab)  # it crashed while idle
        async with self.chromium.within(OPEN_S):
            return await self._new_tab()

    def _close_unused(self) -> None:
        """Close tabs that no page needed for a while, in the background: the next page goes on."""
        unused_s = time.monotonic() - IDLE_S
        while len(self.free) > 1 and self.free[0].idle_since_s < unused_s:  # the last one is next
            tab = self.free.pop(0)
            self.chromium.navigation_filter.dismiss(tab.frame_id)
            self.chromium.see_to(self._end_unused(tab))

    async def _end_unused(self, tab: Tab) -> None:
        """Close a tab whose page is finished; if it does not close, its context's end does it."""
        if await tab.close():
            await self._end_capture(tab)

    async def _new_tab(self) -> Tab:
        """Open a tab with filtered documents."""
        page = await self.context.new_page()
        wire = await self.context.new_cdp_session(page)
        told = await wire.send("Target.getTargetInfo")
        reports: Session | CDPSession = wire
        if self.chromium.is_direct:
            reports = cast("DirectPage", page).session
        else:
            await wire.send("Network.enable", NO_BODIES)
            await wire.send("Page.enable")
        frame_id = str(told["targetInfo"]["targetId"])
        queue = RequestQueue(reports, self._connections, PENDING, frame_id, self.chromium.see_to)
        tab = Tab(page, wire, frame_id, self._held, queue)
        tab.tab_filter = self._make_tab_filter(tab.frames)
        tab.echoes = self._echoes
        if self.chromium.is_direct:
            tab.pushed = await PushedExtraction.attach(cast("DirectPage", page), PENDING, tab.idle)
        if self.sign_in is not None:
            tab.at_rest = self.at_rest
            await hear_cookies(wire, lambda: tab.url, self.sign_in.hear)
        if self.make_capture is not None:
            tab.capture = self.make_capture(page)
            self._captures = [one for one in self._captures if not one.ended] + [tab.capture]
        if self.banners is not None:
            tab.consent = await TabConsent.attach(self.banners, page, wire)
        self.chromium.navigation_filter.admit(tab.frame_id, tab.tab_filter)
        await present(wire, tab.tab_filter.look)
        return tab

    async def _bury(self) -> None:
        while self._doomed:  # one by one, so that a cancelled call leaves the rest to the next
            tab = self._doomed.pop()
            self.chromium.navigation_filter.dismiss(tab.frame_id)
            if not await tab.close() and (not await self.chromium.calm() or not await tab.close()):
                await self.chromium.kill()  # a tab that cannot be closed is ended with its process
            await self._end_capture(tab)

    async def _end_capture(self, tab: Tab) -> None:
        if tab.capture is not None:
            if self.at_rest is not None:  # tokens that its page has set
                await self.at_rest(tab.url)
            await tab.capture.close()  # if this is cancelled, the context's end does it


COOKIES_S: Final = 2.0
TRIES: Final = 3  # a browser may die before the page has begun, without its fault


class TabPool:
    """A `Fetcher` on real Chromium; `BrowserSession.fetcher` creates it."""

    def __init__(self, options: FetcherOptions, browser: Callable[[], Awaitable[Chromium]]) -> None:
        self._options = options
        self._browser = browser
        self._room = asyncio.Semaphore(options.pages)
        self._bodies = asyncio.Semaphore(AT_ONCE)
        self._opening = asyncio.Lock()
        self._held = HeldOpen()
        self._doubts = Doubts()
        self._masked: tuple[str, ...] = ()
        self._echoes = Echoes(())
        self._banners = None if options.consent is None else ConsentBanners(options.consent)
        self._crawl_context: CrawlContext | None = None  # context of new pages
        self._leaving: list[CrawlContext] = []

    async def fetch(self, url: str, options: PageOptions, on_idle: OnIdle | None = None) -> Fetched:
        """Load one page; see `Fetcher.fetch`. Return within its limit + 1 s, without cleanup."""
        await self._options.policy.check(url)
        async with self._room:
            for _ in range(TRIES):
                with suppress(Error, TimeoutError, NoTab):
                    crawl_context = await self._ready(fresh=options.fresh)
                    fetched = await crawl_context.take(url, options, on_idle)
                    await self._renew_sign_in(crawl_context, fetched.final_url)
                    return fetched
            raise BrowserGone(url=url)

    def _current_echoes(self) -> Echoes:
        """Return the search for all secrets that are known now."""
        sign_in = self._options.sign_in
        later = () if sign_in is None else sign_in.secrets
        masked = tuple(dict.fromkeys(value for value, _ in (*self._options.secrets, *later)))
        if masked != self._masked:
            self._masked, self._echoes = masked, Echoes(masked)
        return self._echoes

    @property
    def pages(self) -> list[Page]:
        """Open tabs, for the live view."""
        crawl_contexts = [*self._leaving, *filter(None, [self._crawl_context])]
        return [
            page
            for crawl_context in crawl_contexts
            if crawl_context.lives
            for page in crawl_context.context.pages
        ]

    async def close(self) -> None:
        """Close the contexts and their tabs within a limit; repeated calls do nothing."""
        crawl_contexts, self._leaving = self._leaving, []
        if self._crawl_context is not None:
            crawl_contexts.append(self._crawl_context)
            self._crawl_context = None
        await asyncio.gather(*(crawl_context.close() for crawl_context in crawl_contexts))

    async def _ready(self, *, fresh: bool = False) -> CrawlContext:
        """Return the context of the next page; `fresh`: one without earlier pages."""
        crawl_context = self._crawl_context
        if fresh and crawl_context is not None and crawl_context.used:
            crawl_context.wear_out()
        await self._leave()
        if (
            crawl_context is not None
            and crawl_context.lives
            and (not crawl_context.worn or (self._opening.locked() and not crawl_context.harms))
        ):
            return crawl_context
        async with self._opening:
            crawl_context = self._crawl_context
            if crawl_context is not None and crawl_context.lives and not crawl_context.worn:
                return crawl_context
            opened = await self._open()
            if crawl_context is not None:
                self._leaving.append(crawl_context)
            self._crawl_context = opened
        if fresh:
            await self._leave()  # earlier pages must not affect this one
        return opened

    async def _leave(self) -> None:
        """Close replaced contexts whose last page is finished."""
        done = [crawl_context for crawl_context in self._leaving if not crawl_context.busy]
        if done:
            self._leaving = [crawl_context for crawl_context in self._leaving if crawl_context.busy]
            await asyncio.gather(*(crawl_context.close() for crawl_context in done))

    async def _renew_sign_in(self, crawl_context: CrawlContext, url: str) -> None:
        """Take the cookies that the site replaced, for later contexts and for the profile.

        Before a page is kept, so that its own new tokens are masked in it.
        """
        sign_in = self._options.sign_in
        if sign_in is None or not crawl_context.lives:
            return
        with suppress(Error, TimeoutError):
            async with crawl_context.chromium.within(COOKIES_S):
                cookies = await crawl_context.context.cookies()
            sign_in.renew(map(dict, cookies), crawl_context.began, url)
            crawl_context.began = {"cookies": [dict(one) for one in cookies]}

    async def _open(self) -> CrawlContext:
        chromium = await self._browser()
        async with chromium.within(OPEN_S):
            policy, options = self._options.policy, self._options
            began = options.sign_in.state if options.sign_in is not None else {}
            shown = options.look.context_options()
            if options.user_agent is not None:
                shown.setdefault("user_agent", options.user_agent)
            context, listener = await open_context(
                chromium,
                policy,
                script=first_script(lean=options.block_resources),
                sign_in=options.sign_in,
                look=options.look,
                **shown,
            )
        known = self._options.credentials
        crawl_context = CrawlContext(
            chromium,
            (context, listener),
            lambda frames: TabFilter(policy, known, frames, listener=listener, look=options.look),
            self._held,
            self._doubts,
            self._current_echoes,
        )
        crawl_context.began = began
        crawl_context.sign_in = options.sign_in
        crawl_context.at_rest = partial(self._renew_sign_in, crawl_context)
        if self._banners is not None:
            crawl_context.banners = self._banners.for_new_context()
        if options.archive is not None:
            crawl_context.make_capture = partial(
                NetworkCapture,
                archive=options.archive,
                room=self._bodies,
                holds=options.sign_in is not None,
                peer=listener.peer,
            )
        return crawl_context
