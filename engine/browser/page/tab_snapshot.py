"""State of a tab for a session snapshot: its place, its storage and its picture."""

from __future__ import annotations

from typing import Final

import msgspec

from engine.browser.interact.agent_tab import AgentTab
from engine.browser.page.isolated_world import evaluate
from engine.browser.page.screenshot import picture
from engine.egress.egress_policy import without_credentials
from engine.model import addresses

_HERE: Final = """(() => ({
  x: Math.round(scrollX), y: Math.round(scrollY), title: document.title.slice(0, 2000),
  url: location.href,
}))()"""
_STORED: Final = """(() => {
  try {
    return Object.entries(localStorage).map(([name, value]) => ({ name, value }));
  } catch { return []; }
})()"""


class Look(msgspec.Struct, frozen=True):
    """Current state of one tab: plain texts without secrets, scroll in CSS pixels."""

    url: str
    title: str
    scroll_x: int = 0
    scroll_y: int = 0
    status: int | None = None
    png: bytes | None = None
    origin: str = ""
    storage: list[dict[str, str]] = []


async def capture(
    tab: AgentTab, *, storage: bool, screenshot: bool, redact_content: bool, status: int | None
) -> Look:
    """Read the current state of `tab`; `status` is that of the document, if known."""
    wire = tab.instance.wire(tab.page)
    here = await evaluate(wire, _HERE)
    url = str(here["url"])
    stored = await evaluate(wire, _STORED) if storage else []
    shot = await picture(tab, ref=None, full_page=False) if screenshot else None
    return Look(
        url=tab.mask.text(without_credentials(url), 2_048),
        title=tab.mask.content(str(here["title"]), 500, key_shapes=redact_content),
        scroll_x=int(here["x"]),
        scroll_y=int(here["y"]),
        status=status,
        png=shot.png if shot else None,
        origin=_origin(url) if stored else "",
        storage=stored,
    )


def _origin(url: str) -> str:
    found = addresses.parse(url)
    return "" if found is None else found.origin
