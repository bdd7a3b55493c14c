"""Run the product's scripts in an isolated world, invisible to the page.

The world lives as long as its document, and so do the numbers of its elements. A new
document begins with numbers that were never used in this tab.
"""

from __future__ import annotations

import json
import logging
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from engine.browser.interact.command_errors import PageUnreadable
from engine.browser.page.crawl_tab import MAX_DOCUMENTS
from engine.browser.page.extraction_options import WORLD
from engine.browser.page.secret_mask import SecretMask

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

log = logging.getLogger(__name__)


# Evaluation in a new isolated world, where page scripts have replaced no built-ins.


async def evaluate(wire: CDPSession, expression: str) -> Any:
    """Evaluate `expression` and return its JSON value.

    Raises:
        PageUnreadable: the expression threw.
        playwright.Error: the tab or its document is gone.
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


_GOING_AWAY = ("context was destroyed", "context with specified id", "navigated", "No frame")
_AGENT = WORLD + "-agent"


@cache
def _setup() -> str:
    parts = [
        files("engine.browser").joinpath(f"{name}.js").read_text("utf-8").strip().removesuffix(";")
        for name in ("elements", "looking", "acting", "settle", "later", "held")
    ]
    elements, looking, acting, settle, later, held = parts
    return (
        f"((first) => {{ const el = ({elements})(); el.start(first);"
        f" const settle = {settle}; const later = {later}; const held = {held};"
        f" return {{ ...({looking})(el), ...({acting})(el, settle, later, held),"
        " following: el.following }; })"
    )


class World:
    """The agent scripts of one tab, across documents; they report secret values to the mask."""

    def __init__(self, wire: CDPSession, frame_id: str, mask: SecretMask) -> None:
        self._wire = wire
        self._mask = mask
        self._world_options = {"frameId": frame_id, "worldName": _AGENT}
        self._next = 1

    @classmethod
    async def open(cls, wire: CDPSession, mask: SecretMask) -> World:
        """Create the world of the tab that `wire` is attached to."""
        tree = await wire.send("Page.getFrameTree")
        return cls(wire, str(tree["frameTree"]["frame"]["id"]), mask)

    async def ask(self, what: str, **ask: Any) -> dict[str, Any]:
        """Call an agent script; repeat the call when the page navigates meanwhile.

        Raises:
            PageUnreadable: the page keeps navigating, or the tab shows no page.
            playwright.Error: the tab is gone.
        """
        for _ in range(MAX_DOCUMENTS):
            try:
                return await self._ask(what, ask)
            except Error as failed:
                if not any(sign in failed.message for sign in _GOING_AWAY):
                    raise
        raise PageUnreadable(reason="The page keeps sending itself on to another address.")

    async def _ask(self, what: str, ask: dict[str, Any]) -> dict[str, Any]:
        world = await self._wire.send("Page.createIsolatedWorld", self._world_options)
        answer = await self._wire.send(
            "Runtime.evaluate",
            {
                "expression": self._expression(what, ask),
                "contextId": world["executionContextId"],
                "awaitPromise": True,
                "returnByValue": True,
            },
        )
        if "exceptionDetails" in answer:
            raise _failure(what, answer["exceptionDetails"])
        reply: dict[str, Any] = answer["result"]["value"]
        self._mask.add([one for one in reply["secrets"] if isinstance(one, str)])
        self._next = max(self._next, int(reply["next"]))
        return dict(reply["answer"])

    def _expression(self, what: str, ask: dict[str, Any]) -> str:
        return (
            f"(async () => {{ const agent = globalThis.__agent ??= {_setup()}({self._next});"
            f" const answer = await agent.{what}({json.dumps(ask)});"
            " return { answer, secrets: agent.secrets(), next: agent.following() }; })()"
        )


def _failure(what: str, details: dict[str, Any]) -> PageUnreadable:
    reply = str(details.get("exception", {}).get("description", details.get("text", "")))
    log.debug("a page could not be asked for '%s': %s", what, reply[:500])
    if "is not a valid selector" in reply:
        return PageUnreadable(reason="wait_for is not a selector that a browser knows.")
    return PageUnreadable(reason="The page could not be read.")
