"""A page as it stands in pages.jsonl and result.json, and whether an answer is one at all."""

from __future__ import annotations

import re
from typing import Any

from engine.kinds.crawl.frontier import Visit
from engine.kinds.crawl.retry_policy import Failure
from engine.pages.documents import is_html, is_text, media_type
from engine.pages.extract import Extracted, says
from engine.pages.fetch import Fetched

NOTHING = Extracted("", "", (), 0, False)
_PICTURE = re.compile(r"<(img|svg|canvas|video|picture|object|embed|iframe|frame)\b", re.IGNORECASE)


def page_record(
    visit: Visit, fetched: Fetched, found: Extracted, *, keep_links: bool = True
) -> dict[str, Any]:
    """The page's fields, in the order that readers know."""
    page: dict[str, Any] = {
        "url": visit.address.url,
        "final_url": fetched.final_url,
        "status": fetched.status or None,
        "title": found.title,
        "content": found.content,
        "depth": visit.depth,
        "links_found": found.links_found,
        "response_ms": fetched.response_ms,
        "render_ms": fetched.render_ms,
        "bytes": fetched.bytes,
        "engine_used": fetched.engine,
        "settled": fetched.settled,
    }
    marks = {
        "compared": fetched.compared,
        "script_edits": found.edited,
        "empty": _is_empty(fetched, found),
        "attempts": visit.attempts if visit.attempts > 1 else 0,
        "earlier_errors": list(visit.earlier),
        "lastmod": visit.lastmod,
        "links_over_limit": found.links_over,
        "truncated": found.truncated,
        "frames": fetched.frames or found.frames,
        "links": list(found.anchors) if keep_links else [],
        "windows_closed": fetched.windows,
        "dialogs_dismissed": fetched.dialogs,
    }
    page.update((name, value) for name, value in marks.items() if value)
    return page


def _is_empty(fetched: Fetched, found: Extracted) -> bool:
    """Is it a page that shows neither text nor link nor picture?"""
    if refusal(fetched) is not None or found.links_found:
        return False
    if fetched.engine == "browser":
        return fetched.empty
    return not says(found.content) and not _PICTURE.search(fetched.html)


def refusal(fetched: Fetched) -> Failure | None:
    """Why an answer is no page worth following; None when it is one."""
    if not 200 <= fetched.status < 300:
        return Failure(f"HTTP {fetched.status}", "http", fetched.status)
    kind = fetched.content_type
    if fetched.html or fetched.text or is_html(kind) or is_text(kind):
        return None
    return Failure(f"not a web page ({media_type(kind)[:100]})", "content_type", fetched.status)
