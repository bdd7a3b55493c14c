"""Screencast of one tab, a few pictures a second, only while a reader watches.

The browser sends the next picture when the last one was acknowledged, so the reader sets the
rate. A tab with a typed secret is not cast: it is captured at intervals, and the secret is
painted over before the picture leaves this package.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error

from engine.browser.page.screenshot_masking import MaskingFailed, masked_screenshot
from engine.secrets.value_search import Echoes

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

PAUSE_S: Final = 0.25  # between two pictures: four a second suffice and cost little
STILL_S: Final = 1.0  # a static page sends nothing; its address is reported all the same
CAREFUL_S: Final = 1.0
CLOSE_S: Final = 2.0
ANSWER_S: Final = 5.0
QUALITY: Final = 60


async def screencast(page: Page, size: tuple[int, int]) -> AsyncGenerator[bytes, None]:
    """Yield JPEGs of the tab, at most of `size` (pixels); b"" after a second without change.

    Ends when the tab closes.
    """
    inbox: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    notify_end = _on_close(page, inbox)
    wire: CDPSession | None = None
    try:
        with suppress(Error, TimeoutError):
            wire = await _started(page, size, inbox)
            while True:
                frames = await _next_frames(inbox)
                if None in frames:
                    return
                yield b64decode(frames[-1]["data"]) if frames and frames[-1] else b""
                if frames:
                    await asyncio.sleep(PAUSE_S)
                await _acknowledge(wire, frames)
    finally:
        page.remove_listener("close", notify_end)
        if wire is not None:
            await _detach(wire)


def _on_close(page: Page, inbox: asyncio.Queue[dict[str, Any] | None]) -> Any:
    def notify_end(_: object) -> None:
        inbox.put_nowait(None)

    page.on("close", notify_end)
    return notify_end


async def _started(
    page: Page, size: tuple[int, int], inbox: asyncio.Queue[dict[str, Any] | None]
) -> CDPSession:
    """Start a cast in a separate DevTools session, which ends with the session."""
    width, height = size
    how = {"format": "jpeg", "quality": QUALITY, "maxWidth": width, "maxHeight": height}
    async with asyncio.timeout(ANSWER_S):
        wire = await page.context.new_cdp_session(page)
    try:
        wire.on("Page.screencastFrame", inbox.put_nowait)
        async with asyncio.timeout(ANSWER_S):
            await wire.send("Page.enable")
            await wire.send("Page.startScreencast", how)
    except BaseException:
        await _detach(wire)
        raise
    return wire


async def _next_frames(inbox: asyncio.Queue[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
    """Return the queued frames; empty after a second without any."""
    frames: list[dict[str, Any] | None] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(STILL_S):
            frames.append(await inbox.get())
    while not inbox.empty():
        frames.append(inbox.get_nowait())
    return frames


async def _acknowledge(wire: CDPSession, frames: list[dict[str, Any] | None]) -> None:
    async with asyncio.timeout(ANSWER_S):
        for one in filter(None, frames):
            await wire.send("Page.screencastFrameAck", {"sessionId": one["sessionId"]})


async def masked_pictures(
    page: Page, values: Collection[str], fields: Collection[str]
) -> AsyncGenerator[bytes, None]:
    """Yield PNGs of the tab, about one a second, with typed texts masked.

    `values` and the selectors in `fields` are read again for each picture, because both may grow.
    Yields b"" if masking takes too long. Ends when the tab closes.
    """
    wire: CDPSession | None = None
    try:
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                wire = await page.context.new_cdp_session(page)
            while not page.is_closed():
                yield await _masked_picture(page, wire, tuple(values), tuple(fields))
                await asyncio.sleep(CAREFUL_S)
    finally:
        if wire is not None:
            await _detach(wire)


async def _masked_picture(
    page: Page, wire: CDPSession, values: tuple[str, ...], fields: tuple[str, ...]
) -> bytes:
    async def shoot() -> bytes:
        answer = await wire.send("Page.captureScreenshot", {"format": "png"})
        return b64decode(answer["data"])

    try:
        async with asyncio.timeout(ANSWER_S):
            return await masked_screenshot(page, wire, Echoes(values), shoot, fields=fields)
    except (MaskingFailed, TimeoutError):
        return b""


async def _detach(wire: CDPSession) -> None:
    """Detach within a time limit, which ends the cast, also after cancellation."""
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            await wire.detach()
