"""Record a browser that a person drives: events of the page script, and navigation.

The script runs in an isolated world, whose only output is a binding that exists in that world
only: a page can neither see the script nor forge its messages. The messages are validated, capped
in size and rate, and put in one queue with the browser's own events.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.page.failures import net_failure, no_answer
from engine.browser.page.screenshot_masking import MaskingFailed, masked_screenshot
from engine.browser.recording.recorder_messages import (
    MAX_TEXT,
    Answered,
    Closed,
    Happening,
    Heard,
    Hidden,
    How,
    TabClosed,
    Target,
    Told,
    Went,
    WindowRefused,
    is_secret_field,
    read_told,
)
from engine.model import addresses, redact
from engine.model.errors import BrowserGone, PageError

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

    from engine.browser.chromium.browser_instance import Instance
    from engine.browser.chromium.launch import Chromium


# Navigation log of a tab: the browser's own events, classified by cause.
#
# A renderer (a link, a form, a script) first requests a navigation; a navigation without a request
# was typed, reloaded, or taken from the history by the operator.

_WEB: Final = ("http://", "https://")
_BY_REASON: Final[Mapping[str, How]] = {
    "anchorClick": "link",
    "formSubmissionGet": "form",
    "formSubmissionPost": "form",
}
_HISTORY: Final = ("historyDifferentDocument", "historySameDocument")


class Navigation(NamedTuple):
    """One change of address. `in_history`: back or forward, by the browser's history."""

    url: str
    how: How
    in_history: bool = False
    asked: str | None = None
    failed: bool = False


class NavigationLog:
    """Navigation state of one tab, fed with the DevTools events of its main frame in order."""

    def __init__(self, frame_id: str) -> None:
        self.url = ""
        self._frame_id = frame_id
        self._reason = ""
        self._kind = ""
        self._asked = ""

    def requested(self, event: Mapping[str, Any]) -> None:
        """Handle `Page.frameRequestedNavigation`: the page requests a navigation."""
        if event.get("frameId") == self._frame_id:
            self._reason = str(event.get("reason", "script"))

    def started(self, event: Mapping[str, Any]) -> None:
        """Handle `Page.frameStartedNavigating`."""
        if event.get("frameId") == self._frame_id:
            self._kind = str(event.get("navigationType", ""))
            self._asked = str(event.get("url", ""))

    def navigated(self, event: Mapping[str, Any]) -> Navigation | None:
        """Handle `Page.frameNavigated`: a new document; return None if it is no web page."""
        frame = event["frame"]
        if frame.get("parentId") or frame.get("id") != self._frame_id:
            return None
        failed = bool(frame.get("unreachableUrl"))
        url = str(frame.get("unreachableUrl") or frame["url"] + frame.get("urlFragment", ""))
        return self._step(url, self._how(), failed=failed)

    def within(self, event: Mapping[str, Any]) -> Navigation | None:
        """Handle `Page.navigatedWithinDocument`: the same document with another address."""
        if event.get("frameId") != self._frame_id:
            return None
        url = str(event.get("url", ""))
        typed = self._kind == "sameDocument" and not self._reason
        how: How = "typed" if typed else "in_page"
        if url == self.url and self._kind not in _HISTORY:
            return None  # a history state without its own address
        return self._step(url, how, failed=False)

    def _how(self) -> How:
        if self._reason:
            return _BY_REASON.get(self._reason, "script")
        return "reload" if self._kind.startswith("reload") else "typed"

    def _step(self, url: str, how: How, *, failed: bool) -> Navigation | None:
        in_history = self._kind in _HISTORY
        asked = self._asked if how == "typed" and not in_history else ""
        self._reason = self._kind = self._asked = ""
        if not url.startswith(_WEB):
            return None
        self.url = url
        plain = asked if asked.startswith(_WEB) and asked != url else None
        return Navigation(url, "back" if in_history else how, in_history, plain, failed)


# Recorder script, which runs in an isolated world of every recorded document.


@cache
def _source(name: str) -> str:
    return files("engine.browser").joinpath(name).read_text("utf-8").strip()


def script(binding: str, max_text: int) -> str:
    """Return the script to run before the page's own; it reports through the function `binding`."""
    return "\n".join(
        (
            "(() => {",
            _source("describe.js"),
            _source("hovering.js"),
            _source("record.js"),
            f"const send = globalThis[{json.dumps(binding)}];",
            f"record((told) => send(JSON.stringify(told)), describer(), hoverer(), {max_text});",
            "})();",
        )
    )


# Request counts of a recorded browser: by host, by type, and failures.

MAX_HOSTS: Final = 200
MAX_FAILURES: Final = 50
MAX_OPEN: Final = 10_000
OTHERS: Final = "(others)"


class Traffic:
    """Counts the DevTools events of one or more tabs, without queries and bodies."""

    def __init__(self) -> None:
        self._hosts: dict[str, Counter[str]] = {}
        self._types: Counter[str] = Counter()
        self._failures: list[dict[str, Any]] = []
        self._open: dict[str, tuple[str, str, str]] = {}  # id -> host, method, address
        self._total: Counter[str] = Counter()

    def requested(self, event: Mapping[str, Any]) -> None:
        """Handle `Network.requestWillBeSent`; a redirect repeats the id."""
        request = event["request"]
        url = str(request.get("url", ""))
        if not url.startswith(("http://", "https://", "ws://", "wss://")):
            return
        host = self._host(url)
        self._count(host, "requests")
        self._types[str(event.get("type", "Other")).lower()] += 1
        if len(self._open) < MAX_OPEN:
            self._open[str(event["requestId"])] = (host, str(request.get("method", "")), url)

    def responded(self, event: Mapping[str, Any]) -> None:
        """Handle `Network.responseReceived`: a status of 400 or more counts as failed."""
        status = int(event["response"].get("status", 0))
        known = self._open.get(str(event["requestId"]))
        if known is not None and status >= 400:
            self._fail(known, {"status": status})

    def finished(self, event: Mapping[str, Any]) -> None:
        """Handle `Network.loadingFinished`, with the encoded size."""
        known = self._open.pop(str(event["requestId"]), None)
        if known is not None:
            self._count(known[0], "bytes", int(event.get("encodedDataLength", 0)))

    def failed(self, event: Mapping[str, Any]) -> None:
        """Handle `Network.loadingFailed`; a cancelled request is no failure."""
        known = self._open.pop(str(event["requestId"]), None)
        if known is not None and not event.get("canceled"):
            self._fail(known, {"error": str(event.get("errorText", ""))[:100]})

    def summary(self) -> dict[str, Any]:
        """Return the counts as in a result."""
        hosts = sorted(self._hosts.items())
        return {
            "requests": self._total["requests"],
            "failed": self._total["failed"],
            "bytes": self._total["bytes"],
            "by_type": dict(sorted(self._types.items())),
            "by_host": [{"host": host, **dict(sorted(counts.items()))} for host, counts in hosts],
            "failures": self._failures,
        }

    def _host(self, url: str) -> str:
        found = addresses.parse(url)
        host = OTHERS if found is None else found.place
        return host if host in self._hosts or len(self._hosts) < MAX_HOSTS else OTHERS

    def _count(self, host: str, what: str, by: int = 1) -> None:
        self._hosts.setdefault(host, Counter())[what] += by
        self._total[what] += by

    def _fail(self, known: tuple[str, str, str], why: dict[str, Any]) -> None:
        host, method, url = known
        self._count(host, "failed")
        if len(self._failures) < MAX_FAILURES:
            address = redact.url(url.partition("#")[0].partition("?")[0])
            self._failures.append({"method": method, "url": address[:500], **why})


OPEN_MS: Final = 30_000
ANSWER_S: Final = 2.0
LOOK_S: Final = 0.5  # poll interval for the browser's end
SCREENSHOT_S: Final = 5.0
LOADED_MS: Final = 1_500  # limit of a screenshot's wait for the page's images
MAX_SCREENSHOT: Final = 8 * 1024 * 1024
MAX_WAITING: Final = 20_000
MAX_TYPED: Final = 100
MAX_STEPS: Final = 50  # changes of address a second; scripts can make thousands
BY_ITSELF_MS: Final = 1_000  # a window that closes so soon after an action was closed by its page
MAX_A_SECOND: Final = 300  # messages of all tabs; a person types 20
# Screenshots hide fields whose text is not kept, and passwords always.
_SECRET_CSS: Final = "input[type=password],[autocomplete^=cc-],[autocomplete=one-time-code]"
_FIELD_CSS: Final = "input:not([type=submit]):not([type=button]):not([type=reset]),textarea," \
    "[contenteditable]:not([contenteditable=false])"  # fmt: skip
_HIDDEN: Final = (
    "{color:transparent!important;-webkit-text-fill-color:transparent!important;"
    "text-shadow:none!important}"
)


_Event = Heard | Went | Answered | WindowRefused | TabClosed


class _Tab:
    """One recorded tab: its DevTools session, its navigation, and its script's world."""

    def __init__(self, number: int, page: Page, wire: CDPSession, frame_id: str) -> None:
        self.number = number
        self.page = page
        self.wire = wire
        self.navigation = NavigationLog(frame_id)
        self.worlds: set[int] = set()
        self.at = 0  # index in the tab's history
        self.acted_ms = 0  # time of the last action in it
        self.dialog: Mapping[str, Any] | None = None  # open, waiting for the answer
        self.sign: RecordingSign | None = None


# The line at the top edge of a recorded page: in CSS pixels, wider than any screen.
_LINE: Final = {"x": 0, "y": 0, "width": 20_000, "height": 4}
_RED: Final = {"r": 220, "g": 38, "b": 38, "a": 1}


class RecordingSign:
    """A red line along the top of a page, which tells the operator that a tab is recorded.

    The browser draws it above the page (DevTools `Overlay`), so that the page can neither see nor
    move it, and clicks pass through. A new document loses it. A screenshot would have it: see
    `hidden`.
    """

    def __init__(self, chromium: Chromium, wire: CDPSession) -> None:
        self._chromium, self._wire = chromium, wire

    @classmethod
    async def shown(cls, chromium: Chromium, page: Page) -> RecordingSign:
        """Show it in this tab; its own session leaves the recorder's events alone. Raises Error."""
        sign = cls(chromium, await page.context.new_cdp_session(page))
        wire = sign._wire
        wire.on("Page.frameNavigated", sign._on_document)
        for domain in ("Page", "DOM", "Overlay"):
            await wire.send(f"{domain}.enable")
        await sign.show()
        return sign

    async def show(self) -> None:
        """Draw it. A tab that is closing has none."""
        with suppress(Error, TimeoutError):
            async with self._chromium.within(ANSWER_S):
                await self._wire.send("Overlay.highlightRect", {**_LINE, "color": _RED})

    @asynccontextmanager
    async def hidden(self) -> AsyncIterator[None]:
        """Hide it inside the block, so that a screenshot shows the page alone."""
        with suppress(Error, TimeoutError):
            async with self._chromium.within(ANSWER_S):
                await self._wire.send("Overlay.hideHighlight")
        try:
            yield
        finally:
            await self.show()

    def _on_document(self, event: Mapping[str, Any]) -> None:
        if not event["frame"].get("parentId"):
            self._chromium.see_to(self.show())


class RateCap:
    """A limit of events within any second."""

    def __init__(self, most: int) -> None:
        self._times: deque[float] = deque(maxlen=most)

    def allows(self, now_s: float) -> bool:
        """Return whether one more event is allowed now, and count it."""
        full = len(self._times) == self._times.maxlen and now_s - self._times[0] < 1.0
        if not full:
            self._times.append(now_s)
        return not full


class PageRecorder:
    """See `work.recording_told.Recorder`. Loop-bound; the caller closes `instance`."""

    def __init__(self, instance: Instance, now_ms: Callable[[], int], *, has_sign: bool) -> None:
        self.dropped = 0
        self._instance = instance
        self._has_sign = has_sign
        self._now_ms = now_ms
        self._world = f"recorder-{secrets.token_hex(8)}"  # random, so that no page can guess it
        self._binding = f"tell_{secrets.token_hex(8)}"
        self._inbox: asyncio.Queue[tuple[_Event, Navigation | None]] = asyncio.Queue()
        self._tabs: list[_Tab] = []
        self._cap = RateCap(MAX_A_SECOND)
        self._steps = RateCap(MAX_STEPS)
        self._traffic = Traffic()
        self._typed: dict[str, tuple[str, bool]] = {}  # field -> its text, and whether it is secret

    async def open(self, url: str) -> None:
        """Open the first tab and go to `url`.

        Raises:
            PageError: the address cannot be opened; the error has the reason.
            BrowserGone: the browser died.
        """
        page = await self._instance.page()
        await self.attach(page)
        self._instance.context.on("page", self.attach)
        try:
            await page.goto(url, wait_until="commit", timeout=OPEN_MS)
        except PlaywrightTimeout as slow:
            raise no_answer(OPEN_MS) from slow
        except Error as failed:
            if not self._instance.alive or page.is_closed():
                raise BrowserGone(url=url) from failed
            refused = self._instance.why(page) or net_failure(failed.message)
            raise refused or PageError("navigation", "the page cannot be opened") from failed

    async def attach(self, page: Page) -> None:
        """Record `page` from now on."""
        if any(tab.page is page for tab in self._tabs):
            return
        try:
            async with self._instance.within(ANSWER_S):
                wire = await page.context.new_cdp_session(page)
                told = await wire.send("Target.getTargetInfo")
                tab = _Tab(len(self._tabs), page, wire, str(told["targetInfo"]["targetId"]))
                self._tabs.append(tab)
                page.on("close", lambda _: self._on_closed(tab))
                await self._listen(tab)
                if self._has_sign:
                    tab.sign = await RecordingSign.shown(self._instance.chromium, page)
        except (Error, TimeoutError):
            return  # closed already

    async def next(self) -> Happening:
        """Return the next event; `Closed` after all events before it."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    found, step = await self._inbox.get()
                return await self._finished(found, step)
            if not self._instance.alive:
                return Closed(await self._instance.chromium.was_lost())

    def rest(self) -> list[Happening]:
        """Return and remove all queued events."""
        left: list[Happening] = []
        while not self._inbox.empty():
            left.append(self._inbox.get_nowait()[0])
        return left

    async def screenshot(self, tab: int, hidden: Hidden, *, bare: bool) -> bytes | None:
        """Return a PNG of the window, or None after the time limit."""
        page, wire = self._tabs[tab].page, self._tabs[tab].wire
        style = _SECRET_CSS + _HIDDEN + ("" if bare else _FIELD_CSS + _HIDDEN)
        sign = self._tabs[tab].sign

        async def shoot() -> bytes:
            async with nullcontext() if sign is None else sign.hidden():
                return await page.screenshot(type="png", animations="disabled", style=style)

        try:
            async with self._instance.within(SCREENSHOT_S):
                with suppress(PlaywrightTimeout):
                    await page.wait_for_load_state("load", timeout=LOADED_MS)
                texts = hidden(self._queued_texts(bare=bare))
                shot = await masked_screenshot(page, wire, texts, shoot)
        except (TimeoutError, Error, MaskingFailed):
            return None
        return shot if len(shot) <= MAX_SCREENSHOT else None

    def _queued_texts(self, *, bare: bool) -> list[str]:
        """Return typed texts that are still queued; with `bare` only secret ones."""
        return [text for text, secret in self._typed.values() if secret or not bare]

    def network(self) -> dict[str, Any]:
        return self._traffic.summary()

    async def _listen(self, tab: _Tab) -> None:
        navigation, wire, traffic = tab.navigation, tab.wire, self._traffic
        handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "Page.frameRequestedNavigation": navigation.requested,
            "Page.frameStartedNavigating": navigation.started,
            "Page.frameNavigated": lambda event: self._on_navigation(
                tab, navigation.navigated(event)
            ),
            "Page.navigatedWithinDocument": lambda event: self._on_navigation(
                tab, navigation.within(event)
            ),
            "Page.windowOpen": lambda event: self._on_window(tab, event),
            "Page.javascriptDialogOpening": lambda event: setattr(tab, "dialog", event),
            "Page.javascriptDialogClosed": lambda event: self._on_answer(tab, event),
            "Runtime.executionContextCreated": lambda event: self._on_world(tab, event),
            "Runtime.bindingCalled": lambda event: self._on_message(tab, event),
            "Network.requestWillBeSent": traffic.requested,
            "Network.responseReceived": traffic.responded,
            "Network.loadingFinished": traffic.finished,
            "Network.loadingFailed": traffic.failed,
        }
        for name, handler in handlers.items():
            wire.on(name, handler)
        binding = {"name": self._binding, "executionContextName": self._world}
        source = script(self._binding, MAX_TEXT)
        run = {"source": source, "worldName": self._world, "runImmediately": True}
        # All at once, in this order: what a person does in a new tab before the answers is lost.
        await asyncio.gather(
            wire.send("Page.enable"),
            wire.send("Network.enable"),
            wire.send("Runtime.enable"),
            wire.send("Runtime.addBinding", binding),
            wire.send("Page.addScriptToEvaluateOnNewDocument", run),
        )

    def _on_world(self, tab: _Tab, event: Mapping[str, Any]) -> None:
        context = event["context"]
        if context.get("name") == self._world:
            tab.worlds.add(int(context["id"]))

    def _on_message(self, tab: _Tab, event: Mapping[str, Any]) -> None:
        if event.get("name") != self._binding or event.get("executionContextId") not in tab.worlds:
            return
        told = read_told(str(event.get("payload", "")))
        if told is None or self._is_flood(self._cap):
            self.dropped += 1
            return
        if told.kind == "type" and told.target is not None:
            self._remember(told.target, told)
        if told.kind not in ("ready", "scroll"):
            tab.acted_ms = self._now_ms()
        heard = Heard(self._now_ms(), tab.number, tab.navigation.url, told)
        self._inbox.put_nowait((heard, None))

    def _remember(self, field: Target, told: Told) -> None:
        """Store the text, because a screenshot may be taken before this message is read."""
        name = f"{field.frame} {field.path or field.css or field.name}"
        self._keep_typed(name, told.text, secret=told.secret or is_secret_field(field))

    def _keep_typed(self, name: str, text: str, *, secret: bool) -> None:
        self._typed.pop(name, None)
        self._typed[name] = (text, secret)
        while len(self._typed) > MAX_TYPED:
            del self._typed[next(iter(self._typed))]

    def _on_closed(self, tab: _Tab) -> None:
        now = self._now_ms()
        by_person = now - tab.acted_ms > BY_ITSELF_MS
        closed = TabClosed(now, tab.number, tab.navigation.url, by_person)
        self._inbox.put_nowait((closed, None))

    def _on_answer(self, tab: _Tab, event: Mapping[str, Any]) -> None:
        asked, tab.dialog = tab.dialog, None
        if asked is None or self._is_flood(self._cap):
            self.dropped += 1
            return
        accepted, text = bool(event.get("result")), str(event.get("userInput") or "")
        is_typed = accepted and asked["type"] == "prompt" and text != asked.get("defaultPrompt", "")
        if is_typed:
            field = Target("input", name=str(asked.get("message", "")))
            self._keep_typed("?", text, secret=is_secret_field(field))
        answered = Answered(
            self._now_ms(),
            tab.number,
            tab.navigation.url,
            asked["type"],
            str(asked.get("message", ""))[:MAX_TEXT],
            accepted,
            text if is_typed else None,
        )
        self._inbox.put_nowait((answered, None))

    def _on_window(self, tab: _Tab, event: Mapping[str, Any]) -> None:
        """Record a window that the browser did not open: no other event reports it."""
        if self._instance.keeps_windows or not event.get("userGesture"):
            return
        if self._is_flood(self._cap):
            self.dropped += 1
            return
        asked = str(event.get("url") or "")
        refused = WindowRefused(self._now_ms(), tab.number, tab.navigation.url, asked)
        self._inbox.put_nowait((refused, None))

    def _is_flood(self, cap: RateCap) -> bool:
        now = asyncio.get_running_loop().time()
        return self._inbox.qsize() >= MAX_WAITING or not cap.allows(now)

    def _on_navigation(self, tab: _Tab, step: Navigation | None) -> None:
        if step is None:
            return
        if self._is_flood(self._steps):
            self.dropped += 1
            return
        went = Went(self._now_ms(), tab.number, step.url, step.how, step.asked, step.failed)
        self._inbox.put_nowait((went, step))

    async def _finished(self, found: _Event, step: Navigation | None) -> _Event:
        """Tell back from forward by the browser's own history."""
        if step is None or not isinstance(found, Went):
            return found
        tab = self._tabs[found.tab]
        before = tab.at
        with suppress(Error, TimeoutError):
            async with self._instance.within(ANSWER_S):
                history = await tab.wire.send("Page.getNavigationHistory")
                tab.at = int(history["currentIndex"])
        if step.in_history and tab.at > before:
            return msgspec.structs.replace(found, how="forward")
        return found
