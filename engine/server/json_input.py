"""JSON of requests: limited in depth, and parsed in a thread where it is large."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from engine.ledger.json_stream import is_deep_text
from engine.server.http_answers import NOT_JSON, TOO_DEEP, Refused

LARGE: Final = 64 * 1024  # bytes; more would block the loop for milliseconds


async def parsed(data: bytes) -> Any:
    """Parse a body or a message. Raises Refused."""
    return await asyncio.to_thread(_parsed, data) if len(data) > LARGE else _parsed(data)


def _parsed(data: bytes) -> Any:
    if is_deep_text(data):
        raise Refused(TOO_DEEP)
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise Refused(NOT_JSON) from None
