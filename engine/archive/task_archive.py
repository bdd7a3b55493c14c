"""Web archive of one task: a file of WARC records, written while the task runs.

Each record is a gzip member, so a killed program leaves a readable file. A payload that the task
received before becomes a revisit record. `wacz` packs the file for a replay program.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from engine.archive.exchange import MAX_BODY_BYTES, Exchange, LeftOut
from engine.model.config import VERSION
from engine.model.errors import EngineError
from engine.model.records import ARTIFACTS_NAME
from engine.secrets.given_secrets import Hidden, Scrub

if TYPE_CHECKING:
    from engine.archive.warc_records import Encoded, Known

FILE_NAME: Final = "archive.warc.gz"
FILE_PATH: Final = f"{ARTIFACTS_NAME}/{FILE_NAME}"
SOFTWARE: Final = f"openchrome-monitor {VERSION}"
MOST_KNOWN: Final = 100_000  # payloads that can be recognised; about 30 MB

Append = Callable[[str, bytes], Awaitable[None]]  # to the file of this name


class TaskArchive:
    """Records exchanges in the order in which they end; see `exchange.Archive`.

    `append` writes to a file of the task, also to its end if it is cancelled. `size_bytes` is the
    size of a file that a continued task left. From the first record that would exceed `most_bytes`
    on, none is added; `on_full` is called once.
    """

    def __init__(
        self,
        append: Append,
        scrub: Scrub,
        *,
        size_bytes: int = 0,
        most_bytes: int | None = None,
        on_full: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._most_bytes, self._on_full = most_bytes, on_full
        self.is_full = False
        self._append = append
        self._scrub = scrub
        self._size_bytes = size_bytes
        self._records = 0
        self._left_out: Counter[LeftOut] = Counter()
        self._known: dict[str, Known] = {}  # by digest
        self._order = asyncio.Lock()
        self._failed: EngineError | None = None

    async def record(self, exchange: Exchange) -> None:
        """Append the records of an exchange.

        Raises:
            EngineError: the file could not be written, now or before.
        """
        self.check()
        if len(exchange.body) > MAX_BODY_BYTES:
            body = exchange.body[:MAX_BODY_BYTES]
            exchange = replace(exchange, body=body, truncated="length")
        begun = False  # to write or count the answer, which a cancellation does not change
        try:
            async with self._order:
                if self.is_full:
                    self.leave_out("over_limit")
                    return
                encoded = await asyncio.to_thread(self._encoded, exchange)
                if self._exceeds(len(encoded.data)):
                    self.is_full = begun = True
                    self.leave_out("over_limit")
                    if self._on_full is not None:
                        await self._on_full()
                    return
                begun = True  # from here on the records are written, and later ones may refer to it
                self._note(encoded)
                await self._append(FILE_NAME, encoded.data)
        except EngineError as failed:
            self._failed = self._failed or failed
            raise
        except (UnicodeError, ValueError):  # an answer that no record can hold
            self.leave_out("unreadable")
        except asyncio.CancelledError:
            if not begun:
                self.leave_out("unfinished")
            raise

    def _exceeds(self, size_bytes: int) -> bool:
        return self._most_bytes is not None and self._size_bytes + size_bytes > self._most_bytes

    def conceal(self, hidden: Iterable[Hidden]) -> None:
        """Mask these values, too, in later records."""
        self._scrub = self._scrub.with_more(hidden)

    def check(self) -> None:
        """Raise the error of the first write that failed, after which records are missing."""
        if self._failed is not None:
            raise self._failed

    def leave_out(self, reason: LeftOut) -> None:
        """Count an answer that has no record."""
        self._left_out[reason] += 1

    def summary(self) -> dict[str, Any]:
        """Return the fields for the summary of the task."""
        told: dict[str, Any] = {
            "file": FILE_PATH,
            "records": self._records,
            "bytes": self._size_bytes,
            "left_out": self._left_out.total(),
        }
        return {**told, **dict(sorted(self._left_out.items()))}

    def _note(self, encoded: Encoded) -> None:
        self._size_bytes += len(encoded.data)
        self._records += encoded.records
        if encoded.first is not None:
            if len(self._known) >= MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[encoded.digest] = encoded.first

    def _encoded(self, exchange: Exchange) -> Encoded:
        """Return the records to append. For a thread."""
        from engine.archive import warc_records  # 40 ms, which only an archive needs

        body = warc_records.cleaned(exchange.body, exchange.headers, self._scrub)
        asked = warc_records.cleaned(exchange.request_body, (), self._scrub)
        exchange = replace(exchange, body=body, request_body=asked)
        digest = warc_records.payload_digest(body)
        known = self._known.get(digest) if body and not exchange.truncated else None
        encoded = warc_records.encode(exchange, self._scrub, known, digest)
        if self._size_bytes:
            return encoded
        head = warc_records.warcinfo(FILE_NAME, SOFTWARE)
        return encoded._replace(data=head + encoded.data, records=encoded.records + 1)
