"""One expression in a tab, in a world where the page's scripts have replaced nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.browser.interact.tool_refusals import PageUnreadable
from engine.browser.page.extraction_options import WORLD

if TYPE_CHECKING:
    from playwright.async_api import CDPSession


async def evaluate(wire: CDPSession, expression: str) -> Any:
    """What `expression` comes to, as JSON can hold it.

    Raises:
        PageUnreadable: it threw. playwright.Error: the tab, or its document, went away.
    """
    tree = await wire.send("Page.getFrameTree")
    frame_id = str(tree["frameTree"]["frame"]["id"])
    world = await wire.send("Page.createIsolatedWorld", {"frameId": frame_id, "worldName": WORLD})
    answer = await wire.send(
        "Runtime.evaluate",
        {
            "expression": expression,
            "contextId": world["executionContextId"],
            "returnByValue": True,
        },
    )
    if "exceptionDetails" in answer:
        raise PageUnreadable(reason="The page could not be read.")
    return answer["result"]["value"]
