"""Resolve the selector and the frame of a command to the element that it acts on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.command_failures import is_bad_selector
from engine.browser.command_stage import Call
from engine.work.command_errors import CommandFailed

if TYPE_CHECKING:
    from playwright.async_api import Frame, Locator, Page

ENTER_FRAME: Final = " >> internal:control=enter-frame >> "  # what Playwright's frame_locator adds
PATIENCE_MS: Final = 5_000  # a page may still be loading: then an alternative would be premature
LOOK_S: Final = 0.1
NO_FRAME: Final = "the frame selector met an element that is no frame"


def whole_selector(call: Call, selector: str) -> str:
    """`selector` inside of the command's frames; of several frames the first, as of elements."""
    frames = (f"{each} >> nth=0" for each in call.frames)
    return ENTER_FRAME.join((*frames, selector))


def frame_path(frames: Sequence[str]) -> str:
    """The selector of the last of nested frames, of each outer one the first match."""
    *outer, last = frames
    return ENTER_FRAME.join((*(f"{each} >> nth=0" for each in outer), last))


async def count_frames(call: Call, page: Page) -> None:
    """Keep how many elements the frame selectors met, of nested ones the most ambiguous."""
    for depth in range(1, len(call.frames) + 1):
        met = await page.locator(frame_path(call.frames[:depth])).count()
        call.frame_matches = max(call.frame_matches, met)


async def missing_frame(call: Call, page: Page) -> str:
    """The first of the command's frames that the page does not have; empty where it has all."""
    for depth in range(1, len(call.frames) + 1):
        if not await page.locator(frame_path(call.frames[:depth])).count():
            return call.frames[depth - 1]
    return ""


def every(page: Page, call: Call, selector: str = "") -> Locator:
    """All elements that the selector of the command (or `selector`) matches in its frame."""
    return page.locator(whole_selector(call, selector or call.selector))


async def element(call: Call) -> Locator:
    """The first element that the command's selector matches, once there is one.

    The number of matches is kept in the call: pages often hold the same thing twice.
    """
    page = await call.stage.page()
    found = every(page, call)
    others: tuple[str, ...] = call.args.get("alternatives", ())
    patience_ms = min(PATIENCE_MS, call.left_ms / 2) if others else call.left_ms
    try:
        await found.first.wait_for(state="attached", timeout=patience_ms)
        call.matches = await found.count()
    except Error as failed:
        if not others or not (isinstance(failed, PlaywrightTimeout) or is_bad_selector(failed)):
            raise
    if call.matches:
        await count_frames(call, page)
    if call.matches == 1 or not others:
        return found.first
    return await _alternative(page, call, found, others)


async def _alternative(page: Page, call: Call, found: Locator, others: tuple[str, ...]) -> Locator:
    """The element of the first alternative that means one only.

    Where the selector met several, it must be one of these, else the first of them counts.
    """
    first_met = call.matches
    while True:
        for each in others:
            other = every(page, call, each)
            if await _count(other) == 1 and (not first_met or await _is_among(other, found)):
                call.used, call.met, call.matches = each, first_met, 1
                return other
        if first_met:
            return found.first
        if (now := await _count(found)) or call.left_ms <= LOOK_S * 2_000:
            await found.first.wait_for(state="attached", timeout=call.left_ms)
            call.matches = now
            return found.first
        await asyncio.sleep(LOOK_S)


async def _count(found: Locator) -> int:
    """How many elements match; none where the browser cannot read the selector."""
    try:
        return await found.count()
    except Error as failed:
        if is_bad_selector(failed):
            return 0
        raise


async def _is_among(one: Locator, several: Locator) -> bool:
    node = await one.element_handle()
    return bool(await several.evaluate_all("(all, one) => all.includes(one)", node))


async def frame_element(call: Call) -> Locator | None:
    """The element of the innermost frame that the command names; None where it names none."""
    if not call.frames:
        return None
    page = await call.stage.page()
    return page.locator(frame_path(call.frames)).first


async def document(call: Call) -> Page | Frame:
    """The document that the command works in: the page, or the frame that it names.

    Raises:
        CommandFailed: what the frame selector matches is no frame.
    """
    found = await frame_element(call)
    if found is None:
        return await call.stage.page()
    handle = await found.element_handle(timeout=call.left_ms)
    frame = await handle.content_frame()
    if frame is None:
        raise CommandFailed(NO_FRAME)
    await count_frames(call, await call.stage.page())
    return frame
