"""Collect the parts of an evidence bundle from one tab; page content is only data."""

from __future__ import annotations

import asyncio
import json
import math
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.resources import files
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import msgspec
from playwright.async_api import Error

from engine.browser.chromium.browser_instance import close_context
from engine.browser.chromium.consent_rules import ConsentRules
from engine.browser.interact.agent_tab import AgentTab, Visit
from engine.browser.interact.command_errors import PictureTooLarge
from engine.browser.page.bundle_parts import MAX_DOM, BundleOptions, Opened, Piece
from engine.browser.page.consent import ConsentBanners, TabConsent
from engine.browser.page.extraction_options import script
from engine.browser.page.isolated_world import evaluate
from engine.browser.page.screenshot import Picture, picture
from engine.browser.page.secret_mask import without_secret_values
from engine.model import redact
from engine.model.display import display
from engine.model.errors import EngineError

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Page, Request, Response, WebSocket
    from playwright.async_api import Error as PageFailure


# Console log of a page, with its uncaught errors.

MAX_LINES: Final = 200  # the newest ones, as OpenChrome does
MAX_TEXT: Final = 2_000


class ConsoleLog:
    """Record a page's console from construction on; times are ms since then."""

    def __init__(
        self,
        page: Page,
        monotonic: Callable[[], float],
        *,
        key_shapes: bool = True,
        hide: Callable[[str], str] = str,
    ) -> None:
        """Record lines; `hide` removes secrets from each text before it is cut."""
        self._hide = hide
        self._page = page
        self._monotonic = monotonic
        self._began = monotonic()
        self._lines: deque[dict[str, Any]] = deque(maxlen=MAX_LINES)
        self._key_shapes = key_shapes
        self.total = 0
        page.on("console", self._on_console)
        page.on("pageerror", self._on_error)

    @property
    def is_cut(self) -> bool:
        return self.total > len(self._lines)

    @property
    def redacted(self) -> int:
        """Number of key shapes removed from the kept lines."""
        return sum(line.get("redacted", 0) for line in self._lines)

    def close(self) -> None:
        """Stop recording; the tab stays usable."""
        self._page.remove_listener("console", self._on_console)
        self._page.remove_listener("pageerror", self._on_error)

    def encoded(self) -> bytes:
        """Return the content of the log file: one JSON object a line."""
        hidden = ("text", "url")  # a field may have received a secret since
        lines = [
            {name: self._hide(text) if name in hidden else text for name, text in line.items()}
            for line in self._lines
        ]
        return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)

    def _on_console(self, message: ConsoleMessage) -> None:
        place = message.location
        line = {"type": display(message.type, 20), **self._redact_text(message.text)}
        if place.get("url"):
            line["url"] = display(redact.text(self._hide(str(place["url"]))), 500)
        self._add(line, place.get("lineNumber"))

    def _on_error(self, failure: PageFailure) -> None:
        details = f"{failure.name}: {failure.message}"
        self._add({"type": "uncaught", **self._redact_text(details)}, None)

    def _redact_text(self, text: str) -> dict[str, Any]:
        """Redact the page's text; addresses in it, which the browser adds too, lose more."""
        kept, count = redact.url(self._hide(text)), 0
        if self._key_shapes:
            kept, count = redact.content(kept)
        return {"text": display(kept, MAX_TEXT), **({"redacted": count} if count else {})}

    def _add(self, line: dict[str, Any], number: int | None) -> None:
        at_ms = round((self._monotonic() - self._began) * 1_000, 1)
        self.total += 1
        self._lines.append({"at_ms": at_ms, **line, **({"line": number} if number else {})})


# Network log of a page: a summary of each request, never a body.
#
# The shape follows the entries of a HAR where possible. Addresses and headers are redacted.

MAX_ENTRIES: Final = 2_000
MAX_URL: Final = 2_000  # characters; a data: address may hold a whole file
MAX_HEADERS: Final = 60
MAX_HEADER: Final = 500


class NetworkLog:
    """Record a page's requests for `window_ms` from construction on; times are ms since then."""

    def __init__(
        self,
        page: Page,
        window_ms: int,
        monotonic: Callable[[], float],
        hide: Callable[[str], str] = str,
    ) -> None:
        """Record requests; `hide` removes secrets from each text before it is cut."""
        self._page = page
        self._hide = hide
        self._window_ms = window_ms
        self._monotonic = monotonic
        self._began = monotonic()
        self._entries: dict[Any, dict[str, Any]] = {}
        self._finished: list[Request] = []
        self._total = 0
        self._handlers = {
            "request": self._on_request,
            "response": self._on_response,
            "requestfinished": self._on_finished,
            "requestfailed": self._on_failed,
            "websocket": self._on_websocket,
        }
        for event, handler in self._handlers.items():
            page.on(event, handler)  # type: ignore[call-overload]  # one for each name

    @property
    def left_s(self) -> float:
        """Seconds until the end of the window."""
        return max(0.0, self._window_ms / 1_000 - (self._monotonic() - self._began))

    @property
    def is_cut(self) -> bool:
        return self._total > len(self._entries)

    @property
    def total(self) -> int:
        return self._total

    def close(self) -> None:
        """Stop recording; the tab stays usable."""
        for event, handler in self._handlers.items():
            self._page.remove_listener(event, handler)

    async def encoded(self) -> bytes:
        """Return the content of the log file."""
        for request in self._finished:
            await self._measure(request)
        details = {
            "window_ms": self._window_ms,
            "total": self._total,
            "entries": [self._clean(entry) for entry in self._entries.values()],
        }
        return msgspec.json.format(msgspec.json.encode(details), indent=2) + b"\n"

    def _clean(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Redact the entry again: a field may have received a secret since."""
        clean: dict[str, Any] = {}
        for name, value in entry.items():
            clean[name] = self._hide(value) if isinstance(value, str) else value
            if isinstance(value, dict):
                clean[name] = {self._hide(one): self._hide(text) for one, text in value.items()}
        return clean

    def _now_ms(self) -> float:
        return round((self._monotonic() - self._began) * 1_000, 1)

    def _add(self, key: object, entry: dict[str, Any]) -> None:
        at_ms = self._now_ms()
        if at_ms > self._window_ms:
            return
        self._total += 1
        if len(self._entries) < MAX_ENTRIES:
            self._entries[key] = {**entry, "started_ms": at_ms}

    def _on_request(self, request: Request) -> None:
        entry: dict[str, Any] = {
            "url": self._address(request.url),
            "method": display(request.method, 20),
            "type": request.resource_type,
            "request_headers": self._headers(request.headers),
        }
        if request.redirected_from is not None:
            entry["redirected_from"] = self._address(request.redirected_from.url)
        self._add(request, entry)

    def _on_response(self, response: Response) -> None:
        entry = self._entries.get(response.request)
        if entry is not None:
            headers = response.headers
            entry["status"] = response.status
            entry["mime"] = display(headers.get("content-type", ""), 100)
            entry["response_headers"] = self._headers(headers)

    def _on_finished(self, request: Request) -> None:
        entry = self._entries.get(request)
        if entry is not None:
            timing = request.timing
            self._finished.append(request)
            if timing["responseStart"] >= 0:
                entry["ttfb_ms"] = round(timing["responseStart"], 1)
            if timing["responseEnd"] >= 0:
                entry["duration_ms"] = round(timing["responseEnd"], 1)

    def _on_failed(self, request: Request) -> None:
        entry = self._entries.get(request)
        if entry is not None:
            entry["error"] = display(request.failure or "failed", 200)

    def _on_websocket(self, socket: WebSocket) -> None:
        self._add(socket, {"url": self._address(socket.url), "method": "GET", "type": "websocket"})

    async def _measure(self, request: Request) -> None:
        try:
            sizes = await request.sizes()
        except Error:
            return  # the page is gone, and its sizes with it
        self._entries[request]["bytes"] = sizes["responseBodySize"]

    def _address(self, url: str) -> str:
        if url.startswith(("data:", "blob:")):
            return display(self._hide(url[:MAX_URL]), 60)
        return display(redact.text(self._hide(url)), MAX_URL)

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        """Return the headers without secrets: by header name, by shape, or given by the user."""
        some = {name: self._hide(value) for name, value in list(headers.items())[:MAX_HEADERS]}
        kept: dict[str, str] = redact.value(some)
        return {display(name, 100): display(str(value), MAX_HEADER) for name, value in kept.items()}


# Perceptual hash of a picture: similar pictures have hashes that differ in few bits.
#
# The usual pHash, described in full so that others can compute the same: the luma of each pixel,
# (299 R + 587 G + 114 B) / 1000, is averaged over 32 × 32 equal boxes (a pixel at (x, y) of a
# w × h picture falls into column ⌊32 x / w⌋, row ⌊32 y / h⌋). Of their two-dimensional DCT-II
# the 8 × 8 lowest frequencies are rounded to whole numbers. Row by row, each but the first
# gives a bit: 1 if it exceeds the median of those 63. The first bit, the mean's, is 0. The 64
# bits are written as 16 hex digits. Two pictures look alike below a distance of about 10.

GRID: Final = 32
KEPT: Final = 8
ALGORITHM: Final = "phash-dct-64"


def perceptual_hash(lumas: Sequence[float]) -> str:
    """Compute the hash of a picture's 32 × 32 average lumas, given row by row.

    Raises:
        ValueError: the number of lumas is not 1,024.
    """
    if len(lumas) != GRID * GRID:
        raise ValueError(f"{len(lumas)} lumas instead of {GRID * GRID}")
    rows = [_lowest(lumas[at : at + GRID]) for at in range(0, len(lumas), GRID)]
    columns = [_lowest([row[u] for row in rows]) for u in range(KEPT)]
    # Rounded, because the last digits of a cosine differ between machines.
    found = [round(columns[u][v]) for v in range(KEPT) for u in range(KEPT)]
    middle = median(found[1:])
    bits = "0" + "".join("1" if one > middle else "0" for one in found[1:])
    return f"{int(bits, 2):016x}"


def _lowest(values: Sequence[float]) -> list[float]:
    return [sum(map(float.__mul__, map(float, values), _waves(u))) for u in range(KEPT)]


@cache
def _waves(u: int) -> tuple[float, ...]:
    return tuple(math.cos(math.pi * (2 * x + 1) * u / (2 * GRID)) for x in range(GRID))


CLOSE_S: Final = 4.0
LEFT_S: Final = 0.5  # of the page's time, to leave a rejection that leads nowhere
_DOM: Final = """(() => {
  const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "";
  const root = SHOWN.markupOf(document);
  const whole = type ? `${type}\\n${root}` : root;
  return { html: whole.slice(0, %d).toWellFormed(), length: whole.length };
})()"""


@cache
def _dom_script() -> str:
    return (_DOM % MAX_DOM).replace("SHOWN", script("shown"), 1)


@cache
def _luma_script() -> str:
    text = files("engine.browser").joinpath("luma.js").read_text("utf-8")
    return text.partition("\n")[2]


class TabCamera:
    """Camera of one tab (see `bundle_parts.Camera`); it records until `close`.

    `part_s` limits each part of the page, in seconds.
    """

    worker = ""

    def __init__(
        self,
        tab: AgentTab,
        args: BundleOptions,
        monotonic: Callable[[], float],
        part_s: float,
        consent: TabConsent | None,
    ) -> None:
        self._part_s = part_s
        self._consent = consent
        self._tab = tab
        self._args = args
        self._network = NetworkLog(tab.page, args.network_window_ms, monotonic, tab.mask.hide)
        self._console = ConsoleLog(
            tab.page, monotonic, key_shapes=args.redact_content, hide=tab.mask.hide
        )
        self._picture: Picture | None = None

    def close(self) -> None:
        self._network.close()
        self._console.close()

    async def open(self) -> Opened:
        args, tab = self._args, self._tab
        async with tab.within(args.timeout_ms / 1_000):
            if args.url is not None:
                found = await self._go(args.url)
            else:
                found = await tab.arrive(args.timeout_ms, args.wait_for)
        if "network" in args.include and (found.settled or args.wait_for is None):
            with suppress(EngineError):  # the parts report a failure of the page
                found = await self._at_the_end_of_the_window()
        told = self._consent.outcome if self._consent is not None else {}
        return Opened(found.url, found.title, found.status, found.settled, told)

    async def _go(self, url: str) -> Visit:
        args, tab, consent = self._args, self._tab, self._consent
        until_s = asyncio.get_running_loop().time() + args.timeout_ms / 1_000
        if consent is not None:
            consent.begin()
        return await self._without_banners(
            await tab.go(url, args.timeout_ms, args.wait_for), until_s
        )

    async def _without_banners(self, found: Visit, until_s: float) -> Visit:
        """Reject the banners of the page; if nothing else comes then, it stays as it is."""
        consent, until_s = self._consent, until_s - LEFT_S
        while consent is not None and await consent.reject(until_s):
            left_ms = max(0, round((until_s - asyncio.get_running_loop().time()) * 1_000))
            try:
                async with asyncio.timeout_at(until_s):
                    found = await self._tab.arrive(left_ms, self._args.wait_for)
            except (EngineError, TimeoutError):
                await consent.give_up()
                break
        return found

    async def _at_the_end_of_the_window(self) -> Visit:
        """Wait until the network log ends: the bundle shows the page after its responses."""
        await asyncio.sleep(self._network.left_s)
        until_s = asyncio.get_running_loop().time() + self._args.timeout_ms / 1_000
        async with self._tab.within(self._args.timeout_ms / 1_000):
            found = await self._tab.arrive(self._args.timeout_ms, self._args.wait_for)
            return await self._without_banners(found, until_s)

    async def take(self, part: str) -> Piece:
        takers = {
            "dom": self._dom,
            "screenshot": self._screenshot,
            "phash": self._phash,
            "network": self._requests,
            "console": self._console_log,
        }
        return await takers[part]()

    async def _dom(self) -> Piece:
        async with self._tab.within(self._part_s):
            await self._tab.world.ask("page")  # registers the values of secret fields
            details = await evaluate(self._tab.instance.wire(self._tab.page), _dom_script())
        html = without_secret_values(str(details["html"]))
        key_shapes = self._args.redact_content
        clean, count = await asyncio.to_thread(self._tab.mask.markup, html, key_shapes=key_shapes)
        whole = clean.encode("utf-8", "replace")
        data = whole[:MAX_DOM].decode("utf-8", "ignore").encode()
        cut = len(data) < len(whole) or int(details["length"]) > MAX_DOM
        return Piece(data, cut, _redacted(count))

    async def _screenshot(self) -> Piece:
        taken = await self._take_picture()
        details = {"width": taken.width, "height": taken.height}
        return Piece(taken.png, taken.cut, details)

    async def _take_picture(self) -> Picture:
        """Take a picture of the whole page; of a page too large, of the visible part."""
        if self._picture is None:
            async with self._tab.within(self._part_s):
                self._picture = await self._draw()
        return self._picture

    async def _draw(self) -> Picture:
        if not self._args.full_page:
            return await picture(self._tab, ref=None, full_page=False)
        try:
            return await picture(self._tab, ref=None, full_page=True)
        except PictureTooLarge:
            visible = await picture(self._tab, ref=None, full_page=False)
            return msgspec.structs.replace(visible, cut=True)

    async def _phash(self) -> Piece:
        taken = await self._take_picture()
        async with self._tab.within(self._part_s):
            lumas = await self._lumas(taken.png)
        found = perceptual_hash(lumas)
        details = {"algorithm": ALGORITHM, "hash": found}
        size = {"width": taken.width, "height": taken.height}
        data = json.dumps({**details, **size}, indent=2).encode() + b"\n"
        return Piece(data, taken.cut, details)

    async def _lumas(self, png: bytes) -> list[float]:
        """Compute lumas in a separate empty page: the watched page could falsify code or canvas."""
        chromium = self._tab.instance.chromium
        context = await chromium.browser.new_context()
        try:
            page = await context.new_page()
            found: list[float] = await page.evaluate(
                _luma_script(), [b64encode(png).decode("ascii"), GRID]
            )
            return found
        finally:
            await close_context(chromium, context, CLOSE_S)

    async def _requests(self) -> Piece:
        data = await self._network.encoded()
        return Piece(data, self._network.is_cut, {"entries": self._network.total})

    async def _console_log(self) -> Piece:
        console = self._console
        details = {"lines": console.total, **_redacted(console.redacted)}
        return Piece(console.encoded(), console.is_cut, details)


def _redacted(count: int) -> dict[str, Any]:
    return {"redacted": count} if count else {}


@asynccontextmanager
async def camera_on(
    tab: AgentTab,
    args: BundleOptions,
    monotonic: Callable[[], float],
    part_s: float,
    rules: ConsentRules | None = None,
) -> AsyncIterator[TabCamera]:
    """Open a camera on `tab`, which is not changed; dismiss a consent banner by `rules`."""
    consent: TabConsent | None = None
    if rules is not None:
        async with tab.within(CLOSE_S):
            wire = tab.instance.wire(tab.page)
            consent = await TabConsent.attach(ConsentBanners(rules), tab.page, wire)
    camera = TabCamera(tab, args, monotonic, part_s, consent)
    try:
        yield camera
    finally:
        camera.close()
