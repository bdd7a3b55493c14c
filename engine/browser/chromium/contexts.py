"""A browser context with a proxy listener that ends with the context."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from engine.browser.chromium.context_closing import close_context

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

    from engine.browser.chromium.launch import Chromium
    from engine.egress.egress_policy import Policy
    from engine.egress.proxy_listener import ProxyListener

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
