"""Parts of a task's files: facts, reading a range of bytes, and text search."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import BinaryIO, Final

import msgspec

from engine.ledger.reader import LedgerReader

BLOCK: Final = 1024 * 1024


class FileFacts(msgspec.Struct, frozen=True):
    """File by its name in the task's folder (`artifacts/…` below it); changed at ms."""

    name: str
    size_bytes: int
    changed_at: float

    @property
    def is_json(self) -> bool:
        return self.name.endswith((".json", ".jsonl"))

    @property
    def is_picture(self) -> bool:
        return self.name.lower().endswith((".png", ".jpg", ".jpeg", ".webp"))


class FilePart(msgspec.Struct, frozen=True):
    """Range of bytes of a file, cut at line ends where possible."""

    data: bytes
    start: int
    size: int


def read_part(reader: LedgerReader, task_id: str, name: str, start: int, most: int) -> FilePart:
    """Read at most `most` bytes from `start`; a line cut at the end is left for the next part."""
    with reader.open_whole(task_id, name) as file:
        size = file.seek(0, 2)
        start = max(0, min(start, size))
        file.seek(start)
        data = file.read(most)
    cut = data.rfind(b"\n") + 1
    if start + len(data) < size and cut > most // 2:
        data = data[:cut]
    return FilePart(data, start, size)


def find_in(
    opened: Callable[[], BinaryIO],
    needle: str,
    start: int,
    on_progress: Callable[[int, int], None],
    stop: threading.Event,
) -> int:
    """Find the next byte offset of `needle` from `start`, ignoring case; -1 for none.

    `on_progress` is called with (bytes read, file size) after each block.
    """
    wanted = needle.encode().lower()
    with opened() as file:
        size = file.seek(0, 2)
        file.seek(start)
        kept, at = b"", start
        while (block := file.read(BLOCK)) and not stop.is_set():
            data = kept + block.lower()
            found = data.find(wanted)
            if found >= 0:
                return at - len(kept) + found
            at += len(block)
            kept = data[len(data) - len(wanted) + 1 :] if len(wanted) > 1 else b""
            on_progress(at, size)
    return -1
