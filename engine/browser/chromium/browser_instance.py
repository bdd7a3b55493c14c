"""A dedicated browser context with tabs that stay open, for work that acts on pages.

Crawls share tabs (`tab_pool`); a command task, a recording, an evidence bundle or an agent gets
an instance: fresh profile, every connection filtered by its policy, dialogs answered (`Dialogs`),
downloads blocked. Windows that pages open are kept as tabs if a person watches (`headed`)
or the options require them (`windows`); otherwise they are closed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error

from engine.browser.chromium.browser_options import PLAIN, BrowserLook
from engine.browser.chromium.cookie_jar import hear_cookies
from engine.browser.chromium.launch import Chromium, end_waits
from engine.browser.chromium.navigation_filter import TabFilter, frames_of
from engine.browser.chromium.user_agent import present
from engine.browser.page.failures import PageTooHeavy
from engine.browser.remote.remote_address import RemoteBrowserUnreachable
from engine.model.errors import BrowserGone, PageError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Page

    from engine.browser.chromium.browser_options import InstanceOptions
    from engine.browser.chromium.launch import Chromium
    from engine.egress.egress_policy import Policy
    from engine.egress.proxy_listener import ProxyListener
    from engine.profiles.sign_in import SignIn


CALM_S = 2.0


async def close_context(chromium: Chromium, context: BrowserContext, limit_s: float) -> None:
    """Close `context` within about `limit_s`; if it does not close, end its process.

    A page that floods the browser with messages delays its own end: after 2 s its process is ended.
    """
    # Playwright answers a second `close` at once, so the first task must be kept.
    closing = asyncio.create_task(context.close(), name="close a context")
    closing.add_done_callback(_retrieve_error)
    try:
        async with chromium.within(limit_s):
            await asyncio.wait({closing}, timeout=CALM_S)
            if not closing.done():
                await chromium.calm()
            await asyncio.wait({closing})
    except TimeoutError:
        await chromium.kill()
    finally:
        closing.cancel()


def _retrieve_error(closing: asyncio.Future[Any]) -> None:
    if not closing.cancelled():
        closing.exception()  # it closed with its browser


# As in a browser whose user blocks them. Playwright's own script returns nothing, without an
# error: pages that use their registration stop there.
_NO_SERVICE_WORKERS: Final = """if (self.ServiceWorkerContainer) {
  ServiceWorkerContainer.prototype.register = async () => {
    const reason = "The user denied permission to use Service Worker.";
    throw new DOMException(`Failed to register a ServiceWorker: ${reason}`, "NotSupportedError");
  };
}"""
Opened = tuple["BrowserContext", "ProxyListener"]
UNWANTED_S = 15.0  # for a context that no task waits for any more


async def open_context(
    chromium: Chromium,
    policy: Policy,
    *,
    script: str = "",
    sign_in: SignIn | None = None,
    look: BrowserLook = PLAIN,
    **options: Any,
) -> Opened:
    """Open a context with a fresh profile that reaches only what `policy` allows.

    Downloads and service workers (which would outlive their page) are blocked; `options` are
    Playwright's, those of `look` included. `script` runs first in every document. With `sign_in`
    the context has its cookies and stored data. After a cancellation it is closed as soon as
    it has opened.

    Raises:
        BrowserFailed: the proxy has no port for it.
        playwright.Error: the browser died.
    """
    if sign_in is not None:
        options["storage_state"] = sign_in.state
    opened = _open(chromium, policy, script, look, options)
    opening = asyncio.create_task(opened, name="open a context")
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        # The browser opens it all the same, and without a reference it would never be closed.
        chromium.see_to(_drop(chromium, opening))
        raise


async def _open(
    chromium: Chromium, policy: Policy, script: str, look: BrowserLook, options: dict[str, Any]
) -> Opened:
    proxy = chromium.proxy
    listener = await proxy.open_listener((policy.root,), lambda: chromium.alive, chromium.ports)
    context: BrowserContext | None = None
    try:
        context = await chromium.browser.new_context(
            proxy=await chromium.proxy_settings(listener),
            service_workers="block",
            accept_downloads=False,
            **options,
        )
    finally:
        if context is None:
            chromium.end_listener(listener)
    context.on("close", lambda _: chromium.end_listener(listener))
    if look.headers:
        await chromium.navigation_filter.add_headers(context, look.headers)
    await context.add_init_script(_NO_SERVICE_WORKERS)
    if script:
        await context.add_init_script(script)
    return context, listener


async def _drop(chromium: Chromium, opening: asyncio.Task[Opened]) -> None:
    try:
        async with chromium.within(UNWANTED_S if chromium.alive else 0):
            await asyncio.wait({opening})
    except TimeoutError:
        opening.cancel()  # the browser is gone, or will be recycled with the context
        await asyncio.wait({opening})
    if not opening.cancelled() and opening.exception() is None:
        await close_context(chromium, opening.result()[0], CLOSE_S)


ANSWER_S: Final = 2.0
MAX_KEPT: Final = 20  # for each command; a page may open dialogs without end
MAX_HELD: Final = 20_000  # characters of one message while it is queued
MAX_MESSAGE: Final = 1_000  # characters of it in the result
LEAVING: Final = "beforeunload"


@dataclass(slots=True)
class Dialogs:
    """The answer to dialogs, by default to dismiss them, and their messages.

    A `beforeunload` dialog is accepted, unless the task sets `stay`.

    `stay` dismisses `beforeunload` dialogs; `expected` marks that as no failure.
    """

    accept: bool = False
    text: str | None = None
    stay: bool = False
    expected: bool = False
    kept_the_page: bool = False  # a dismissed `beforeunload` dialog stopped a navigation
    _seen: list[dict[str, Any]] = field(default_factory=list)
    _scope: asyncio.Timeout | None = None

    async def answer(self, dialog: Dialog) -> None:
        """Answer one dialog, which may have closed with its page."""
        accepts = not self.stay if dialog.type == LEAVING else self.accept
        if len(self._seen) < MAX_KEPT:
            message = dialog.message[:MAX_HELD]
            answered = "accepted" if accepts else "dismissed"
            self._seen.append({"type": dialog.type, "message": message, "answer": answered})
        keeps = dialog.type == LEAVING and not accepts and not self.expected
        self.kept_the_page = self.kept_the_page or keeps  # set before the navigation fails
        try:
            async with asyncio.timeout(ANSWER_S):
                if not accepts:
                    await dialog.dismiss()
                elif dialog.type == "prompt":
                    await dialog.accept(dialog.default_value if self.text is None else self.text)
                else:
                    await dialog.accept()
        except (TimeoutError, Error):
            return  # closed with the page
        if keeps and self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Watch one command; raise `TimeoutError` when a page stays against its navigation."""
        self.kept_the_page = False
        try:
            async with asyncio.timeout(None) as self._scope:
                yield
        finally:
            self._scope = None

    def take(self, hide: Callable[[str], str]) -> list[dict[str, Any]]:
        """Return and clear the dialogs; `hide` masks a message before it is cut."""
        seen, self._seen = self._seen, []
        return [{**each, "message": hide(each["message"])[:MAX_MESSAGE]} for each in seen]


OPEN_S = 15.0
OPEN_TRIES = 2
CLOSE_S = 2.0
MAX_WINDOWS = 20  # limit of windows that pages may keep open
# A page that floods the browser delays its own end, and other instances share the browser.
LATE_S = 10.0


@dataclass(frozen=True, slots=True)
class _Tab:
    """A page, its own DevTools session, and its navigation filter state."""

    page: Page
    wire: CDPSession
    frame_id: str
    tab_filter: TabFilter


class Instance:
    """One context with its tabs. Loop-bound; `BrowserSession.open_instance` creates it.

    `gone` is set when the browser died, the context was closed, or a person closed the last
    window. `context` and the pages are Playwright's: only the browser package uses them.
    """

    def __init__(
        self,
        options: InstanceOptions,
        chromium: Chromium,
        context: BrowserContext,
        listener: ProxyListener,
    ) -> None:
        self.id = f"inst_{secrets.token_hex(4)}"
        self.options = options
        self.chromium = chromium
        self.context = context
        self._listener = listener
        self._began = options.sign_in.state if options.sign_in is not None else {}
        self.gone = asyncio.Event()
        self._tabs: dict[Page, _Tab] = {}
        self._dead: set[Page] = set()
        self._selected: Page | None = None
        self.dialogs = Dialogs()
        self._answers: dict[Page, Dialogs] = {}  # of tabs that have one of their own
        self._opening = asyncio.Lock()
        self._ours = 0  # number of pages that `new_page` is opening
        self._closing: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._waits: set[asyncio.Timeout] = set()  # calls of a closed context have no answer
        self.crash: PageError | None = None  # the crash of one of its pages since `clear`
        context.on("close", self._on_gone)
        context.on("page", self._on_page)
        chromium.browser.on("disconnected", self._on_gone)

    @property
    def alive(self) -> bool:
        return not self.gone.is_set() and self.chromium.alive

    @property
    def headed(self) -> bool:
        return self.options.headed

    @property
    def pages(self) -> list[Page]:
        """The open tabs, oldest first, without crashed tabs that are still closing."""
        return [page for page in self._tabs if page not in self._dead and not page.is_closed()]

    @property
    def keeps_windows(self) -> bool:
        return self.options.headed or self.options.windows

    @property
    def current(self) -> Page | None:
        """The selected tab, or the newest open one."""
        pages = self.pages
        if self._selected in pages:
            return self._selected
        return pages[-1] if pages else None

    def forget_dialogs(self, *, stay: bool = False) -> None:
        """Reset the dialog answers, which apply to one task only."""
        self.dialogs = Dialogs(stay=stay)

    @contextmanager
    def answering(self, page: Page, answers: Dialogs) -> Iterator[None]:
        """Answer the dialogs of one tab in another way meanwhile."""
        self._answers[page] = answers
        try:
            yield
        finally:
            self._answers.pop(page, None)

    def select(self, page: Page) -> None:
        """Make `page` the current tab for as long as it is open."""
        self._selected = page

    async def page(self) -> Page:
        """Return the current tab; open one if there is none.

        Raises:
            BrowserGone: the browser died.
        """
        return self.current or await self.new_page()

    async def new_page(self) -> Page:
        """Open a tab, filtered before it can load anything.

        Raises:
            BrowserGone: the browser died.
        """
        if not self.alive:
            raise BrowserGone(url="a new tab")
        async with self._opening:
            self._ours += 1
            try:
                async with self.within(OPEN_S):
                    page = await self.context.new_page()
                    await self._adopt(page)
            except (Error, TimeoutError) as gone:
                raise BrowserGone(url="a new tab") from gone
            finally:
                self._ours -= 1
        return page

    def judge(self, page: Page, policy: Policy) -> None:
        """Filter this tab's documents, and its requests as well, by `policy` from now on."""
        self._tabs[page].tab_filter.policy = policy
        self._widen()

    def _widen(self) -> None:
        """Allow in the listener what any tab may reach, because requests carry no tab."""
        tabs = (tab.tab_filter.policy.root for tab in self._tabs.values())
        self._listener.allow((self.options.policy.root, *tabs))

    def wire(self, page: Page) -> CDPSession:
        """Return the tab's DevTools session."""
        return self._tabs[page].wire

    def frame_id(self, page: Page) -> str:
        """Return the id of the tab's main frame."""
        return self._tabs[page].frame_id

    def refused(self, page: Page) -> PageError | None:
        """Return the navigation filter's refusal in this tab since `clear`."""
        tab = self._tabs.get(page)
        return tab.tab_filter.refused if tab else None

    def why(self, page: Page) -> PageError | None:
        """Return why this tab's last document did not load, if filter or proxy blocked it."""
        tab = self._tabs.get(page)
        return tab.tab_filter.why() if tab else None

    def clear(self, page: Page) -> None:
        """Clear the last refusal and the last crash."""
        self.crash = None
        tab = self._tabs.get(page)
        if tab:
            tab.tab_filter.clear()

    @asynccontextmanager
    async def within(self, limit_s: float) -> AsyncIterator[None]:
        """Bound a wait: `TimeoutError` after `limit_s` s, or when the instance closes or dies."""
        async with self.chromium.within(limit_s) as wait:
            self._waits.add(wait)
            try:
                yield
            finally:
                self._waits.discard(wait)

    async def cookies(self, limit_s: float) -> list[dict[str, Any]]:
        """Read the context's cookies.

        Raises:
            BrowserGone: the browser died, or did not answer within `limit_s`.
        """
        try:
            async with self.within(limit_s):
                return [dict(cookie) for cookie in await self.context.cookies()]
        except (Error, TimeoutError) as gone:
            raise BrowserGone(url="its cookies") from gone

    async def close(self) -> None:
        """Close every tab and the context; repeated calls do nothing.

        The call waits for 2 s at most. A longer closing continues in the background, and after 10 s
        its browser is ended.
        """
        self._on_gone()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        for tab in self._tabs.values():
            self.chromium.navigation_filter.dismiss(tab.frame_id)
        self._tabs.clear()
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_context(), name=f"close {self.id}")
        await asyncio.wait({self._closing}, timeout=CLOSE_S)

    async def _renew_sign_in(self) -> None:
        """Take the cookies that a site replaced, for the profile."""
        sign_in = self.options.sign_in
        if sign_in is not None and self.chromium.alive:
            with suppress(Error, TimeoutError):
                async with self.chromium.within(CLOSE_S):  # a second `close` does not end it
                    sign_in.renew(map(dict, await self.context.cookies()), self._began)

    async def _close_context(self) -> None:
        await self._renew_sign_in()
        await close_context(self.chromium, self.context, LATE_S)
        self.chromium.browser.remove_listener("disconnected", self._on_gone)

    async def _adopt(self, page: Page) -> None:
        wire = await self.context.new_cdp_session(page)
        if (sign_in := self.options.sign_in) is not None:
            await hear_cookies(wire, lambda: page.url, sign_in.hear)
        info = await wire.send("Target.getTargetInfo")
        frame_id = str(info["targetInfo"]["targetId"])
        # A window that a page opens requests its document before it can be admitted.
        context = str(info["targetInfo"].get("browserContextId", "")) if self.keeps_windows else ""
        policy, known, look = self.options.policy, self.options.credentials, self.options.look
        tab_filter = TabFilter(
            policy, known, lambda: frames_of(wire), context, self._listener, look=look
        )
        # Before it is admitted: until then the filter gives the look to a window's first request.
        await present(wire, look)
        self._tabs[page] = _Tab(page, wire, frame_id, tab_filter)
        self.chromium.navigation_filter.admit(frame_id, tab_filter)
        page.on("dialog", self._on_dialog)
        page.on("close", self._on_closed)
        page.on("crash", self._on_crash)

    def _on_page(self, page: Page) -> None:
        """Handle a new tab: of `new_page`, of a person, or opened by a page."""
        if self._ours and page not in self._tabs:
            return  # `new_page` adopts it
        wanted = self.headed or (self.options.windows and len(self.pages) < MAX_WINDOWS)
        self._run_in_background(self._adopt_opened(page) if wanted else _close_page(page))

    async def _adopt_opened(self, page: Page) -> None:
        try:
            await self._adopt(page)
        except Error:
            return  # closed already

    async def _on_dialog(self, dialog: Dialog) -> None:
        if not self.options.asks_person:
            page = dialog.page
            own = self._answers.get(page) if page is not None else None
            await (own or self.dialogs).answer(dialog)

    def _on_gone(self, _: object = None) -> None:
        self.gone.set()
        end_waits(self._waits)

    def _on_crash(self, page: Page) -> None:
        """Close a crashed tab, which cannot load anything; keep it visible to a person."""
        too_heavy = self.chromium.load.took_too_much()
        self.crash = PageTooHeavy() if too_heavy else PageError("crash", "the page crashed")
        if not self.headed:
            self._dead.add(page)
            self._run_in_background(_close_page(page))

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="a window that a page opened, or a dead one")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _on_closed(self, page: Page) -> None:
        self._dead.discard(page)
        tab = self._tabs.pop(page, None)
        if tab:
            self.chromium.navigation_filter.dismiss(tab.frame_id)
            self._widen()
        if self.headed and not self._tabs:
            self.gone.set()


async def open_instance(
    options: InstanceOptions, browser: Callable[[], Awaitable[Chromium]]
) -> Instance:
    """Open an instance on a running browser; start one if necessary.

    Raises:
        BrowserMissing, BrowserFailed: no browser is available.
        BrowserGone: the browser died meanwhile.
    """
    for _ in range(OPEN_TRIES):  # another task's page may crash the browser meanwhile
        chromium = await browser()
        try:
            async with chromium.within(OPEN_S):
                size = options.look.context_options((options.width, options.height))
                context, listener = await open_context(
                    chromium,
                    options.policy,
                    look=options.look,
                    sign_in=options.sign_in,
                    **size,
                )
        except (Error, TimeoutError, RemoteBrowserUnreachable) as gone:
            failed: Exception = gone
            if chromium.alive:
                break
        else:
            return Instance(options, chromium, context, listener)
    if isinstance(failed, RemoteBrowserUnreachable):
        raise failed
    raise BrowserGone(url="a new window") from failed


async def _close_page(page: Page) -> None:
    try:
        async with asyncio.timeout(CLOSE_S):
            await page.close()
    except (TimeoutError, Error):
        return  # gone already
