"""Streaming assembly of a task's result from its units, which may not fit in memory.

Beyond `APART_BYTES` of units result.json holds the head alone, with `pages_file` and `pages_total`
in the place of `pages`. Storing the units twice would double the disk use of a large crawl.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Final

import msgspec

from engine.ledger import holes
from engine.ledger.journal import line
from engine.model.kind_traits import OTHER_RESULT_KEY, TRAITS
from engine.model.records import PAGES_NAME

APART_BYTES: Final = 8 * 1024 * 1024  # of pages.jsonl: about 100 large pages
_HEAD_BYTES: Final = 1024 * 1024  # no head without units is larger
_CLOSING: Final = b"\n]}\n"


def assemble(head: Mapping[str, Any], key: str, units: Iterable[bytes]) -> Generator[bytes]:
    """Yield result.json in pieces: `head`, and under `key` each unit (a JSON object) unchanged."""
    yield _opening(head, key)
    lead = b"\n"
    for unit in units:
        yield lead + unit
        lead = b",\n"
    yield _CLOSING


def _opening(head: Mapping[str, Any], key: str) -> bytes:
    """Return the result up to the bracket behind which its units begin."""
    told = line(head)[:-1]
    return told[:-1] + (b"," if len(told) > 2 else b"") + msgspec.json.encode(key) + b":["


def apart(head: Mapping[str, Any], key: str, total: int) -> Iterator[bytes]:
    """Yield result.json of a task whose units stay in pages.jsonl alone."""
    places = {f"{key}_file": PAGES_NAME, f"{key}_total": total}
    yield line({**head, **places})


def head_apart(file: BinaryIO) -> tuple[dict[str, Any], str] | None:
    """Return the head and the units' key of a result with external units; None for others."""
    data = file.read(_HEAD_BYTES)
    file.seek(0)
    if len(data) == _HEAD_BYTES or f'_file":"{PAGES_NAME}"'.encode() not in data:
        return None
    try:
        head = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(head, dict):
        return None
    for key in {OTHER_RESULT_KEY, *(one.result_key for one in TRAITS.values() if one.result_key)}:
        if head.get(f"{key}_file") == PAGES_NAME and key not in head:
            places = (f"{key}_file", f"{key}_total")
            return {name: item for name, item in head.items() if name not in places}, key
    return None


class JoinedResult(io.RawIOBase):
    """Seekable file of a result joined with its external units.

    Every newline between two units reads as a comma, so that a byte of the units' file keeps its
    offset, and nothing is read ahead. It owns `units`.
    """

    def __init__(self, head: Mapping[str, Any], key: str, units: BinaryIO) -> None:
        super().__init__()
        self._units, self._opening = units, _opening(head, key)
        ends = max(1, _end_of_lines(units))
        self._last = len(self._opening) + ends - 1  # offset of the last unit's newline
        self._size = self._last + len(_CLOSING)
        self._at = 0

    def close(self) -> None:
        self._units.close()
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Seek to this byte, counted from the start, the current place or the end.

        `os.SEEK_DATA` moves behind a hole in the units' file. Raises OSError.
        """
        first = len(self._opening)
        if whence == getattr(os, "SEEK_DATA", -1):
            if first <= offset < self._last:
                offset = first + self._units.seek(offset - first, whence)
            self._at = offset
            return offset
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, into: Any) -> int:
        """Fill `into` up to the end of the current part; 0 at the end."""
        view = memoryview(into).cast("B")
        found = self._part(len(view))
        view[: len(found)] = found
        self._at += len(found)
        return len(found)

    def _part(self, most: int) -> bytes:
        first = len(self._opening)
        if self._at < first:
            return self._opening[self._at : self._at + most]
        if self._at >= self._last:
            return _CLOSING[self._at - self._last :][:most]
        self._units.seek(self._at - first)
        return self._units.read(min(most, self._last - self._at)).replace(b"\n", b",")


def _end_of_lines(file: BinaryIO) -> int:
    """Return the offset behind the last finished line."""
    at = file.seek(0, io.SEEK_END)
    while at > 0:
        start = max(0, at - io.DEFAULT_BUFFER_SIZE)
        file.seek(start)
        block = file.read(at - start)
        found = block.rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = holes.start_of(file.seek, start) if holes.is_hole(block) else start
    return 0


class GeneratedStream(io.RawIOBase):
    """Stream of generated bytes; not seekable."""

    def __init__(self, pieces: Generator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = memoryview(b"")

    def close(self) -> None:
        """Close the file that the pieces are made of."""
        self._pieces.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        """Fill `into` up to the end of the next piece; 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        view = memoryview(into).cast("B")
        count = min(len(view), len(self._rest))
        view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
