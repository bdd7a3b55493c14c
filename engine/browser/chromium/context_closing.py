"""Close a context in spite of its pages: in order, without its busiest page, or by force."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

    from engine.browser.chromium.launch import Chromium

CALM_S = 2.0


async def close_context(chromium: Chromium, context: BrowserContext, limit_s: float) -> None:
    """Close `context` within about `limit_s`; if it does not close, end its process.

    A page that floods the browser with messages delays its own end: after 2 s the process of the
    busiest page is ended.
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
