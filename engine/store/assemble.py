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

from engine.records import PAGES_NAME
from engine.tally import OTHER_UNITS, UNITS_KEY

APART_BYTES: Final = 8 * 1024 * 1024  # of pages.jsonl: about 100 large pages
_HEAD_BYTES: Final = 1024 * 1024  # no head without units is larger
_KEYS: Final = frozenset({*UNITS_KEY.values(), OTHER_UNITS})


def assemble(head: Mapping[str, Any], key: str, units: Iterable[bytes]) -> Generator[bytes]:
    """result.json in pieces: `head`, and under `key` each unit (a whole JSON object) as it is."""
    told = msgspec.json.encode(head)
    yield told[:-1] + (b"," if len(told) > 2 else b"") + msgspec.json.encode(key) + b":["
    lead = b"\n"
    for unit in units:
        yield lead + unit
        lead = b",\n"
    yield b"\n]}\n"


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
