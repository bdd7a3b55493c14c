"""The result of a crawl, put together from its pages by streaming: they may not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec


def partial_summary(
    pages: Iterable[Mapping[str, Any]], *, stopped_by: str, duration_ms: float = 0, scope: str = ""
) -> dict[str, Any]:
    """The summary of a crawl that did not make one itself, counted from its pages."""
    total = failed = deepest = 0
    for page in pages:
        total += 1
        failed += bool(page.get("error"))
        depth = page.get("depth")
        if isinstance(depth, int):
            deepest = max(deepest, depth)
    return {
        "total_pages": total,
        "succeeded": total - failed,
        "failed": failed,
        "max_depth_reached": deepest,
        "duration_ms": round(duration_ms),
        "scope": scope,
        "stopped_by": stopped_by,
    }


def assemble(summary: Mapping[str, Any], pages: Iterable[bytes]) -> Iterator[bytes]:
    """result.json in pieces: the summary, then each of `pages` (whole JSON objects) as it is."""
    yield b'{"summary":' + msgspec.json.encode(summary) + b',"pages":['
    lead = b"\n"
    for page in pages:
        yield lead + page
        lead = b",\n"
    yield b"\n]}\n"
