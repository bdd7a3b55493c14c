"""Closes a context whatever its pages do: in order, without its busiest page, or by force."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

    from engine.browser.chromium.launch import Chromium

CALM_S = 2.0


async def close_context(chromium: Chromium, context: BrowserContext, limit_s: float) -> None:
    """Close `context` within `limit_s` and a little; what cannot be closed goes with its process.

    A page that floods the browser with messages holds its own end up: after 2 s the
    busiest page is ended by its process.
    """
    # Playwright answers a second `close` at once, so that the first one must be kept.
    closing = asyncio.create_task(context.close(), name="close a context")
    closing.add_done_callback(_hear)
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


def _hear(closing: asyncio.Future[Any]) -> None:
    if not closing.cancelled():
        closing.exception()  # it went with its browser
