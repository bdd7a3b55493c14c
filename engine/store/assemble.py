"""The result of a task, put together from its units by streaming: they may not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec


def assemble(head: Mapping[str, Any], key: str, units: Iterable[bytes]) -> Iterator[bytes]:
    """result.json in pieces: `head`, and under `key` each unit (a whole JSON object) as it is."""
    told = msgspec.json.encode(head)
    yield told[:-1] + (b"," if len(told) > 2 else b"") + msgspec.json.encode(key) + b":["
    lead = b"\n"
    for unit in units:
        yield lead + unit
        lead = b",\n"
    yield b"\n]}\n"
