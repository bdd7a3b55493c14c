"""Places in a file of events: where a text stands, and where a time begins.

Lines are looked at as bytes: decoding 200 MB of them takes half a minute, looking takes one
second. So a text is found as it stands in the file, in capitals or not.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from engine.ledger.files import MIB, READ_FLAGS, Folder

AT_ONCE: Final = 16 * MIB  # bytes that one call looks through: about 50 ms
MOST_FOUND: Final = 100_000  # places; who has that many has to say more
_BLOCK: Final = MIB
_NEAR: Final = 64 * 1024  # bytes in which a line with a time must begin
_TIME: Final = re.compile(rb'[{,]\s*"ts"\s*:\s*([0-9]{1,17})')
_PROGRESS: Final = re.compile(r"(\d+)/(\d+)")


class Found(msgspec.Struct, frozen=True):
    """`places` are the bytes at which lines begin; go on at `next_offset` until it stands still."""

    places: tuple[int, ...]
    next_offset: int
    size: int


class Needle:
    """A text in every form in which a line of JSON may hold it."""

    def __init__(self, text: str) -> None:
        forms = {text, text.lower(), text.upper()}
        escaped = {
            json.dumps(form, ensure_ascii=plain)[1:-1] for form in forms for plain in (True, False)
        }
        if parts := _PROGRESS.fullmatch(text):  # as progress is told: 41/120
            escaped.add(f'"unitsDone":{parts[1]},"unitsTotal":{parts[2]}')
        self.forms = tuple(
            sorted({form.encode("utf-8", "replace").lower() for form in forms | escaped})
        )
        self.longest = max(map(len, self.forms))

    def next_in(self, block: bytes, at: int) -> int:
        """Where in `block`, in small letters, it stands next from `at` on; -1 for nowhere."""
        found = [place for form in self.forms if (place := block.find(form, at)) >= 0]
        return min(found, default=-1)


def find(folder: Folder, name: str, needle: Needle, since: int = 0, most: int = AT_ONCE) -> Found:
    """The lines from byte `since` on (it begins one) that hold `needle`, about `most` bytes far."""
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return Found((), since, since)
    try:
        size = os.fstat(fd).st_size
        places: list[int] = []
        at = since
        for piece in _pieces(fd, since, size, needle.longest):
            at = piece.behind
            for place in _in_piece(piece, needle):
                if place not in places[-1:]:
                    places.append(place)
            if at - since >= most or len(places) >= MOST_FOUND:
                break
        return Found(tuple(places[:MOST_FOUND]), at, size)
    finally:
        os.close(fd)


class _Piece(NamedTuple):
    """Text in small letters from byte `base` on; its first line begins at byte `begun`, and
    `behind` is where to go on."""

    text: bytes
    base: int
    begun: int
    behind: int


def _pieces(fd: int, since: int, size: int, lap: int) -> Iterator[_Piece]:
    """Whole lines together; one without an end in sight in pieces that overlap by `lap` bytes."""
    begun, kept, at = since, b"", since
    while at < size:
        os.lseek(fd, at, os.SEEK_SET)
        block = os.read(fd, min(_BLOCK, size - at))
        if not block:
            return
        base = at - len(kept)
        at += len(block)
        kept += block
        end = len(kept) if at >= size else kept.rfind(b"\n") + 1
        if not end:
            yield _Piece(kept.lower(), base, begun, begun)
            kept = kept[-lap:]
            continue
        whole, kept = kept[:end], kept[end:]
        # A last line without its end may grow: it is looked at now, and once more later.
        ended = whole.rfind(b"\n") + 1
        yield _Piece(whole.lower(), base, begun, base + ended if ended else begun)
        begun = base + end


def _in_piece(piece: _Piece, needle: Needle) -> Iterator[int]:
    """Where each line of `piece` begins that holds the needle; once for each line."""
    at = needle.next_in(piece.text, 0)
    while at >= 0:
        before = piece.text.rfind(b"\n", 0, at)
        yield piece.begun if before < 0 else piece.base + before + 1
        behind = piece.text.find(b"\n", at)
        if behind < 0:
            return
        at = needle.next_in(piece.text, behind + 1)


def blocks(folder: Folder, name: str) -> Iterator[tuple[bytes, int]]:
    """The file piece by piece, each with the size that it had at the beginning."""
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(fd).st_size
        left = size
        while left > 0 and (block := os.read(fd, min(_BLOCK, left))):
            left -= len(block)
            yield block, size
    finally:
        os.close(fd)


def place_of(folder: Folder, name: str, ts_ms: float) -> int:
    """The byte at which the first line stands whose time is `ts_ms` or later.

    By halving, because times grow from line to line; where they do not, it is somewhere near.
    """
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return 0
    try:
        low, high = 0, os.fstat(fd).st_size
        while low < high:
            middle = (low + high) // 2
            line, told = _timed_line(fd, middle, high)
            if told is None or told >= ts_ms:
                high = middle
            else:
                low = line + 1
        return _line_at(fd, low)
    finally:
        os.close(fd)


def _timed_line(fd: int, at: int, end: int) -> tuple[int, float | None]:
    """The first line that begins at or behind byte `at` and tells a time, and that time."""
    start = _line_at(fd, at)
    os.lseek(fd, start, os.SEEK_SET)
    block = os.read(fd, _NEAR)
    found = _TIME.search(block)
    if found is None or start >= end:
        return start, None
    return start + block.rfind(b"\n", 0, found.start() + 1) + 1, float(found[1])


def _line_at(fd: int, at: int) -> int:
    """The first byte from `at` on that begins a line."""
    if at == 0:
        return 0
    at -= 1
    os.lseek(fd, at, os.SEEK_SET)
    while block := os.read(fd, _NEAR):
        end = block.find(b"\n")
        if end >= 0:
            return at + end + 1
        at += len(block)
    return at
