"""Where `<meta http-equiv=refresh>`, or the header `Refresh`, leads, and after how many seconds.

A refresh without delay is a redirect: a browser makes it before a page is at rest. One with a short
delay is a link, since the page is read before it. Longer delays only show the same page again.
Source: HTML, "shared declarative refresh steps".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

# For Python and JavaScript alike: up to 59 seconds (pages renew themselves after a minute or more),
# then the address between quotes, or without. Its time is linear in the length of the text.
PATTERN: Final = (
    r"\s*(?=[0-9.])0*([1-5]?[0-9]?)(?![0-9])[0-9.]*(?:\s*[;,]\s*|\s+(?![;,\s]))"
    r"(?!url\s*=\s*$)(?:url\s*=\s*)?(?:\"([^\"]*)(?:\".*)?|'([^']*)(?:'.*)?|([^\"'\s].*))"
)
SELECTOR: Final = 'meta[http-equiv="refresh" i]'
_REFRESH: Final = re.compile(PATTERN, re.IGNORECASE | re.DOTALL)


class Refresh(NamedTuple):
    """Leads to an address, as it is written in the page, after whole seconds."""

    seconds: int
    to: str


def refresh_to(element: LexborNode) -> Refresh | None:
    """Return where such an element leads, or None if it only renews the page."""
    return parsed(element.attributes.get("content") or "")


def parsed(text: str) -> Refresh | None:
    """Return where the text of such an element, or of the header `Refresh`, leads."""
    found = _REFRESH.fullmatch(text)
    if found is None:
        return None
    to = (found[2] or found[3] or found[4] or "").strip()
    return Refresh(int(found[1] or "0"), to) if to else None
