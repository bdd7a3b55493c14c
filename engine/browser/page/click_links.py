"""Click elements of a loaded page that are no links, and collect the addresses they lead to.

No click is followed: scripts' navigations are cancelled in the page (`click.js`), requests of
documents refused by the navigation filter, and what the page requests meanwhile is refused unless
it only reads. The browser opens no windows. A page that a click has changed to another one is
opened again before the next click, and the clicks that led to an element are repeated.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from playwright.async_api import Error

from engine.browser.chromium.navigation_filter import READS
from engine.browser.page.extraction_options import WORLD, compact, script, settle_limits
from engine.model.addresses import address_of
from engine.pages.fetch import MAX_CLICKED, MAX_LINK_CHARS, ClickedLink, PageOptions
from engine.profiles.profile import is_sign_out, names_sign_out

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

    from engine.browser.chromium.navigation_filter import TabFilter

CLICK_S: Final = 3.0  # limit of one click and of what it starts
REPLY_S: Final = 1.0  # more, for the answer of a busy page
OPEN_S: Final = 10.0  # limit of opening the page again
CLOSE_S: Final = 2.0
MOST_STEPS: Final = 5  # clicks that lead to an element, such as of nested menus


class _Clicked(msgspec.Struct):
    """Validated result of `click.js`; `candidates` are signatures and names of elements.

    `links` are the addresses and names of links that the click added to the page. `again`: the
    element can be clicked once more, and nothing says that it would do the same.
    """

    found: bool
    addresses: list[str]
    forms: int
    moved: bool
    candidates: list[tuple[str, str]]
    links: list[tuple[str, str]] = []
    again: bool = False
    cut: bool = False  # the page has more elements, or links, than are listed


class _Target(NamedTuple):
    """An element to click, and the elements that must be clicked before it to have it there."""

    signature: str
    name: str
    steps: tuple[str, ...] = ()


@cache
def _clicking_script() -> str:
    scripts = f"{script('settle')}, {script('later')}, {script('shown')}"
    return compact(f"((settle, later, shown) => {script('click')})({scripts})")


class ClickLinks:
    """The clicks on one page; `links`, `clicks` and `refused` are valid at any time.

    `reopen` leaves the page, calls its argument, and opens the page's address again in the same
    tab. `cut` tells that elements were left.
    """

    def __init__(
        self,
        page: Page,
        wire: CDPSession,
        tab_filter: TabFilter | None,
        options: PageOptions,
        pending: str,
        reopen: Callable[[Callable[[], None]], Awaitable[object]],
    ) -> None:
        self.links: list[ClickedLink] = []
        self.clicks = 0
        self.refused = 0
        self.cut = True  # until all are done
        self._page, self._wire, self._filter = page, wire, tab_filter
        self._options, self._pending = options, pending
        self._reopen = reopen
        self._known: set[str] = set()  # signatures
        self._addresses: set[str] = set()
        self._chars = 0  # of the links
        self._moved = self._left = False
        self._is_guarded = True  # refuse what leads elsewhere or may change data
        self._opened_for: tuple[str, ...] | None = ()  # steps since the page was opened; None: more

    async def run(self, frame_id: str, limit: asyncio.Timeout) -> None:
        """Click until no element is left, or the number of clicks is reached.

        Args:
            limit: the caller's time limit, which is extended by the delays between the loads.

        Raises:
            playwright.Error, TimeoutError, PageError: the page or its tab is unusable.
        """
        self._wire.on("Fetch.requestPaused", self._on_paused)
        self._frame_id, self._limit = frame_id, limit
        self._opened_s = time.monotonic()
        self._guard(True)
        if self._filter is not None:
            await self._filter.begin_clicks()
        await self._wire.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})
        waiting = self._new(await self._ask(None, is_read=True), ())
        while waiting and self.clicks < self._options.max_clicks:
            target = waiting.pop()
            clicked = await self._click(target)
            if clicked is None:
                self._left = True
                continue
            self.clicks += 1
            adds = self._note(clicked, target.name)
            steps = (*target.steps, target.signature)[: MOST_STEPS + 1]  # longer ones are not used
            waiting += self._new(clicked, steps)
            if adds and clicked.again:
                # It may have more, as the next part of a list, but maybe without end: the others
                # are first.
                waiting.insert(0, target._replace(steps=steps))
        self.cut = self._left or bool(waiting)

    def _new(self, clicked: _Clicked, steps: tuple[str, ...]) -> list[_Target]:
        """Return the elements that were not listed before, the first one at the end."""
        self._left |= clicked.cut
        found = []
        for signature, name in clicked.candidates:
            if signature not in self._known:
                self._known.add(signature)
                if not names_sign_out(name):
                    found.append(_Target(signature, name, steps))
        found.reverse()
        return found

    async def _click(self, target: _Target) -> _Clicked | None:
        """Click an element, on the page as it is or as it was; None if it is not there."""
        if not self._moved:
            is_as_listed = self._opened_for == target.steps
            clicked = await self._ask(target.signature, is_as_listed=is_as_listed)
            if clicked.found or is_as_listed:
                return clicked if clicked.found else None
        if len(target.steps) > MOST_STEPS:
            return None
        await self._restore()
        for step in target.steps:
            await self._ask(step, is_as_listed=True)
            if self._moved:
                return None
        self._opened_for = target.steps
        clicked = await self._ask(target.signature, is_as_listed=True)
        return clicked if clicked.found else None

    async def _restore(self) -> None:
        """Open the page again, as a page of the crawl; it may then request what it wants.

        Only once the old page is left, whose timers and listeners could send something. Requests
        stay intercepted: the end of it would let pass those that wait for an answer.
        """
        await self._wait_for_turn()
        async with asyncio.timeout(OPEN_S):
            await self._reopen(lambda: self._guard(False))
            await self._ask(None)
        self._guard(True)
        self._moved, self._opened_for = False, ()

    async def _wait_for_turn(self) -> None:
        """Wait for the end of the crawl's delay after the last load of the page."""
        left_s = self._opened_s + self._options.delay_ms / 1_000 - time.monotonic()
        if left_s > 0:
            until_s = self._limit.when()
            if until_s is not None and not self._limit.expired():
                self._limit.reschedule(until_s + left_s)
            await asyncio.sleep(left_s)
        self._opened_s = time.monotonic()

    def _guard(self, is_on: bool) -> None:
        self._is_guarded = is_on
        if self._filter is not None:
            self._filter.led_to = [] if is_on else None

    async def _ask(
        self, signature: str | None, *, is_read: bool = False, is_as_listed: bool = False
    ) -> _Clicked:
        """Click an element, or list all of them; note that the page moved if it does not answer.

        `is_as_listed`: the page is as it was when the element was listed, so that one that is like
        it only is taken for it.
        """
        nothing = _Clicked(True, [], 0, True, [])
        try:
            async with asyncio.timeout(OPEN_S if signature is None else CLICK_S + REPLY_S):
                clicked = await self._call(signature, is_read, is_as_listed)
        except (Error, TimeoutError):
            if signature is None or self._page.is_closed():
                raise
            clicked = nothing  # the click replaced the document, or keeps the page busy
        if self._filter is not None and self._filter.led_to:
            clicked.addresses += self._filter.led_to
            self._filter.led_to.clear()
        if signature is not None and clicked.found:
            self._moved |= clicked.moved
            self._opened_for = None
        return clicked

    async def _call(self, signature: str | None, is_read: bool, is_as_listed: bool) -> _Clicked:
        world = {"frameId": self._frame_id, "worldName": WORLD}
        made = await self._wire.send("Page.createIsolatedWorld", world)
        limit_s = OPEN_S if signature is None else CLICK_S
        ask: dict[str, Any] = {
            "selector": self._options.click_links,
            "signature": signature,
            "isRead": is_read,
            "isAsListed": is_as_listed,
            "limitMs": limit_s * 1000,
            "waitFor": self._options.wait_for,
            "settleMs": self._options.settle_ms,
            **settle_limits(),
            "revealMs": 0,  # timers and animations of the click are waited for anyway
            "pending": self._pending,
            "held": [],
            "written": False,
        }
        request = {
            "functionDeclaration": _clicking_script(),
            "arguments": [{"value": ask}],
            "executionContextId": made["executionContextId"],
            "awaitPromise": True,
            "returnByValue": True,
        }
        answer = await self._wire.send("Runtime.callFunctionOn", request)
        try:
            return msgspec.convert(answer["result"].get("value"), _Clicked)
        except msgspec.ValidationError as invalid:
            raise Error("the page could not be read") from invalid

    def _note(self, clicked: _Clicked, name: str) -> bool:
        """Keep what a click found; return whether it added links to the page that are new."""
        self.refused += clicked.forms
        for address in clicked.addresses:
            self._add(ClickedLink(address, name))
        before = len(self.links)
        for link in clicked.links:
            self._add(ClickedLink(*link))
        return len(self.links) > before

    def _add(self, link: ClickedLink) -> None:
        if link.url in self._addresses:
            return
        self._chars += len(link.url) + len(link.text)
        if len(self.links) >= MAX_CLICKED or self._chars > MAX_LINK_CHARS:
            self._left = True
            return
        self._addresses.add(link.url)
        self.links.append(link)

    async def _on_paused(self, event: dict[str, Any]) -> None:
        request, url = event["request"], str(event["request"]["url"])
        address = address_of(url)
        ends_sign_in = address is not None and is_sign_out(address)
        is_document = event["resourceType"] == "Document"  # checked by the navigation filter
        acts = request["method"] not in READS or (ends_sign_in and not is_document)
        refused = self._is_guarded and acts
        method = "Fetch.failRequest" if refused else "Fetch.continueRequest"
        params = {"requestId": event["requestId"]}
        if refused:
            self.refused += 1
            params["errorReason"] = "Aborted" if is_document else "BlockedByClient"
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._wire.send(method, params)
        except (Error, TimeoutError):
            return  # the tab ended meanwhile
