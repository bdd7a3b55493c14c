"""Documents in a static page's frames, as far as a browser shows and the page can read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.model.addresses import address_of, in_charset, link_address
from engine.pages import style_sheets
from engine.pages.extract import parse_static
from engine.pages.fetch import bounded
from engine.pages.style_sheets import Rule

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_FRAMES: Final = 100  # for each page, nested frames included; as in the browser engine
MAX_DEPTH: Final = 5

_FRAME: Final = re.compile(r"<i?frame\b", re.IGNORECASE)
_UNSEEN: Final = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b", re.IGNORECASE
)

_NO_ROOM: Final = frozenset({"0", "1", "0px", "1px"})
_NO_BORDER: Final = frozenset({"0", "no"})


class Frame(NamedTuple):
    """A frame's document: its markup, or its address."""

    html: str
    url: str


def has_frames(html: str) -> bool:
    return _FRAME.search(html) is not None


def frames_of(
    html: str, styles: Iterable[tuple[Rule, ...]], url: str, charset: str = ""
) -> list[Frame]:
    """Return the visible frames of the page's own origin, in order; the page is in `charset`."""
    return list(_frames(html, styles, url, charset))


def _frames(
    html: str, styles: Iterable[tuple[Rule, ...]], url: str, charset: str
) -> Iterator[Frame]:
    tree = parse_static(bounded(html))
    base = tree.css_first("base[href]")
    href = "" if base is None else base.attributes.get("href") or ""
    start = (link_address(url, href) if href else None) or address_of(url)
    own = address_of(url)
    style_sheets.apply(tree, html, styles)
    for node in tree.css("iframe, frame")[:MAX_FRAMES]:
        if start is None or own is None or not _is_seen(node) or _is_walled_off(node):
            continue
        markup = node.attributes.get("srcdoc")
        if markup is not None and node.tag == "iframe":
            yield Frame(markup, "")
            continue
        source = node.attributes.get("src")
        if not source:
            continue  # a blank document, not the page itself
        address = link_address(start.url, in_charset(source, charset))
        if address is not None and address.origin == own.origin:
            yield Frame("", address.asked)


def _is_seen(node: LexborNode) -> bool:
    if node.tag == "frame":
        return True
    given = node.attributes
    if (
        given.get("frameborder") in _NO_BORDER
        and {given.get("width"), given.get("height")} & _NO_ROOM
    ):
        return False
    around: LexborNode | None = node
    while around is not None and around.is_element_node:
        attributes = around.attributes
        if "hidden" in attributes or _UNSEEN.search(attributes.get("style") or ""):
            return False
        around = around.parent
    return True


def _is_walled_off(node: LexborNode) -> bool:
    """Return whether a sandbox gives the frame another origin."""
    if "sandbox" not in node.attributes:
        return False
    return "allow-same-origin" not in (node.attributes.get("sandbox") or "").lower().split()
