"""The result of a crawl, put together from its pages by streaming: they may not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec


def assemble(summary: Mapping[str, Any], pages: Iterable[bytes]) -> Iterator[bytes]:
    """result.json in pieces: the summary, then each of `pages` (whole JSON objects) as it is."""
    yield b'{"summary":' + msgspec.json.encode(summary) + b',"pages":['
    lead = b"\n"
    for page in pages:
        yield lead + page
        lead = b",\n"
    yield b"\n]}\n"
