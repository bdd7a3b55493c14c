"""Holes of sparse files: bytes that were never written and read as NUL.

A crash, a sync tool or another program may leave a file of 100 GB that holds nothing. No valid JSON
has a block of NULs, so a reader that meets one seeks to the next byte that was written. It asks the
system only then: some file systems report holes where recent writes are, but never NULs instead.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

HOLE_REASON: Final = "a part of it was never written (a hole in the file)"
LEAST: Final = 4096  # bytes; holes are whole blocks of a file system

Seek = Callable[[int, int], int]  # `seek` of a file, or `os.lseek` of a descriptor
_DATA: Final[int | None] = getattr(os, "SEEK_DATA", None)  # Windows has none: read on there
_HOLE: Final[int | None] = getattr(os, "SEEK_HOLE", None)


def is_hole(block: bytes) -> bool:
    """Return whether a block of a file is a part of a hole: NULs only, and enough of them."""
    return len(block) >= LEAST and not block.strip(b"\0")


def seek_behind(seek: Seek, at: int) -> int:
    """Seek to the next written byte at or behind `at`, or to the end of the file; return it.

    Without support of the system it seeks to `at`.
    """
    found = at
    if _DATA is not None:
        end = seek(0, os.SEEK_END)  # first, because a writer may append meanwhile
        try:
            return max(at, seek(at, _DATA))
        except OSError as error:
            found = max(at, end) if error.errno == errno.ENXIO else at
    return seek(found, os.SEEK_SET)


def start_of(seek: Seek, end: int) -> int:
    """Return where the hole that ends at byte `end` begins; there is no backward search, so bisect.

    Without support of the system it returns `end`.
    """
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        if seek_behind(seek, middle) >= end:
            high = middle
        else:
            low = middle + 1
    return high


def written(file: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield a file in blocks of at most `most` bytes; in the place of a hole an empty one."""
    in_hole = False
    while block := file.read(most):
        if not is_hole(block):
            in_hole = False
            yield block
            continue
        if not in_hole:
            in_hole = True
            yield b""
        seek_behind(file.seek, file.tell())


def has_hole(file: BinaryIO) -> bool:
    """Return whether the system knows a hole in this file, and NULs prove it."""
    at, end = 0, file.seek(0, os.SEEK_END)
    while _HOLE is not None and at < end:
        at = file.seek(at, _HOLE)
        if is_hole(file.read(LEAST)):
            return True
        at = max(at + 1, seek_behind(file.seek, at))
    return False
