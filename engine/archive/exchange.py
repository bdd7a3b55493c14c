"""One request with its response, and the interface through which engines record them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol

import msgspec

MAX_BODY_BYTES: Final = 32 * 1024 * 1024  # of one record; as much as the archive may hold in memory

Header = tuple[str, str]
Truncated = Literal["", "length", "disconnect", "time"]
"""Why the body is not whole, as WARC-Truncated names it."""

LeftOut = Literal["over_limit", "unfinished", "unread", "unreadable"]
"""Why an answer has no record.

The archive has reached its size, the answer was not received to its end, the engine does not read
answers of its type, or the browser did not give its body out (above its limit of about 20 MB, or
the page was left).
"""


class Exchange(msgspec.Struct, frozen=True):
    """A request and its response as they were received; `body` is decoded.

    `at_ms` is the time of the request in ms since 1970, `peer` the address of the server, if known.
    """

    url: str
    method: str
    request_headers: Sequence[Header]
    status: int
    headers: Sequence[Header]
    at_ms: int
    body: bytes = b""
    request_body: bytes = b""
    reason: str = ""
    truncated: Truncated = ""
    peer: str = ""


class Archive(Protocol):
    """Where an engine records what it received; used by several pages at once.

    When it `is_full`, a further answer is counted as `over_limit`, and need not be read.
    """

    is_full: bool

    async def record(self, exchange: Exchange) -> None:
        """Store an exchange.

        Raises:
            EngineError: it could not be written.
        """
        ...

    def leave_out(self, reason: LeftOut) -> None:
        """Count an answer that cannot be stored."""
        ...
