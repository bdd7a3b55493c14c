"""The result of a task, put together from its units by streaming: they may not fit in memory.

Beyond `APART_BYTES` of units result.json holds the head alone, and says where the units stand:
`pages_file` and `pages_total` in the place of `pages`. The same bytes twice would double what a
large crawl takes of the disk.
"""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Final

import msgspec

from engine.model.records import PAGES_NAME
from engine.model.tally import OTHER_UNITS, UNITS_KEY

APART_BYTES: Final = 8 * 1024 * 1024  # of pages.jsonl: about 100 large pages
_HEAD_BYTES: Final = 1024 * 1024  # no head without units is larger
_CLOSING: Final = b"\n]}\n"
_KEYS: Final = frozenset({*UNITS_KEY.values(), OTHER_UNITS})


def assemble(head: Mapping[str, Any], key: str, units: Iterable[bytes]) -> Generator[bytes]:
    """result.json in pieces: `head`, and under `key` each unit (a whole JSON object) as it is."""
    yield _opening(head, key)
    lead = b"\n"
    for unit in units:
        yield lead + unit
        lead = b",\n"
    yield _CLOSING


def _opening(head: Mapping[str, Any], key: str) -> bytes:
    """The result up to the bracket behind which its units begin."""
    told = msgspec.json.encode(head)
    return told[:-1] + (b"," if len(told) > 2 else b"") + msgspec.json.encode(key) + b":["


def apart(head: Mapping[str, Any], key: str, total: int) -> Iterator[bytes]:
    """result.json of a task whose units stay in pages.jsonl alone."""
    places = {f"{key}_file": PAGES_NAME, f"{key}_total": total}
    yield msgspec.json.encode({**head, **places}) + b"\n"


def head_apart(file: BinaryIO) -> tuple[dict[str, Any], str] | None:
    """The head and the units' key of a result whose units stand elsewhere; None for others."""
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
    for key in _KEYS:
        if head.get(f"{key}_file") == PAGES_NAME and key not in head:
            places = (f"{key}_file", f"{key}_total")
            return {name: item for name, item in head.items() if name not in places}, key
    return None


class Joined(io.RawIOBase):
    """A result whose units stand elsewhere as one file that can be searched and read at any place.

    Every newline between two units reads as a comma, so that a byte of the units' file has the
    same place whatever stands before it, and nothing is read ahead. It owns `units`.
    """

    def __init__(self, head: Mapping[str, Any], key: str, units: BinaryIO) -> None:
        super().__init__()
        self._units, self._opening = units, _opening(head, key)
        ends = max(1, _end_of_lines(units))
        self._last = len(self._opening) + ends - 1  # where the last unit's newline stands
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
        """Go to this byte, counted from the start, from here or from the end."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, into: Any) -> int:
        """Fill `into` as far as the part goes in which the place lies; 0 at the end."""
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
    """The byte behind the last line that was written to its end."""
    at = file.seek(0, io.SEEK_END)
    while at > 0:
        start = max(0, at - io.DEFAULT_BUFFER_SIZE)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0


class Pieces(io.RawIOBase):
    """Bytes that are made while they are read; it cannot be searched."""

    def __init__(self, pieces: Generator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = memoryview(b"")

    def close(self) -> None:
        """Let go of the file that the pieces are made of."""
        self._pieces.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        """Fill `into` as far as the next piece goes; 0 at the end."""
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
