"""Load pages in one reusable tab: navigate, wait for rest, extract text and links.

A page costs one navigation, one call that creates an isolated world, and one call that waits and
extracts there. Only document requests are intercepted (`navigation_filter`); nothing is polled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import secrets
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.chromium.cookie_jar import CookieJar
from engine.browser.chromium.navigation_filter import TabFilter, frames_of
from engine.browser.direct.devtools_connection import TOO_MUCH
from engine.browser.page.click_links import ClickLinks
from engine.browser.page.consent import is_same_page
from engine.browser.page.extraction_options import (
    WORLD,
    compact,
    extraction_options,
    extraction_request,
    imported,
    is_importing,
    script,
)
from engine.browser.page.failures import PageTooLarge, net_failure, no_answer
from engine.browser.page.idle_report import IdleReport
from engine.browser.page.screenshot_masking import MaskingFailed, masked_screenshot
from engine.egress.egress_policy import without_credentials
from engine.model.addresses import link_address, site_of
from engine.model.errors import PageError
from engine.pages import meta_refresh
from engine.pages.custom_fields import leveled
from engine.pages.documents import is_html, is_text
from engine.pages.fetch import MAX_LINKS, Fetched, PageOptions, Redirect
from engine.pages.page_facts import RawFacts
from engine.pages.static_engine import retry_after
from engine.secrets.value_search import Echoes

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Dialog, Frame, Page, Request, Response

    from engine.browser.direct.pushed import PushedExtraction
    from engine.browser.page.consent import TabConsent
    from engine.browser.page.network_capture import NetworkCapture
    from engine.browser.page.request_queue import RequestQueue


PAGES = 2
CROWDED_S, CROWDED_EVERY_S = 60.0, 600.0
MOST = 200  # names; a site that invents new names for ever cannot be recognised anyway


class HeldOpen:
    """Requests left open by the pages of one crawl or tab."""

    def __init__(self) -> None:
        self._pages: Counter[str] = Counter()
        self._crowded_at_s = -math.inf

    def expect_crowd(self) -> None:
        """Learn nothing for a while: more pages than intended may ask the site.

        For a tenth of the time at the most, because pages with open requests take longer meanwhile.
        """
        now_s = time.monotonic()
        if now_s - self._crowded_at_s >= CROWDED_EVERY_S:
            self._crowded_at_s = now_s

    def note(self, names: Iterable[str]) -> None:
        """Record the open requests of one page (names as `settle.js` makes them)."""
        if time.monotonic() - self._crowded_at_s < CROWDED_S:
            return
        for name in set(names):
            if name in self._pages or len(self._pages) < MOST:
                self._pages[name] += 1

    @property
    def known(self) -> list[str]:
        """Names of the requests that are not waited for."""
        return [name for name, pages in self._pages.items() if pages >= PAGES]


# Results of `take.js`, validated and converted to the crawl's record.

_ASKS_TO_WAIT = (429, 503)


class Extraction(msgspec.Struct, rename="camel"):
    """Validated result of `take.js`, which runs in an isolated world of the page."""

    url: str
    title: str
    html: str
    text: str
    truncated: bool
    links: str | None  # one address a line; None: no links
    link_texts: str
    link_rels: str  # one digit for each link
    frames: int
    skipped: int
    over: int
    windows: int
    outliving: int
    connections: int
    cookie_chars: int
    part_refused: bool
    storage_full: bool
    settled: bool
    held: list[str]
    empty: bool
    may_import: Literal["", "own", "any"]  # scripts: none, of the page's site, or of any site
    importing: list[str]  # addresses of the frames that may do so as well
    facts: RawFacts
    values: dict[str, str | list[str]]
    loads: int
    loads_cut: bool
    content_type: str
    status: int
    bytes: float
    transferred: float
    response_ms: float
    render_ms: float


def as_fetched(
    extraction: Extraction, url: str, status: int, headers: Mapping[str, str]
) -> Fetched:
    """Convert an extraction result to the record of one page.

    Only HTML has markup and links, and only text types have text.
    """
    html = is_html(extraction.content_type)
    has_links = html and extraction.links is not None
    return Fetched(
        url=url,
        final_url=extraction.url,
        status=status,
        content_type=extraction.content_type,
        title=extraction.title,
        html=extraction.html if html else "",
        text=extraction.text if html or is_text(extraction.content_type) else "",
        links=(extraction.links or "").split("\n")[:MAX_LINKS] if has_links else [],
        link_texts=extraction.link_texts.split("\n")[:MAX_LINKS] if has_links else [],
        link_rels=extraction.link_rels if has_links else "",
        frames=extraction.frames if html else 0,
        links_skipped=extraction.skipped if html else 0,
        links_over=extraction.over if html else 0,
        windows=extraction.windows,
        cookie_chars=extraction.cookie_chars,
        part_refused=extraction.part_refused,
        storage_full=extraction.storage_full,
        response_ms=round(extraction.response_ms, 1),
        render_ms=round(extraction.render_ms, 1),
        bytes=int(extraction.bytes),
        transferred_bytes=int(extraction.transferred),
        settled=extraction.settled,
        empty=extraction.empty,
        facts=extraction.facts if html else None,
        values={name: leveled(value) for name, value in extraction.values.items()} if html else {},
        loads=extraction.loads,
        loads_cut=extraction.loads_cut,
        robots_header=headers.get("x-robots-tag", ""),
        truncated=extraction.truncated,
        retry_after_s=retry_after(headers.get("retry-after", ""))
        if status in _ASKS_TO_WAIT
        else None,
    )


def _add_refresh(fetched: Fetched, header: str) -> None:
    """Add the link of a header `Refresh`, as one of an element with the same effect is one.

    The page is read before a delayed one leads on; none of its elements tells where.
    """
    refresh = meta_refresh.parsed(header)
    address = None if refresh is None else link_address(fetched.final_url, refresh.to)
    is_known = address is None or address.url in (fetched.final_url, *fetched.links)
    if address is None or is_known or len(fetched.links) >= MAX_LINKS:
        return
    fetched.links.append(address.url)
    fetched.link_texts.append("")
    fetched.link_rels += "0"


GRACE_S = 1.0  # extra time for the extraction call after the page's own limit
WALL_S = 5.0  # for the rest of a page that may wait until its banner is answered
AGAIN_S = 2.0  # at least, for a page whose banner was dismissed
MOST_AGAIN_S = 10.0  # if it was at rest before
CLOSE_S = 2.0
SCREENSHOT_S = 5.0
FEEL_S = 1.0
MAX_SCREENSHOT = 8 * 1024 * 1024
MAX_DIALOGS = 100  # for each page; an open dialog blocks the page until it is answered
STILL_S = 2.0
LEAVE_PAUSE_S = 0.05  # the first; each further one is twice as long
LEAVE_S = 0.5  # for a page whose task may be cancelled
MAX_MOVES = 50  # address changes in 10 s, before the tab is renewed
MOVES_S = 10.0
MAX_DOCUMENTS = 10  # limit of client-side redirects
ERROR_PAGE_MS = 1_000
BLANK = "about:blank"
_ERROR_PAGE = "chrome-error://chromewebdata/"
PENDING = f"pending-{secrets.token_hex(8)}"  # random, so that no page can guess it
_NO_DAMAGE = ("ERR_ABORTED", "ERR_BLOCKED")  # cancelled by another navigation or by the filter
INTERRUPTED = "interrupted by another navigation"
SELECTORS = ("load_more", "click_links", "fields")  # arguments with selectors, beside wait_for
_GOING_AWAY = ("context was destroyed", "context with specified id", "navigated", "No frame")


@cache
def first_script(*, lean: bool = False) -> str:
    """Script that a context runs in every document before the page's own scripts.

    `lean`: in a browser that loads no images.
    """
    images = f"\n{script('images')}();" if lean else ""
    return compact(f"{script('pending')}({json.dumps(PENDING)});{images}")


async def leave_page(page: Page, wire: CDPSession) -> None:
    """Open an empty page, also from a page that keeps redirecting itself.

    Raises:
        TimeoutError, playwright.Error: the page could not be left.
    """
    async with asyncio.timeout(STILL_S):
        for off in (True, False):
            await wire.send("Emulation.setScriptExecutionDisabled", {"value": off})
            await _open_blank(page)


async def _open_blank(page: Page) -> None:
    """Open an empty page; repeat that as long as another navigation interrupts it.

    The other one may be the attempt before, which is committed although its error came first.
    Only a pause, in which the last attempt arrives, ends such a series.
    """
    pause_s = LEAVE_PAUSE_S
    while True:
        try:
            await page.goto(BLANK, wait_until="commit")
        except Error as failed:
            if INTERRUPTED not in failed.message and "ERR_ABORTED" not in failed.message:
                raise
        else:
            return
        await asyncio.sleep(pause_s)
        pause_s *= 2


class Tab:
    """A browser tab that loads addresses one after another until it is spoiled."""

    def __init__(
        self, page: Page, wire: CDPSession, frame_id: str, held: HeldOpen, queue: RequestQueue
    ) -> None:
        self.frame_id = frame_id
        self.spoiled: str | None = None  # reason why the tab may not be used again
        self.clicked = False  # elements of its page, which may still have effects
        self.page_count = 0
        self.idle_since_s = 0.0
        self.tab_filter: TabFilter | None = None
        self.echoes: Callable[[], Echoes] = lambda: Echoes(())  # texts to mask in screenshots
        self.at_rest: Callable[[str], Awaitable[None]] | None = None  # with the page's address
        self.url = ""  # of the page that is loaded
        self.jar = CookieJar(wire)
        self.capture: NetworkCapture | None = None  # for a web archive
        self.idle = IdleReport()
        self.queue = queue
        self.waited = False  # the last page, for a connection that other pages held
        self.consent: TabConsent | None = None  # dismisses consent banners
        self._is_led_away = False  # by its banner: the tab does not show what was read
        self.pushed: PushedExtraction | None = None  # in a browser without Playwright
        self.begun = False  # the current document has begun to arrive
        self.left_open: list[str] = []  # names of the requests that the last page left open
        self.outliving = 0  # number of its requests that continue without it
        self.connections = 0  # number of connections that it holds until it is closed
        self._page = page
        self._wire = wire
        self._held = held
        self._scope: asyncio.Timeout | None = None
        self._world_options = {"frameId": frame_id, "worldName": WORLD}
        self._world = 0
        self._cut_off = False  # the document's body ended in an error
        self._failed: Request | None = None  # the last navigation that failed
        self._dialogs = 0
        self._windows = 0
        self._loaded = False  # the document of this address was committed
        self._answer: tuple[str, int] | None = None  # of the document that was opened
        self._moves: deque[float] = deque(maxlen=MAX_MOVES)  # when pages changed their address
        page.on("dialog", self._on_dialog)
        page.on("popup", self._on_popup)
        page.on("framenavigated", self._on_navigated)
        page.on("requestfailed", self._on_failed)
        page.on("download", lambda _: self._spoil("download"))
        page.on("crash", lambda _: self._on_crash())

    async def take(self, url: str, options: PageOptions) -> Fetched:
        """Load `url` and extract it when it is at rest, or at the time limit.

        Raises:
            PageError: the page could not be extracted; `spoiled` says whether the tab is usable.
            playwright.Error: the browser, or this tab, is gone.
        """
        self.page_count += 1
        self.url = url
        limit_s = options.timeout_ms / 1000
        try:
            async with asyncio.timeout(limit_s + GRACE_S) as self._scope:
                fetched = await self._take(without_credentials(url), url, options)
            if self.capture is not None:
                await self.capture.drain()
            return fetched
        except PageError:
            if self.spoiled is None:
                await self._store_captured(self.url)  # before the next page
            raise
        except (TimeoutError, PlaywrightTimeout) as slow:
            self.waited = self.queue.is_waiting
            self._spoil("timeout")
            if self.spoiled == "crash":
                raise PageError("crash", "the page crashed") from slow
            if self._dialogs > MAX_DIALOGS:
                raise PageError("dialogs", "the page opened one dialog after another") from slow
            late = no_answer(options.timeout_ms)
            if self.begun:  # the page arrived, and hangs
                late.unproved, late.proved = not options.fresh, options.fresh
            raise late from slow
        except asyncio.CancelledError:
            self._spoil("cancelled")
            raise
        finally:
            self._scope = None
            if self._moved_much():
                self._spoil("moves")

    async def click_links(self, fetched: Fetched, options: PageOptions) -> None:
        """Click the elements of the loaded page, and add their addresses to `fetched`.

        The tab is spoiled after that. What fails in it cuts the clicks short.
        """
        if not (options.click_links and fetched.html and 200 <= fetched.status < 300):
            return
        if self.spoiled in ("unsettled", "crash") or not fetched.settled:
            fetched.clicks_cut = True
            return
        address, first = without_credentials(fetched.url), self._answer

        async def reopen(on_left: Callable[[], None]) -> None:
            await leave_page(self._page, self._wire)
            on_left()
            response = await self._open(address, options)
            if _answer_of(response) != first:
                raise PageError("http", "the page did not open again")

        clicks = ClickLinks(self._page, self._wire, self.tab_filter, options, PENDING, reopen)
        self._dialogs, self.clicked = 0, True
        try:
            async with asyncio.timeout(options.timeout_ms / 1000) as self._scope:
                await clicks.run(self.frame_id, self._scope)
            await self._store_captured(fetched.final_url)
        except (TimeoutError, Error, PageError):
            pass  # `cut` tells it
        finally:
            self._scope = None
            self._spoil("clicks")
            await self._leave_clicked()
        fetched.clicked, fetched.clicks = clicks.links, clicks.clicks
        withheld = 0 if self.tab_filter is None else self.tab_filter.withheld
        fetched.clicks_cut, fetched.clicks_refused = clicks.cut, clicks.refused + withheld

    async def _store_captured(self, url: str) -> None:
        """Store what was captured for a web archive, with the tokens that the page has by now."""
        if self.capture is not None:
            if self.at_rest is not None:
                await self.at_rest(url)
            await self.capture.drain()

    async def _leave_clicked(self) -> None:
        """Leave the page while its requests are still refused: closing the tab lets them pass."""
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await leave_page(self._page, self._wire)

    async def _take(self, address: str, url: str, options: PageOptions) -> Fetched:
        deadline = asyncio.get_running_loop().time() + options.timeout_ms / 1000
        await self._begin(options)
        response = await self._open(address, options)
        self._answer = _answer_of(response)
        self.begun = True
        if self.consent is None:
            extraction = await self._extract(deadline, options)
        else:
            extraction = await self._without_banners(self.consent, deadline, options)
        self._note_waiting(extraction)
        self.left_open, self.outliving = extraction.held, extraction.outliving
        self.connections = extraction.connections
        if not extraction.settled:
            self._spoil("unsettled")  # its unfinished work would continue into the next page
        elif extraction.connections:
            self._spoil("connections")  # the next page may wait for them, and end them only then
        headers = response.headers if response else {}
        answers = response is not None and response.url == extraction.url.partition("#")[0]
        status = response.status if response and answers else extraction.status
        fetched = as_fetched(extraction, url, status, headers)
        if answers and fetched.html:
            _add_refresh(fetched, headers.get("refresh", ""))
        if response is not None:
            fetched.redirects = await _redirects(response, extraction.url)
        fetched.dialogs, fetched.cut_off = self._dialogs, self._cut_off
        fetched.windows = max(fetched.windows, self._windows)
        if self.consent is not None:
            fetched.consent = self.consent.outcome
        wanted = ("all", "failed") if status >= 400 else ("all",)
        pictured = options.screenshot in wanted and not self._is_led_away
        if self.at_rest is not None and (pictured or self.capture is not None):
            await self.at_rest(fetched.final_url)
        if pictured:
            fetched.screenshot = await self.screenshot()
        return fetched

    def _note_waiting(self, extraction: Extraction) -> None:
        """Record whether the page waits for a connection; it may be led on as soon as it has it."""
        is_leaving = self.queue.is_leaving(self.frame_id)
        extraction.settled &= not is_leaving
        self.waited = is_leaving or self.queue.is_waiting

    async def _begin(self, options: PageOptions) -> None:
        """Forget the last page, and prepare the scripts of the next one."""
        if self.tab_filter:
            self.tab_filter.clear()
        self._dialogs = self._windows = 0
        self.begun = self._loaded = self._is_led_away = False
        self.left_open, self.outliving, self.connections = [], 0, 0
        self.waited = False
        self.queue.begin()
        if self.consent is not None:
            self.consent.begin()
        if self.pushed is not None:
            self._world = 0
            await self.pushed.prepare(options, self._held.known)

    async def _without_banners(
        self, consent: TabConsent, deadline: float, options: PageOptions
    ) -> Extraction:
        """Read a page, and again once its banner is rejected; keep the first one if that fails."""
        wall_s = min(deadline, asyncio.get_running_loop().time() + WALL_S)
        loads_more = options.scroll or options.load_more
        taken = await self._extract(deadline if loads_more else wall_s, options)
        if not taken.settled and wall_s < deadline and not (loads_more or consent.outcome):
            taken = await self._extract(deadline, options)
        cut_off = self._cut_off
        while await consent.reject(deadline):
            again = await self._extract_again(consent, taken, deadline, options)
            if again is None:
                self._is_led_away, self._cut_off = True, cut_off
                self._spoil("unsettled")
                await consent.give_up()
                break
            taken = again
        return taken

    async def _extract_again(
        self, consent: TabConsent, first: Extraction, deadline: float, options: PageOptions
    ) -> Extraction | None:
        """Extract the page without its banner; None if what comes is not that page, or less of it.

        The banner may have used up the page's time. One that had come to rest does so again soon.
        """
        now_s = asyncio.get_running_loop().time()
        deadline = max(deadline, now_s + AGAIN_S)
        if first.settled:
            deadline = min(deadline, now_s + MOST_AGAIN_S)
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(max(deadline + GRACE_S, self._scope.when() or 0))
        loads = 0 if consent.is_replaced else first.loads
        rest = msgspec.structs.replace(options, max_loads=options.max_loads - loads)
        try:
            async with asyncio.timeout_at(deadline + GRACE_S / 2):
                # Banners fade out, so the page has to come to rest as one that scripts write.
                again = await self._extract(deadline, rest, written=True)
                is_elsewhere = not is_same_page(again.url, first.url)
                if is_elsewhere and not await consent.returns_to(first.url, deadline):
                    return None
                if is_elsewhere or (
                    loads and consent.is_replaced
                ):  # a new document has loaded nothing
                    loads = 0
                    again = await self._extract(deadline, options, written=True)
        except (Error, PageError, TimeoutError):
            return None
        is_less = (first.settled and (self._cut_off or not again.settled)) or (
            first.text.strip() != "" and not again.text.strip()
        )
        if is_less or not is_same_page(again.url, first.url) or first.status < 400 <= again.status:
            return None
        again.loads += loads
        return again

    async def _open(self, address: str, options: PageOptions) -> Response | None:
        try:
            self._cut_off, self._failed = False, None
            if "#" in address:
                # Within the same document the browser would change only the fragment.
                await self._page.goto(BLANK, wait_until="commit", timeout=options.timeout_ms)
            return await self._page.goto(address, wait_until="commit", timeout=options.timeout_ms)
        except PlaywrightTimeout:
            raise
        except Error as failed:
            if INTERRUPTED in failed.message and not self.spoiled:
                self._spoil("strays")
                await self._leave()
                return await self._open(address, options)
            if "ERR_ABORTED" in failed.message:
                await self._feel()
            elif "net::" in failed.message:
                await self._see_error_page()
            raise await self._with_status(self._why(failed)) from failed

    async def _feel(self) -> None:
        """Detect a dead renderer, which Chromium reports as an empty page first."""
        try:
            async with asyncio.timeout(FEEL_S):
                await self._wire.send("Runtime.evaluate", {"expression": "0"})
        except TimeoutError:
            return
        except Error:
            self._spoil("crash")

    async def _leave(self) -> None:
        """Leave the previous page, which redirects itself while the next navigation begins."""
        await leave_page(self._page, self._wire)
        if self.tab_filter:
            self.tab_filter.clear()  # the refusals of that page do not concern the next one

    async def _with_status(self, failed: Exception) -> Exception:
        """Add the HTTP status to an error without a page (such as an empty 503), if known."""
        if not isinstance(failed, PageError) or failed.kind != "http" or self._failed is None:
            return failed
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(FEEL_S):
                response = await self._failed.response()
                if response is not None:
                    known = PageError("http", f"HTTP {response.status}", response.status)
                    if response.status in _ASKS_TO_WAIT:
                        known.retry_after_s = retry_after(response.headers.get("retry-after", ""))
                    return known
        return failed

    async def _see_error_page(self) -> None:
        """Wait for Chromium's error page, which would otherwise interrupt the next navigation."""
        try:
            await self._page.wait_for_url(_ERROR_PAGE, wait_until="commit", timeout=ERROR_PAGE_MS)
        except Error:
            self._spoil("error page")

    def _why(self, failed: Error) -> Exception:
        """Return the page's error for a failed navigation, or `failed` when the tab is gone."""
        if TOO_MUCH in failed.message:
            return PageTooLarge()
        if self.tab_filter and self.tab_filter.refused:
            return self.tab_filter.refused
        if self.spoiled == "download" or "Download is starting" in failed.message:
            self._spoil("download")
            return PageError("download", "download skipped")
        if self.spoiled == "crash" or "crashed" in failed.message:
            self._spoil("crash")
            return PageError("crash", "the page crashed")
        net = net_failure(failed.message)
        known = (
            self.tab_filter.why() if self.tab_filter and net and net.kind == "connection" else None
        )
        return known or net or failed

    async def _extract(
        self, deadline: float, options: PageOptions, *, written: bool = False
    ) -> Extraction:
        for _ in range(MAX_DOCUMENTS):
            left_ms = max(0.0, (deadline - asyncio.get_running_loop().time()) * 1000)
            try:
                extraction = await self._ask(left_ms, options, written=written)
                self.idle.record("over")
            except Error as failed:
                if not any(sign in failed.message for sign in _GOING_AWAY):
                    raise self._why(failed) from failed
                continue  # the page redirected itself: extract the next document
            if not extraction.url.startswith(("http://", "https://")):
                raise self._strayed()
            site = site_of(extraction.url) if extraction.may_import == "own" else ""
            if not (
                extraction.may_import
                and extraction.settled
                and await is_importing(self._wire, site, extraction.importing)
            ):
                return extraction
            extraction.settled = await imported(self._wire, deadline, site, extraction.importing)
            if not extraction.settled:
                return extraction
            written = True
        self._spoil("redirects")
        raise PageError("redirects", "too many redirects")

    def _strayed(self) -> PageError:
        if self.tab_filter and self.tab_filter.refused:
            return self.tab_filter.refused
        return PageError("navigation", "the page led to an address that cannot be opened")

    async def _ask(self, left_ms: float, options: PageOptions, *, written: bool) -> Extraction:
        answer: dict[str, Any] | None = None
        if self.pushed is not None and not written:
            answer = await self.pushed.extraction(left_ms, cut_off=self._cut_off)
        if answer is None:
            answer = await self._call(left_ms, options, written=written)
        if "exceptionDetails" in answer:
            told = str(answer["exceptionDetails"].get("exception", {}).get("description", ""))
            if "is not a valid selector" in told:
                given = next((one for one in SELECTORS if f"{one}: " in told), "wait_for")
                raise PageError(given, f"{given} is not a selector that a browser knows")
            raise PageError("script", "the page could not be read")
        try:
            return msgspec.convert(answer["result"].get("value"), Extraction)
        except msgspec.ValidationError as invalid:
            raise PageError("script", "the page could not be read") from invalid

    async def _call(self, left_ms: float, options: PageOptions, *, written: bool) -> dict[str, Any]:
        """Run the extraction script in the current document; return Chromium's answer."""
        world = await self._wire.send("Page.createIsolatedWorld", self._world_options)
        self._world = world["executionContextId"]
        ask = extraction_options(
            left_ms, options, PENDING, self._held.known, cut_off=self._cut_off, written=written
        )
        # The dismissal of a banner changes the page.
        ask["reportsIdle"] &= self.idle.is_wanted and self.consent is None
        answer = await self._next_answer(ask)
        while isinstance(value := answer["result"].get("value"), dict) and "state" in value:
            self.idle.record(value["state"])
            answer = await self._next_answer(None)
        return answer

    async def _next_answer(self, ask: dict[str, Any] | None) -> dict[str, Any]:
        asked = {**extraction_request(ask), "executionContextId": self._world}
        return await self._wire.send("Runtime.callFunctionOn", asked)

    async def screenshot(self) -> bytes | None:
        """Return a PNG of the visible part with secrets masked; None after the time limit."""
        try:
            async with asyncio.timeout(SCREENSHOT_S):
                shoot = partial(self._page.screenshot, type="png", animations="disabled")
                shot = await masked_screenshot(self._page, self._wire, self.echoes(), shoot)
        except (TimeoutError, Error, MaskingFailed):
            return None
        return shot if len(shot) <= MAX_SCREENSHOT else None

    async def frames(self) -> frozenset[str]:
        """Return the ids of all frames in this tab; empty after the time limit."""
        return await frames_of(self._wire)

    async def close(self) -> bool:
        """Close the tab; return False when it did not close within 2 s."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._page.close()
        except TimeoutError:
            return False
        except Error:
            return True  # already gone
        return True

    def _spoil(self, why: str) -> None:
        self.spoiled = self.spoiled or why

    def _on_crash(self) -> None:
        self.spoiled = "crash"
        self._end()

    def _end(self) -> None:
        """Stop waiting for the current page."""
        if self._scope is not None and not self._scope.expired():
            # The awaited reply will never arrive.
            self._scope.reschedule(asyncio.get_running_loop().time())

    def _on_navigated(self, frame: Frame) -> None:
        if frame is self._page.main_frame and self._loaded:
            self.idle.record("again")  # another document may have come
            self._moves.append(time.monotonic())
        self._loaded = self._loaded or frame is self._page.main_frame

    def _moved_much(self) -> bool:
        """Did pages use much of what Chromium grants a tab: 200 changes of its address in 10 s?

        The next page in the tab would have the rest only, and its own changes be ignored.
        """
        moves = self._moves
        return len(moves) == MAX_MOVES and time.monotonic() - moves[0] < MOVES_S

    async def _on_failed(self, request: Request) -> None:
        """Notify the waiting script that the document is incomplete and ended."""
        by_us = any(sign in (request.failure or "") for sign in _NO_DAMAGE)
        if by_us or not request.is_navigation_request() or request.frame.parent_frame:
            return
        self._cut_off, self._failed = True, request
        event = f"document.dispatchEvent(new Event({json.dumps(PENDING + '!')}))"
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                world = self._world
                if self.pushed is not None and not world:  # its script runs in a known world, too
                    made = await self._wire.send("Page.createIsolatedWorld", self._world_options)
                    world = made["executionContextId"]
                if self._failed is not request:
                    return  # its page was left, and the world may be that of the next one
                told = {"expression": event, "contextId": world}
                await self._wire.send("Runtime.evaluate", told)

    async def _on_dialog(self, dialog: Dialog) -> None:
        self._spoil("dialog")
        self._dialogs += 1
        if self._dialogs > MAX_DIALOGS:
            self._end()
        with contextlib.suppress(Error, TimeoutError):  # the page's end may have answered it
            async with asyncio.timeout(CLOSE_S):
                # A `beforeunload` dialog is accepted, because the next page waits.
                await (dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())

    async def _on_popup(self, popup: Page) -> None:
        self._spoil("popup")
        self._windows += 1
        with contextlib.suppress(Error, TimeoutError):  # already gone
            async with asyncio.timeout(CLOSE_S):
                await popup.close()


def _answer_of(response: Response | None) -> tuple[str, int] | None:
    """Return the address and the status of a document, by which it is known again."""
    return None if response is None else (response.url.partition("#")[0], response.status)


async def _redirects(response: Response, landed: str) -> list[Redirect]:
    """Return the addresses that led to the first document, and this one if it led on itself."""
    found: list[Redirect] = []
    before = response.request.redirected_from
    with contextlib.suppress(Error, TimeoutError):
        async with asyncio.timeout(FEEL_S):
            while before is not None:
                answer = await before.response()
                found.append(Redirect(before.url, 0 if answer is None else answer.status))
                before = before.redirected_from
    found.reverse()
    if response.url.partition("#")[0] != landed.partition("#")[0]:
        found.append(Redirect(response.url, response.status, by_page=True))
    return found
