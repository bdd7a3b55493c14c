"""Beginning of a server's answer to a plain http request: the interim heads before the final one.

An answer may be preceded by interim heads (status 1xx), and a browser reads them for as long as
they come, at the cost of all its pages. Nothing else of an answer is parsed.
Source: RFC 9110, section 15.2. Lines are read as leniently as Chromium reads them.
"""

from __future__ import annotations

import re

MAX_INTERIM_HEADS = 20  # servers send one or two; a slow one repeats `102 Processing`
MAX_INTERIM_BYTES = 64 * 1024
_MAX_LINE_BYTES = 4_096
_JUNK_BYTES = 4  # that Chromium skips before a first line
_BEGIN = re.compile(rb".{0,4}?HTTP", re.DOTALL | re.IGNORECASE)
_LINE = re.compile(_BEGIN.pattern + rb"[^\r\n]*[\r\n]", re.DOTALL | re.IGNORECASE)
_INTERIM = re.compile(
    _BEGIN.pattern + rb"[^ \r\n]* +0*1[0-9]{2}(?![0-9])", re.DOTALL | re.IGNORECASE
)
_SWITCHED = b"101"  # the rest belongs to another protocol
_END = re.compile(rb"\n\r?\n")


class TooManyInterim(Exception):
    """The server sends interim heads and no answer."""


class AnswerStart:
    """Looks at the bytes of one answer until its final head begins."""

    def __init__(self) -> None:
        self._heads = 0
        self._bytes = 0  # of whole interim heads
        self._rest = bytearray()  # of an incomplete interim head, or of a first line
        self._searched = 0  # bytes of it that contain no end

    def is_final(self, data: bytes) -> bool:
        """Take the next bytes; return whether the final head has begun.

        Raises:
            TooManyInterim: the limit of heads or of their bytes is exceeded.
        """
        self._rest += data
        at = 0
        while (interim := _INTERIM.match(self._rest, at)) is not None:
            if interim[0].endswith(_SWITCHED):
                return True
            end = _END.search(self._rest, max(at, self._searched))
            if end is None:
                break
            self._heads += 1
            self._bytes += end.end() - at
            self._check(0)
            at = self._searched = end.end()
        del self._rest[:at]
        self._searched = max(0, len(self._rest) - len(b"\n\r")) if interim else 0
        if interim is None:
            return self._shows_final()
        self._check(len(self._rest))
        return False

    def _shows_final(self) -> bool:
        """Return whether a first line that is not interim can no longer become it."""
        if _BEGIN.match(self._rest) is None:
            return len(self._rest) >= _JUNK_BYTES + len(b"HTTP")
        return len(self._rest) > _MAX_LINE_BYTES or _LINE.match(self._rest) is not None

    def _check(self, incomplete_bytes: int) -> None:
        size = self._bytes + incomplete_bytes
        if self._heads > MAX_INTERIM_HEADS or size > MAX_INTERIM_BYTES:
            raise TooManyInterim
