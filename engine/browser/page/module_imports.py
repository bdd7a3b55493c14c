"""Scripts under way that no script in the page can know of: what `import()` asked for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.browser.page import extraction_options

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

LOOK_S = 0.1


async def is_importing(wire: CDPSession) -> bool:
    """Does the tab's document wait for a script of which nothing has come yet?"""
    told = await wire.send("Page.getResourceTree")
    return any(
        one["type"] == "Script"
        and not (one["mimeType"] or one.get("contentSize"))
        and not (one.get("failed") or one.get("canceled"))
        for one in told["frameTree"]["resources"]
    )


async def imported(wire: CDPSession, deadline: float) -> bool:
    """Wait for those scripts; False when they have not come at `deadline` (of the loop's clock),
    or within the limit of a request.
    """
    clock = asyncio.get_running_loop().time
    limit = min(deadline, clock() + extraction_options.REQUEST_MS / 1_000)
    while await is_importing(wire):
        if clock() >= limit:
            return False
        await asyncio.sleep(LOOK_S)  # nothing tells when one has come
    return True
