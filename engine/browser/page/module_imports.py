"""Pending `import()` scripts, which no script in the page can see."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.browser.page import extraction_options

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

LOOK_S = 0.1


async def is_importing(wire: CDPSession) -> bool:
    """Return whether the document waits for a script without any data yet."""
    tree = await wire.send("Page.getResourceTree")
    return any(
        one["type"] == "Script"
        and not (one["mimeType"] or one.get("contentSize"))
        and not (one.get("failed") or one.get("canceled"))
        for one in tree["frameTree"]["resources"]
    )


async def imported(wire: CDPSession, deadline: float) -> bool:
    """Wait for those scripts; return False after `deadline` (loop clock) or the request limit."""
    clock = asyncio.get_running_loop().time
    limit = min(deadline, clock() + extraction_options.REQUEST_MS / 1_000)
    while await is_importing(wire):
        if clock() >= limit:
            return False
        await asyncio.sleep(LOOK_S)  # the browser sends no event for it
    return True
