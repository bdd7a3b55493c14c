"""Takes the parts of an evidence bundle from one tab; everything the page says is only data."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from engine.browser.chromium.context_closing import close_context
from engine.browser.interact.agent_tab import AgentTab, Visit
from engine.browser.interact.tool_refusals import PictureTooLarge
from engine.browser.page.console_log import ConsoleLog
from engine.browser.page.extraction_options import script
from engine.browser.page.isolated_expression import evaluate
from engine.browser.page.network_log import NetworkLog
from engine.browser.page.password_fields import without_secret_values
from engine.browser.page.screenshot import Picture, picture
from engine.kinds.evidence.evidence_args import EvidenceArgs, Part
from engine.kinds.evidence.evidence_bundle import PART_S, Opened, Piece
from engine.kinds.evidence.perceptual_hash import ALGORITHM, GRID, perceptual_hash
from engine.model.errors import EngineError

CLOSE_S: Final = 4.0
MAX_DOM: Final = 8 * 1024 * 1024  # bytes of dom.html
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
    """See `work.evidence.Camera`. It watches from its making on; `close` ends that."""

    def __init__(self, tab: AgentTab, args: EvidenceArgs, monotonic: Callable[[], float]) -> None:
        self._tab = tab
        self._args = args
        self._network = NetworkLog(tab.page, args.network_window_ms, monotonic, tab.veil.hide)
        self._console = ConsoleLog(
            tab.page, monotonic, key_shapes=args.redact_content, hide=tab.veil.hide
        )
        self._picture: Picture | None = None

    def close(self) -> None:
        self._network.close()
        self._console.close()

    async def open(self) -> Opened:
        args, tab = self._args, self._tab
        async with tab.within(args.timeout_ms / 1_000):
            if args.url is not None:
                found = await tab.go(args.url, args.timeout_ms, args.wait_for)
            else:
                found = await tab.arrive(args.timeout_ms, args.wait_for)
        if "network" in args.include and (found.settled or args.wait_for is None):
            with suppress(EngineError):  # what became of the page meanwhile, its parts tell
                found = await self._at_the_end_of_the_window()
        return Opened(found.url, found.title, found.status, found.settled)

    async def _at_the_end_of_the_window(self) -> Visit:
        """What the bundle shows of the page is what it made of the answers in its log."""
        await asyncio.sleep(self._network.left_s)
        async with self._tab.within(self._args.timeout_ms / 1_000):
            return await self._tab.arrive(self._args.timeout_ms, self._args.wait_for)

    async def take(self, part: Part) -> Piece:
        takers = {
            "dom": self._dom,
            "screenshot": self._screenshot,
            "phash": self._phash,
            "network": self._requests,
            "console": self._said,
        }
        return await takers[part]()

    async def _dom(self) -> Piece:
        async with self._tab.within(PART_S):
            await self._tab.world.ask("page")  # learns what stands in fields for secrets
            told = await evaluate(self._tab.instance.wire(self._tab.page), _dom_script())
        html = without_secret_values(str(told["html"]))
        key_shapes = self._args.redact_content
        clean, count = await asyncio.to_thread(self._tab.veil.markup, html, key_shapes=key_shapes)
        whole = clean.encode("utf-8", "replace")
        data = whole[:MAX_DOM].decode("utf-8", "ignore").encode()
        cut = len(data) < len(whole) or int(told["length"]) > MAX_DOM
        return Piece(data, cut, _redacted(count))

    async def _screenshot(self) -> Piece:
        taken = await self._take_picture()
        told = {"width": taken.width, "height": taken.height}
        return Piece(taken.png, taken.cut, told)

    async def _take_picture(self) -> Picture:
        """The whole page; what is too large for that is taken as far as a screen shows it."""
        if self._picture is None:
            async with self._tab.within(PART_S):
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
        async with self._tab.within(PART_S):
            lumas = await self._lumas(taken.png)
        found = perceptual_hash(lumas)
        told = {"algorithm": ALGORITHM, "hash": found}
        size = {"width": taken.width, "height": taken.height}
        data = json.dumps({**told, **size}, indent=2).encode() + b"\n"
        return Piece(data, taken.cut, told)

    async def _lumas(self, png: bytes) -> list[float]:
        """Computed in an empty page of its own: the watched page lends neither code nor canvas."""
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

    async def _said(self) -> Piece:
        console = self._console
        told = {"lines": console.total, **_redacted(console.redacted)}
        return Piece(console.encoded(), console.is_cut, told)


def _redacted(count: int) -> dict[str, Any]:
    return {"redacted": count} if count else {}


@asynccontextmanager
async def camera_on(
    tab: AgentTab, args: EvidenceArgs, monotonic: Callable[[], float]
) -> AsyncIterator[TabCamera]:
    """A camera on `tab`, which stays as it is."""
    camera = TabCamera(tab, args, monotonic)
    try:
        yield camera
    finally:
        camera.close()
