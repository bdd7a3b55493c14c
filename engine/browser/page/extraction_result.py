"""What the script in the page hands over, checked and turned into the crawl's record."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from engine.pages.documents import is_html, is_text
from engine.pages.fetch import MAX_LINKS, Fetched
from engine.pages.static_engine import retry_after

_ASKS_TO_WAIT = (429, 503)


class Taken(msgspec.Struct, rename="camel"):
    """The answer of `take.js`. It comes from a world that the page cannot reach, yet is checked."""

    url: str
    title: str
    html: str
    text: str
    truncated: bool
    links: str | None  # a line each; None: there are none
    link_texts: str
    frames: int
    skipped: int
    over: int
    windows: int
    cookie_chars: int
    part_refused: bool
    storage_full: bool
    settled: bool
    held: list[str]
    empty: bool
    may_import: bool
    content_type: str
    status: int
    bytes: float
    response_ms: float
    render_ms: float


def as_fetched(taken: Taken, url: str, status: int, headers: Mapping[str, str]) -> Fetched:
    """The record of one page; only HTML has markup and links, and only text has text."""
    html = is_html(taken.content_type)
    has_links = html and taken.links is not None
    return Fetched(
        url=url,
        final_url=taken.url,
        status=status,
        content_type=taken.content_type,
        title=taken.title,
        html=taken.html if html else "",
        text=taken.text if html or is_text(taken.content_type) else "",
        links=(taken.links or "").split("\n")[:MAX_LINKS] if has_links else [],
        link_texts=taken.link_texts.split("\n")[:MAX_LINKS] if has_links else [],
        frames=taken.frames if html else 0,
        links_skipped=taken.skipped if html else 0,
        links_over=taken.over if html else 0,
        windows=taken.windows,
        cookie_chars=taken.cookie_chars,
        part_refused=taken.part_refused,
        storage_full=taken.storage_full,
        response_ms=round(taken.response_ms, 1),
        render_ms=round(taken.render_ms, 1),
        bytes=int(taken.bytes),
        settled=taken.settled,
        empty=taken.empty,
        truncated=taken.truncated,
        retry_after_s=retry_after(headers.get("retry-after", ""))
        if status in _ASKS_TO_WAIT
        else None,
    )
