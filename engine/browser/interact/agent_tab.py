"""One tab that an agent works in: opening addresses, waiting for rest, reading.

Every wait is bounded, and ends when the tab or its browser ends. All page texts that leave the
tab pass its secret mask.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.chromium.browser_instance import Dialogs, Instance
from engine.browser.interact.command_errors import (
    DownloadSkipped,
    NoHistory,
    PageUnreadable,
    StaleReference,
    ToolTimeout,
)
from engine.browser.page import extraction_options
from engine.browser.page.crawl_tab import BLANK, PENDING, HeldOpen, first_script
from engine.browser.page.extraction_options import imported, is_importing
from engine.browser.page.failures import PageTooHeavy, net_failure
from engine.browser.page.isolated_world import World
from engine.browser.page.secret_mask import SecretMask
from engine.egress.egress_policy import DomainAllowlist, Policy, without_credentials
from engine.model.errors import BrowserGone
from engine.secrets.given_secrets import of_address, of_credentials

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Download, Frame, Page, Request, Response

SETTLE_MS = 100
COMPUTES_MS: Final = 2_000  # of a page that computes without end, for each action
REVEAL_MS: Final = 500  # of a page with hidden text and timers, for each action
GRACE_S = 2.0
CLOSE_S = 2.0
MOST_DIALOGS = 10
MOST_REFUSED = 10
_ERROR_PAGE = "chrome-error:"
Way = Literal["back", "forward", "reload"]


class Visit(msgspec.Struct, frozen=True):
    """Location of a tab, redacted. `status` is 0 without a response."""

    url: str
    title: str
    status: int
    settled: bool


class Refused(msgspec.Struct, frozen=True):
    """A download or window of the page that the tab did not open; the address is redacted."""

    what: Literal["download", "window"]
    url: str


class AgentTab:
    """A page of an instance with the agent scripts; `open_tab` creates it."""

    def __init__(
        self, number: int, instance: Instance, page: Page, allowlist: DomainAllowlist
    ) -> None:
        self.number = number
        self.instance = instance
        self.page = page
        self.allowlist = allowlist
        self.mask = SecretMask()
        self.world: World
        self.dialogs: list[str] = []  # dialog messages since the call began
        self.answered: Literal["dismissed", "accepted"] = "dismissed"
        self._refused: list[Refused] = []  # since the last answer: some come after their call
        self._skips_download = False  # the error of `go` reports that one
        self._held = HeldOpen()
        self._settled = True
        self._crashed = False
        self._scope: asyncio.Timeout | None = None
        self._arrived = asyncio.Event()  # cleared while a navigation is in progress
        self._arrived.set()
        self._under_way: Request | None = None

    @property
    def id(self) -> str:
        return f"tab_{self.number}"

    @property
    def closed(self) -> bool:
        return self.page.is_closed() or not self.instance.alive

    @property
    def address(self) -> str:
        """The tab's address, redacted."""
        return self.mask.text(without_credentials(self.page.url), 2_048)

    async def prepare(self) -> None:
        """Install the agent scripts and subscribe to page events."""
        options = self.instance.options
        self.mask.add_given((*of_credentials(options.credentials), *options.secrets))
        if options.sign_in is not None:
            options.sign_in.on_secrets.append(self.mask.add_later)
        self.world = await World.open(self.instance.wire(self.page), self.mask)
        await self.page.add_init_script(first_script())
        self.page.on("dialog", self._on_dialog)
        self.page.on("crash", lambda _: self._on_crash())
        self.page.on("request", self._on_request)
        self.page.on("requestfinished", self._on_end)
        self.page.on("requestfailed", self._on_failed)
        self.page.on("framenavigated", self._on_navigated)
        self.page.on("download", self._on_download)

    @contextmanager
    def answering(self, accept: bool, text: str | None) -> Iterator[None]:
        """Accept the tab's dialogs meanwhile, a prompt with `text`; else they are dismissed."""
        self.answered = "accepted" if accept else "dismissed"
        with self.instance.answering(self.page, Dialogs(accept=accept, text=text)):
            yield

    @asynccontextmanager
    async def within(self, limit_s: float) -> AsyncIterator[None]:
        """Bound one call on this tab.

        Raises:
            ToolTimeout: the tab did not reply within `limit_s`.
            PageUnreadable: the page crashed.
            PageError: the navigation filter blocked its address.
            BrowserGone: the browser died, or the tab was closed.
        """
        self.dialogs = []
        self.instance.clear(self.page)
        try:
            async with asyncio.timeout(limit_s + GRACE_S) as self._scope:
                async with self.instance.within(limit_s + 2 * GRACE_S):
                    yield
        except (TimeoutError, PlaywrightTimeout) as slow:
            raise self._why(ToolTimeout(limit_s=limit_s)) from slow
        except Error as failed:
            unmade = self.instance.why(self.page) or net_failure(failed.message)
            gone = PageUnreadable(reason="The page went away while it was being used.")
            raise self._why(unmade or gone) from failed
        finally:
            self._scope = None

    async def go(
        self, url: str, limit_ms: int, wait_for: str | None = None, *, anew: bool = False
    ) -> Visit:
        """Open `url` and wait until the page is at rest.

        If only the fragment differs, a browser keeps its document; `anew` reloads it.

        Raises:
            PageError: the address was blocked, or could not be loaded.
        """
        self.mask.add_given(of_address(url))
        await self.allowlist.check(url)
        address = without_credentials(url)
        is_file, self._skips_download = False, True
        try:
            if anew and "#" in address:
                await self.page.goto(BLANK, wait_until="commit", timeout=limit_ms)
            await self.page.goto(address, wait_until="commit", timeout=limit_ms)
        except Error as failed:
            if "net::" in failed.message:
                await self._see_error_page()
            if is_file := "Download is starting" in failed.message:
                raise DownloadSkipped("download", "download skipped") from failed
            raise
        finally:
            self._skips_download &= is_file  # the event of a file may come after the error
        self._crashed = False
        return await self.arrive(limit_ms, wait_for)

    async def travel(self, way: Way, limit_ms: int) -> Visit:
        """Go back, go forward, or reload the page.

        Raises:
            NoHistory: there is no such history entry.
        """
        steps = {
            "back": self.page.go_back,
            "forward": self.page.go_forward,
            "reload": self.page.reload,
        }
        step: Any = steps[way]
        before = self.page.url
        response: Response | None = await step(wait_until="commit", timeout=limit_ms)
        if response is None and way != "reload" and self.page.url == before:
            raise NoHistory(direction=way, tab_id=self.id)
        return await self.arrive(limit_ms)

    async def arrive(self, limit_ms: int, wait_for: str | None = None) -> Visit:
        """Wait until the page is at rest, and return the tab's location.

        Raises:
            PageError: the page led to a blocked address.
        """
        await self.settle(limit_ms, wait_for)
        self.check_refused()
        return await self.where()

    async def where(self) -> Visit:
        """Return the tab's location; `settled` is the result of the last wait."""
        reply = await self.world.ask("page")
        return Visit(
            url=self.mask.text(without_credentials(str(reply["url"])), 2_048),
            title=self.mask.content(str(reply["title"]), 500),
            status=int(reply["status"]),
            settled=self._settled,
        )

    async def title(self, limit_s: float) -> str:
        """Return the page's title; empty after the time limit."""
        try:
            async with asyncio.timeout(limit_s):
                return self.mask.content(await self.page.title(), 500)
        except (TimeoutError, Error):
            return ""

    async def settle(self, limit_ms: int, wait_for: str | None = None) -> bool:
        """Wait until no navigation is pending and the page is at rest; False at the limit."""
        until = asyncio.get_running_loop().time() + limit_ms / 1000
        written = False
        limits = extraction_options.settle_limits()
        limits["computesMs"] = min(COMPUTES_MS, limit_ms // 2)
        limits["revealMs"] = REVEAL_MS
        while True:
            left_ms = max(0.0, (until - asyncio.get_running_loop().time()) * 1000)
            reply = await self.world.ask(
                "settle",
                limitMs=left_ms,
                settleMs=SETTLE_MS,
                **limits,
                pending=PENDING,
                held=self._held.known,
                written=written,
                ownTimers=True,
                waitFor=wait_for,
            )
            self._held.note(reply["held"])
            for url in reply.get("popups", ()):  # the instance closes them
                self._note_refused("window", str(url))
            wire = self.instance.wire(self.page)
            if reply["settled"] and reply["written"] and await is_importing(wire):
                written = reply["settled"] = await imported(wire, until)
                if written:
                    continue
            self._settled = self._arrived.is_set() and bool(reply["settled"])
            if self._arrived.is_set():
                return self._settled
            try:
                async with asyncio.timeout_at(until):
                    await self._arrived.wait()
            except TimeoutError:
                return False

    async def ask_about(self, what: str, ref: str, number: int, **ask: Any) -> dict[str, Any]:
        """Call a script about one element.

        Raises:
            StaleReference: the element is not in this page.
        """
        reply = await self.world.ask(what, ref=number, **ask)
        if reply.get("stale"):
            raise StaleReference(ref=ref)
        return reply

    def check_refused(self) -> None:
        """Raise the navigation filter's refusal to this tab since the call began."""
        refused = self.instance.refused(self.page)
        if refused is not None:
            raise refused

    def check_shown(self) -> None:
        """Raise when the tab shows the browser's error page."""
        if self.page.url.startswith(_ERROR_PAGE):
            raise PageUnreadable(reason="The last address could not be opened.")

    async def close(self) -> None:
        """Close the tab within a time limit."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.page.close()
        except (TimeoutError, Error):
            return  # gone already, or closed with its context

    def take_refused(self) -> list[Refused]:
        """Return and clear the refused downloads and windows."""
        refused, self._refused = self._refused, []
        return refused

    def _why(self, otherwise: Exception) -> Exception:
        refused = self.instance.refused(self.page)
        if refused is not None:
            return refused
        if self._crashed:
            too_heavy = self.instance.chromium.load.took_too_much()
            return PageTooHeavy() if too_heavy else PageUnreadable(reason="The page crashed.")
        return BrowserGone(url=self.address) if self.closed else otherwise

    async def _see_error_page(self) -> None:
        """Wait for Chromium's error page, which would otherwise interrupt the next navigation."""
        try:
            await self.page.wait_for_url(f"{_ERROR_PAGE}**", wait_until="commit", timeout=1_000)
        except Error:
            return  # Chromium shows it for some failures only

    async def _on_dialog(self, dialog: Dialog) -> None:
        # The instance dismisses the dialog; here it is only recorded.
        if len(self.dialogs) < MOST_DIALOGS:
            self.dialogs.append(self.mask.content(f"{dialog.type}: {dialog.message}", 300))

    def _on_crash(self) -> None:
        self._crashed = True
        if self._scope is not None and not self._scope.expired():
            # The awaited reply will never arrive.
            self._scope.reschedule(asyncio.get_running_loop().time())

    def _on_request(self, request: Request) -> None:
        if request.is_navigation_request() and self._is_main(request):
            self._under_way = request
            self._arrived.clear()

    def _on_end(self, request: Request) -> None:
        if request is self._under_way:
            self._arrived.set()

    async def _on_failed(self, request: Request) -> None:
        """End the page's wait for a navigation that brings no document, such as a download."""
        is_ours = request is self._under_way
        self._on_end(request)
        if is_ours:
            with suppress(Error, PageUnreadable):
                await self.world.ask("stays", pending=PENDING)

    def _on_download(self, download: Download) -> None:
        if not self._skips_download:
            self._note_refused("download", download.url)
        self._skips_download = False

    def _note_refused(self, what: Literal["download", "window"], url: str) -> None:
        if len(self._refused) < MOST_REFUSED:
            address = without_credentials(url)
            self._refused.append(Refused(what, self.mask.text(address, 2_048)))

    def _on_navigated(self, frame: Frame) -> None:
        if frame == self.page.main_frame:
            self._arrived.set()

    def _is_main(self, request: Request) -> bool:
        try:
            return request.frame == self.page.main_frame
        except Error:  # a frame that does not exist yet is not the main frame
            return False


async def open_tab(number: int, instance: Instance, policy: Policy) -> AgentTab:
    """Open a new tab of `instance`, filtered by `policy`.

    Raises:
        BrowserGone: the browser died.
    """
    page = await instance.new_page()
    allowlist = DomainAllowlist(policy)
    try:
        instance.judge(page, allowlist)
        tab = AgentTab(number, instance, page, allowlist)
        async with instance.within(CLOSE_S * 2):
            await tab.prepare()
    except (KeyError, Error, TimeoutError) as gone:
        raise BrowserGone(url="a new tab") from gone
    return tab
