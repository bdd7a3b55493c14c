"""A browser context behind the fence: with a lane of the proxy that ends when it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

    from engine.browser.egress import Policy
    from engine.browser.lane import Lane
    from engine.browser.launch import Chromium


async def open_context(
    chromium: Chromium, policy: Policy, **options: Any
) -> tuple[BrowserContext, Lane]:
    """A fresh profile that reaches what `policy` allows, takes no downloads and no service
    workers (those would outlive their page); `options` are Playwright's.

    Raises:
        BrowserFailed: the proxy has no port for it.
        playwright.Error: the browser died.
    """
    proxy = chromium.proxy
    lane = await proxy.lane((policy.root,), lambda: chromium.alive)
    context: BrowserContext | None = None
    try:
        context = await chromium.browser.new_context(
            proxy=lane.settings(), service_workers="block", accept_downloads=False, **options
        )
    finally:
        if context is None:
            proxy.end(lane)
    context.on("close", lambda _: proxy.end(lane))
    return context, lane
