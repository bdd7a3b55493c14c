"""What the script in the page hands over, checked and turned into the crawl's record."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping

import msgspec

from engine.work.fetch import MAX_LINKS, Fetched

_HTML = ("text/html", "application/xhtml+xml")
_ASKS_TO_WAIT = (429, 503)


class Taken(msgspec.Struct, rename="camel"):
    """The answer of `take.js`. It comes from a world that the page cannot reach, yet is checked."""

    url: str
    title: str
    html: str
    text: str
    truncated: bool
    links: list[str]
    settled: bool
    content_type: str
    status: int
    bytes: float
    response_ms: float
    render_ms: float


def as_fetched(taken: Taken, url: str, status: int, headers: Mapping[str, str]) -> Fetched:
    """The record of one page; what is not HTML comes without text."""
    is_html = taken.content_type in _HTML
    return Fetched(
        url=url,
        final_url=taken.url,
        status=status,
        content_type=taken.content_type,
        title=taken.title,
        html=taken.html if is_html else "",
        text=taken.text if is_html else "",
        links=taken.links[:MAX_LINKS] if is_html else [],
        response_ms=round(taken.response_ms, 1),
        render_ms=round(taken.render_ms, 1),
        bytes=int(taken.bytes),
        settled=taken.settled,
        truncated=taken.truncated,
        retry_after_s=_retry_after_s(headers) if status in _ASKS_TO_WAIT else None,
    )


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    given = headers.get("retry-after", "").strip()
    if given.isascii() and given.isdigit() and len(given) < 12:
        return float(given)
    try:
        at = email.utils.parsedate_to_datetime(given)
    except ValueError:
        return None
    return max(0.0, at.timestamp() - time.time())
