"""Waits for the navigation that a command of a task began, so that its form is really sent.

Playwright does so for clicks and keys into a field; not for keys, choices and scripts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance

ARRIVE_S: Final = 2.0  # by then the request is sent; a slow answer is for the next command
ASKED_MS: Final = 50  # for history.back(), which asks through the browser
_TURN = "new Promise((done) => setTimeout(() => setTimeout(done, {}), 0))"
_ENDS = ("Page.frameNavigated", "Page.navigatedWithinDocument", "Page.frameStoppedLoading")


@asynccontextmanager
async def departing(instance: Instance) -> AsyncIterator[None]:
    """A command that may leave the page; ends when the page that it asked for has come.

    Of a page that is told to stay, it ends when the page has had the time to ask.
    """
    page = instance.current
    if page is None:
        yield
        return
    wire, frame = instance.wire(page), instance.frame_id(page)
    asked, arrived = asyncio.Event(), asyncio.Event()

    def on_asked(event: Mapping[str, Any]) -> None:
        if event["frameId"] == frame and event.get("disposition") == "currentTab":
            asked.set()
            arrived.clear()

    def on_end(event: Mapping[str, Any]) -> None:
        if (event.get("frame") or {}).get("id", event.get("frameId")) == frame:
            arrived.set()

    await wire.send("Page.enable")
    listeners = {"Page.frameRequestedNavigation": on_asked} | dict.fromkeys(_ENDS, on_end)
    for name, listener in listeners.items():
        wire.on(name, listener)
    try:
        yield
        turn = _TURN.format(ASKED_MS if instance.dialogs.stay else 0)
        with contextlib.suppress(Error, TimeoutError):  # gone: it was left, or closed
            async with asyncio.timeout(ARRIVE_S):
                await wire.send("Runtime.evaluate", {"expression": turn, "awaitPromise": True})
                if asked.is_set():
                    await arrived.wait()
    finally:
        for name, listener in listeners.items():
            wire.remove_listener(name, listener)
