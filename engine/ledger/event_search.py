"""Text search and time search in a file of events.

Lines are searched as bytes: decoding 200 MB of them takes half a minute, searching takes one
second. So the search is literal, in either case.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from engine.ledger import journal
from engine.ledger.files import MIB, READ_FLAGS, Folder
from engine.ledger.holes import is_hole, seek_behind, start_of
from engine.model.records import History, TaskEvent

AT_ONCE: Final = 16 * MIB  # bytes that one call searches: about 50 ms
MOST_FOUND: Final = 100_000  # results; a query with more of them is too short
_BLOCK: Final = MIB
_NEAR: Final = 64 * 1024  # bytes in which a line with a time must begin
_TIME: Final = re.compile(rb'[{,]\s*"ts"\s*:\s*([0-9]{1,17})')
_PROGRESS: Final = re.compile(r"(\d+)/(\d+)")


class Found(msgspec.Struct, frozen=True):
    """Result of a search: `places` are byte offsets of lines; continue at `next_offset` until it no
    longer grows."""

    places: tuple[int, ...]
    next_offset: int
    size: int


class Needle:
    """Search text in every form that a line of JSON may contain."""

    def __init__(self, text: str) -> None:
        forms = {text, text.lower(), text.upper()}
        escaped = {
            json.dumps(form, ensure_ascii=plain)[1:-1] for form in forms for plain in (True, False)
        }
        if parts := _PROGRESS.fullmatch(text):  # as progress is displayed: 41/120
            escaped.add(f'"unitsDone":{parts[1]},"unitsTotal":{parts[2]}')
        self.forms = tuple(
            sorted({form.encode("utf-8", "replace").lower() for form in forms | escaped})
        )
        self.longest = max(map(len, self.forms))

    def next_in(self, block: bytes, at: int) -> int:
        """Return the next match in `block` (lower case) from `at`; -1 for none."""
        found = [place for form in self.forms if (place := block.find(form, at)) >= 0]
        return min(found, default=-1)


def find(folder: Folder, name: str, needle: Needle, since: int = 0, most: int = AT_ONCE) -> Found:
    """Search lines from byte `since` (a line start) for `needle`, through about `most` bytes."""
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
    """Lower-case text from byte `base`; its first line begins at byte `begun`; continue at
    `behind`."""

    text: bytes
    base: int
    begun: int
    behind: int


def _pieces(fd: int, since: int, size: int, lap: int) -> Iterator[_Piece]:
    """Yield blocks of whole lines; split a very long line into pieces that overlap by `lap`
    bytes."""
    begun, kept, at, in_hole = since, b"", since, False
    while at < size:
        os.lseek(fd, at, os.SEEK_SET)
        block = os.read(fd, min(_BLOCK, size - at))
        if not block:
            return
        if is_hole(block):  # a line without an end, as in `journal.lines`
            at = min(size, seek_behind(partial(os.lseek, fd), at + len(block)))
            kept, in_hole = b"", True
            continue
        if in_hole:
            behind, in_hole = block.lstrip(b"\0"), False
            begun = at = at + len(block) - len(behind)
            block = behind
        base = at - len(kept)
        at += len(block)
        kept += block
        end = len(kept) if at >= size else kept.rfind(b"\n") + 1
        if not end:
            yield _Piece(kept.lower(), base, begun, begun)
            kept = kept[-lap:]
            continue
        whole, kept = kept[:end], kept[end:]
        # An unfinished last line may grow: it is searched now and once more later.
        ended = whole.rfind(b"\n") + 1
        yield _Piece(whole.lower(), base, begun, base + ended if ended else begun)
        begun = base + end
    if in_hole:
        yield _Piece(b"", at, at, at)


def _in_piece(piece: _Piece, needle: Needle) -> Iterator[int]:
    """Yield the start of each line of `piece` that contains the needle, once for each line."""
    at = needle.next_in(piece.text, 0)
    while at >= 0:
        before = piece.text.rfind(b"\n", 0, at)
        yield piece.begun if before < 0 else piece.base + before + 1
        behind = piece.text.find(b"\n", at)
        if behind < 0:
            return
        at = needle.next_in(piece.text, behind + 1)


def blocks(folder: Folder, name: str) -> Iterator[tuple[bytes, int]]:
    """Yield the file in blocks, each with the size that the file had at the beginning."""
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(fd).st_size
        at = 0
        while at < size and (block := os.read(fd, min(_BLOCK, size - at))):
            at += len(block)
            if is_hole(block):
                at, block = seek_behind(partial(os.lseek, fd), at), b"\n"  # ends a torn line
            yield block, size
    finally:
        os.close(fd)


def place_of(folder: Folder, name: str, ts_ms: float) -> int:
    """Find the byte offset of the first line whose time is `ts_ms` or later.

    Binary search, because times grow from line to line; where they do not, the result is near.
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
    """First line with a time that begins at or behind byte `at`, and that time."""
    start = _line_at(fd, at)
    os.lseek(fd, start, os.SEEK_SET)
    block = os.read(fd, _NEAR)
    found = _TIME.search(block)
    if found is None or start >= end:
        return start, None
    return start + block.rfind(b"\n", 0, found.start() + 1) + 1, float(found[1])


def _line_at(fd: int, at: int) -> int:
    """Return the first line start at or behind byte `at`."""
    if at == 0:
        return 0
    at -= 1
    os.lseek(fd, at, os.SEEK_SET)
    while block := os.read(fd, _NEAR):
        end = block.find(b"\n")
        if end >= 0:
            return at + end + 1
        at += len(block)
        if is_hole(block):
            at = seek_behind(partial(os.lseek, fd), at)
    return at


# Read events.jsonl backwards from its end: a line is converted at once and dropped, so that memory
# follows the events that are shown, not those that are read.

T = TypeVar("T")
Make = Callable[[TaskEvent, int], T]  # the second argument is the byte at which its line begins

EVENTS_AT_ONCE: Final = 1000  # events
LINE_CAP: Final = 64 * 1024  # of a longer line only the head is read
HEAD: Final = 600
FAR: Final = 256 * MIB  # bytes that are searched at once, for line ends only
CLIPPED: Final = "_clipped"
_TAIL_BLOCK: Final = 256 * 1024
_NAMES: Final = re.compile(
    rb'\s*\{\s*"ts"\s*:\s*([0-9.]{1,20})\s*,\s*"kind"\s*:\s*"([^"\\]{1,80})"'
)


def newest(folder: Folder, name: str, make: Make[T], most: int = EVENTS_AT_ONCE) -> History[T]:
    """Return the newest `most` events, made by `make`, and the number of lines before them."""
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return History((), 0, 0)
    try:
        end = os.fstat(fd).st_size
        start = _back(fd, end, most)
        found = _read(fd, start, end, make)
        return replace(found, earlier=_lines_before(fd, start))
    finally:
        os.close(fd)


def earlier(
    folder: Folder, name: str, before: int, make: Make[T], most: int = EVENTS_AT_ONCE
) -> History[T]:
    """Return the `most` events that end at byte `before`, which begins a line."""
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return History((), 0, before)
    try:
        return _read(fd, _back(fd, before, most), before, make)
    finally:
        os.close(fd)


def later(
    folder: Folder, name: str, since: int, make: Make[T], most: int = EVENTS_AT_ONCE
) -> History[T]:
    """Return up to `most` events behind byte `since`; continue at `next_offset`."""
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return History((), since, since)
    try:
        far = seek_behind(partial(os.lseek, fd), since + FAR) + _TAIL_BLOCK  # with a hole's end
        return _read(fd, since, min(os.fstat(fd).st_size, far), make, most)
    finally:
        os.close(fd)


def _read(fd: int, start: int, end: int, make: Make[T], most: int = 0) -> History[T]:
    events: list[T] = []
    skipped, at = 0, start
    for text, size, behind in _lines(fd, start, end):
        begun, at = at, behind
        event = _event(text, size)
        if event is not None:
            events.append(make(event, begun))
        elif size > len(text) or text.strip():
            skipped += 1
        if most and len(events) + skipped >= most:
            break
    if at == start and end - start >= FAR:  # one line without an end: continue behind it
        skipped, at = 1, end
    return History(tuple(events), start, at, skipped)


def _event(text: bytes, size: int) -> TaskEvent | None:
    if size == len(text):
        return journal.event_of(text)
    names = _NAMES.match(text)
    if names is None:
        return None
    head = text.decode("utf-8", "replace")
    kind = names[2].decode("utf-8", "replace")
    return TaskEvent(_number(names[1]), kind, {CLIPPED: head, "_bytes": size})


def _number(digits: bytes) -> float:
    try:
        return float(digits)
    except ValueError:
        return 0.0


def _lines(fd: int, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield each whole line up to byte `end` (of a long one its head), its size, and its end."""
    kept, size, in_hole = bytearray(), 0, False
    os.lseek(fd, at, os.SEEK_SET)
    while at + size < end and (block := os.read(fd, min(_TAIL_BLOCK, end - at - size))):
        if is_hole(block):  # a line without an end, as in `journal.lines`
            kept, in_hole = bytearray(), True
            size = min(end, seek_behind(partial(os.lseek, fd), at + size + len(block))) - at
            continue
        if in_hole:
            behind, in_hole = block.lstrip(b"\0"), False
            size += len(block) - len(behind)
            at, block = at + size, behind
            yield b"", size, at
            size = 0
        *ended, rest = block.split(b"\n")
        for part in ended:
            text = bytes(_keep(kept, part))
            size += len(part)
            at += size + 1
            yield (text if size == len(text) else text[:HEAD]), size, at
            kept, size = bytearray(), 0
        kept, size = _keep(kept, rest), size + len(rest)
    if in_hole:
        yield b"", size, at + size


def _keep(kept: bytearray, part: bytes) -> bytearray:
    kept += part[: max(0, LINE_CAP - len(kept))]
    return kept


def _back(fd: int, end: int, lines: int) -> int:
    """Find the start of the last `lines` whole lines before byte `end`."""
    at, wanted = end, lines + 1  # their first one begins behind the end of the previous line
    read = 0
    while at > 0 and read < FAR:
        size = min(_TAIL_BLOCK, at)
        at, read = at - size, read + size
        block = _block(fd, at, size)
        if is_hole(block):
            at = start_of(partial(os.lseek, fd), at)
            continue
        found = block.count(b"\n")
        if found >= wanted:
            return at + _nth_from_end(block, wanted) + 1
        wanted -= found
    return at


def _block(fd: int, at: int, most: int) -> bytes:
    os.lseek(fd, at, os.SEEK_SET)
    return os.read(fd, min(_TAIL_BLOCK, most))


def _nth_from_end(block: bytes, number: int) -> int:
    place = len(block)
    for _ in range(number):
        place = block.rfind(b"\n", 0, place)
    return place


def _lines_before(fd: int, end: int) -> int | None:
    """Count the lines before byte `end`; None when there are too many to count."""
    if end > FAR:
        return None
    at = found = 0
    while at < end and (block := _block(fd, at, end - at)):
        at += len(block)
        found += block.count(b"\n")
    return found
