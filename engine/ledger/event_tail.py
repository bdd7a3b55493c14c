"""events.jsonl from its end: what a person wants to see of it first, whatever else it holds.

Reading begins with the newest events and goes back as far as somebody looks. A line is made
into what is shown at once and forgotten, so that memory follows what is shown, not what is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from msgspec.structs import replace

from engine.ledger import journal
from engine.ledger.files import MIB, READ_FLAGS, Folder
from engine.model.records import History, TaskEvent

T = TypeVar("T")
Make = Callable[[TaskEvent, int], T]  # with the byte at which its line begins

AT_ONCE: Final = 1000  # events
LINE_CAP: Final = 64 * 1024  # of a longer line only the head is read
HEAD: Final = 600
FAR: Final = 256 * MIB  # bytes that are looked through at once, for line ends only
CLIPPED: Final = "_clipped"
_BLOCK: Final = 256 * 1024
_NAMES: Final = re.compile(
    rb'\s*\{\s*"ts"\s*:\s*([0-9.]{1,20})\s*,\s*"kind"\s*:\s*"([^"\\]{1,80})"'
)


def newest(folder: Folder, name: str, make: Make[T], most: int = AT_ONCE) -> History[T]:
    """The newest `most` events, made by `make`, and how many lines stand before them."""
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
    folder: Folder, name: str, before: int, make: Make[T], most: int = AT_ONCE
) -> History[T]:
    """The `most` events that end at byte `before`, which begins a line."""
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return History((), 0, before)
    try:
        return _read(fd, _back(fd, before, most), before, make)
    finally:
        os.close(fd)


def later(folder: Folder, name: str, since: int, make: Make[T], most: int = AT_ONCE) -> History[T]:
    """What came behind byte `since`, `most` events of it at once; go on at `next_offset`."""
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return History((), since, since)
    try:
        end = min(os.fstat(fd).st_size, since + FAR)
        return _read(fd, since, end, make, most)
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
    if at == start and end - start >= FAR:  # one line without an end: on behind it
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
    """Each whole line up to byte `end` (of a long one its head), its size, and where it ends."""
    kept, size = bytearray(), 0
    os.lseek(fd, at, os.SEEK_SET)
    left = end - at
    while left > 0 and (block := os.read(fd, min(_BLOCK, left))):
        left -= len(block)
        *ended, rest = block.split(b"\n")
        for part in ended:
            text = bytes(_keep(kept, part))
            size += len(part)
            at += size + 1
            yield (text if size == len(text) else text[:HEAD]), size, at
            kept, size = bytearray(), 0
        kept, size = _keep(kept, rest), size + len(rest)


def _keep(kept: bytearray, part: bytes) -> bytearray:
    kept += part[: max(0, LINE_CAP - len(kept))]
    return kept


def _back(fd: int, end: int, lines: int) -> int:
    """Where the last `lines` whole lines before byte `end` begin."""
    at, wanted = end, lines + 1  # their first one begins behind the end of the one before
    while at > 0 and end - at < FAR:
        size = min(_BLOCK, at)
        at -= size
        block = _block(fd, at, size)
        found = block.count(b"\n")
        if found >= wanted:
            return at + _nth_from_end(block, wanted) + 1
        wanted -= found
    return at


def _block(fd: int, at: int, most: int) -> bytes:
    os.lseek(fd, at, os.SEEK_SET)
    return os.read(fd, min(_BLOCK, most))


def _nth_from_end(block: bytes, number: int) -> int:
    place = len(block)
    for _ in range(number):
        place = block.rfind(b"\n", 0, place)
    return place


def _lines_before(fd: int, end: int) -> int | None:
    """How many lines there are before byte `end`; None when those are too many to be counted."""
    if end > FAR:
        return None
    at = found = 0
    while at < end and (block := _block(fd, at, end - at)):
        at += len(block)
        found += block.count(b"\n")
    return found
