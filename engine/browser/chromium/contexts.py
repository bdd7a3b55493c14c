"""Opening and closing of browser contexts, each with a proxy listener that ends with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

    from engine.browser.chromium.launch import Chromium
    from engine.egress.egress_policy import Policy
    from engine.egress.proxy_listener import ProxyListener

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


Opened = tuple["BrowserContext", "ProxyListener"]
LATE_S = 15.0  # for a context that no task waits for any more
CLOSE_S = 2.0


async def open_context(
    chromium: Chromium, policy: Policy, *, script: str = "", **options: Any
) -> Opened:
    """Open a context with a fresh profile that reaches only what `policy` allows.

    Downloads and service workers (which would outlive their page) are blocked; `options` are
    Playwright's. `script` runs first in every document. After a cancellation the context is closed
    as soon as it has opened.

    Raises:
        BrowserFailed: the proxy has no port for it.
        playwright.Error: the browser died.
    """
    opening = asyncio.create_task(_open(chromium, policy, script, options), name="open a context")
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        # The browser opens it all the same, and without a reference it would never be closed.
        chromium.see_to(_drop(chromium, opening))
        raise


async def _open(chromium: Chromium, policy: Policy, script: str, options: dict[str, Any]) -> Opened:
    proxy = chromium.proxy
    listener = await proxy.open_listener((policy.root,), lambda: chromium.alive, chromium.ports)
    context: BrowserContext | None = None
    try:
        context = await chromium.browser.new_context(
            proxy={"server": listener.server, "bypass": listener.bypass},
            service_workers="block",
            accept_downloads=False,
            **options,
        )
    finally:
        if context is None:
            proxy.end(listener)
    context.on("close", lambda _: proxy.end(listener))
    if script:
        await context.add_init_script(script)
    return context, listener


async def _drop(chromium: Chromium, opening: asyncio.Task[Opened]) -> None:
    try:
        async with chromium.within(LATE_S if chromium.alive else 0):
            await asyncio.wait({opening})
    except TimeoutError:
        opening.cancel()  # the browser is gone, or will be recycled with the context
        await asyncio.wait({opening})
    if not opening.cancelled() and opening.exception() is None:
        await close_context(chromium, opening.result()[0], CLOSE_S)
