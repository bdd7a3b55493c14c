"""PNG screenshots of a tab, and its state for a session snapshot."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from typing import Any, Final

import msgspec

from engine.browser.interact.agent_tab import AgentTab
from engine.browser.interact.command_errors import ElementNotReady, PageUnreadable, PictureTooLarge
from engine.browser.interact.element_actions import READY_MS, Target
from engine.browser.page.isolated_world import evaluate
from engine.browser.page.screenshot_masking import Box, MaskingFailed, echo_boxes, masked_screenshot
from engine.egress.egress_policy import without_credentials
from engine.model import addresses
from engine.secrets.value_search import Echoes

_NOT_MASKED = "A secret in the picture could not be painted over in time."
UNCOVER_S = 2.0
MOST_BYTES = 8 * 1024 * 1024
MOST_HEIGHT = 16_000  # pixels; Chromium draws nothing beyond 16,384


class Picture(msgspec.Struct, frozen=True):
    """A PNG and its size in pixels; `cut` when the page continues below it."""

    png: bytes
    width: int
    height: int
    cut: bool = False


async def picture(tab: AgentTab, *, ref: str | None, full_page: bool) -> Picture:
    """Take a screenshot with secrets masked.

    A secret field shows dots, and a secret that the page repeats elsewhere is painted over. Of a
    page that repeats one only the visible part is taken, because Chromium would lay out the rest
    anew.

    Raises:
        StaleReference, ElementNotReady: concerning the element `ref`.
        PictureTooLarge: the PNG would exceed 8 MiB.
        PageUnreadable: a secret could not be painted over.
    """
    how: dict[str, Any] = {"type": "png", "animations": "disabled", "caret": "hide"}
    cut = False
    if ref is not None:
        how["clip"] = await _box(tab, ref)
    elif full_page and await _shows_a_secret(tab):
        cut = True
    elif full_page:
        size = await tab.world.ask("extent")
        cut = size["height"] > MOST_HEIGHT
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], MOST_HEIGHT)}
        how |= {"full_page": True, "clip": clip}
    await tab.world.ask("cover", on=True)
    try:
        png = await _shot(tab, how)
    finally:
        with suppress(TimeoutError):  # a page that hangs cannot be uncovered
            async with asyncio.timeout(UNCOVER_S):
                await tab.world.ask("cover", on=False)
    if len(png) > MOST_BYTES:
        raise PictureTooLarge(size_bytes=len(png), most_bytes=MOST_BYTES)
    width, height = struct.unpack(">II", png[16:24])  # from the PNG's first chunk
    return Picture(png, width, height, cut)


async def _shot(tab: AgentTab, how: dict[str, Any]) -> bytes:
    async def clip() -> Box:
        return Box(**how["clip"])

    async def shoot() -> bytes:
        return await tab.page.screenshot(**how)

    wire, is_part = tab.instance.wire(tab.page), "clip" in how and "full_page" not in how
    echoes = Echoes(()) if "full_page" in how else tab.mask.echoes
    try:
        return await masked_screenshot(tab.page, wire, echoes, shoot, clip if is_part else None)
    except MaskingFailed:
        raise PageUnreadable(reason=_NOT_MASKED) from None


async def _shows_a_secret(tab: AgentTab) -> bool:
    echoes = tab.mask.echoes
    try:
        return bool(echoes and await echo_boxes(tab.page, tab.instance.wire(tab.page), echoes))
    except MaskingFailed:
        raise PageUnreadable(reason=_NOT_MASKED) from None


async def _box(tab: AgentTab, ref: str) -> dict[str, float]:
    target = Target(tab, ref)
    point = await target.ask("point", limitMs=READY_MS, hit=False, enabled=False, editable=False)
    if "box" not in point:
        raise ElementNotReady(element=target.to_element(point).called, reason=str(point["problem"]))
    x, y, width, height = point["box"]
    left, top = max(0.0, x), max(0.0, y)
    return {"x": left, "y": top, "width": x + width - left, "height": y + height - top}


_HERE: Final = """(() => ({
  x: Math.round(scrollX), y: Math.round(scrollY), title: document.title.slice(0, 2000),
  url: location.href,
}))()"""
_STORED: Final = """(() => {
  try {
    return Object.entries(localStorage).map(([name, value]) => ({ name, value }));
  } catch { return []; }
})()"""


class Look(msgspec.Struct, frozen=True):
    """Current state of one tab: plain texts without secrets, scroll in CSS pixels."""

    url: str
    title: str
    scroll_x: int = 0
    scroll_y: int = 0
    status: int | None = None
    png: bytes | None = None
    origin: str = ""
    storage: list[dict[str, str]] = []


async def capture(
    tab: AgentTab, *, storage: bool, screenshot: bool, redact_content: bool, status: int | None
) -> Look:
    """Read the current state of `tab`; `status` is that of the document, if known."""
    wire = tab.instance.wire(tab.page)
    here = await evaluate(wire, _HERE)
    url = str(here["url"])
    stored = await evaluate(wire, _STORED) if storage else []
    shot = await picture(tab, ref=None, full_page=False) if screenshot else None
    return Look(
        url=tab.mask.text(without_credentials(url), 2_048),
        title=tab.mask.content(str(here["title"]), 500, key_shapes=redact_content),
        scroll_x=int(here["x"]),
        scroll_y=int(here["y"]),
        status=status,
        png=shot.png if shot else None,
        origin=_origin(url) if stored else "",
        storage=stored,
    )


def _origin(url: str) -> str:
    found = addresses.parse(url)
    return "" if found is None else found.origin
