"""Line files events.jsonl and pages.jsonl, read by byte offset and never whole.

Only `\\n` ends a line (other line ends are text). A line that is no complete object is counted and
skipped, so a torn line after a crash costs one line. A hole in the file counts as one such line and
is not read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, Final

import msgspec

from engine.ledger.files import MIB, READ_FLAGS, Folder, Unusable
from engine.ledger.holes import is_hole, seek_behind
from engine.ledger.json_stream import is_deep
from engine.ledger.meta import without_surrogates
from engine.model.records import EventSlice, TaskEvent, Units, UnitTime, UnitTimes

LINE_CAP: Final = MIB
PAGE_CAP: Final = 8 * MIB  # a page's content is at most 256 KiB, and may be all escapes
TAIL_BYTES: Final = 64 * 1024


TIMES_AT_ONCE: Final = 16 * MIB  # bytes that one call reads: about 50 ms
_BLOCK: Final = 256 * 1024


class _Head(msgspec.Struct):
    """Fields that every event has."""

    ts: int | float
    kind: str
    data: Any = None


_events = msgspec.json.Decoder(_Head)


def line(record: Mapping[str, Any]) -> bytes:
    """Encode one object as one line."""
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate is written as the escape it came from
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str)
        return text.encode("utf-8", "backslashreplace") + b"\n"


def event_line(kind: str, ts: float, data: dict[str, Any] | None) -> bytes:
    """Encode an event as a line; data beyond the cap is replaced by its size."""
    event: dict[str, Any] = {"ts": ts, "kind": kind}
    if data is not None:
        event["data"] = data
    made = line(event)
    if len(made) > LINE_CAP:
        made = line({**event, "data": {"_truncated": True, "_bytes": len(made)}})
    return made


def read_events(folder: Folder, name: str, offset: int, limit: int, whole: bool) -> EventSlice:
    """Read events from `offset` until about `limit` bytes are read; see `Ledger.read_events`."""
    events: list[TaskEvent] = []
    skipped, at = 0, offset
    for found, at in lines(folder, name, offset, cap=LINE_CAP, whole=whole):
        event = event_of(found)
        if event is not None:
            events.append(event)
        elif found is None or found.strip():
            skipped += 1
        if at - offset >= limit:
            break
    return EventSlice(tuple(events), at, skipped)


def event_of(found: bytes | None) -> TaskEvent | None:
    """Decode the event in a line; None for any invalid line."""
    if found is None:
        return None
    try:
        head = _events.decode(found)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _odd_event(found)
    data = head.data
    if is_deep(data):
        return None
    return TaskEvent(head.ts, head.kind, data if isinstance(data, dict) else None)


def _odd_event(found: bytes) -> TaskEvent | None:
    """Decode an event that the fast decoder refuses (a lone surrogate in a note, say)."""
    try:
        raw = json.loads(found.decode("utf-8"))
        head = msgspec.convert(without_surrogates(raw), type=_Head)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    data = head.data if isinstance(head.data, dict) else None
    return None if is_deep(data) else TaskEvent(head.ts, head.kind, data)


def lines(
    folder: Folder, name: str, offset: int, *, cap: int, whole: bool = False
) -> Iterator[tuple[bytes | None, int]]:
    """Yield each line from `offset` with the offset behind it; None for a line longer than `cap`.

    A hole is a line without an end: what was written behind it is a line of its own. An unfinished
    last line is left out, unless `whole`. Memory is bounded by `cap`. A missing file has no lines.
    """
    try:
        fd = folder.open(name, READ_FLAGS)
    except FileNotFoundError:
        return
    try:
        os.lseek(fd, offset, os.SEEK_SET)
        yield from _split(fd, offset, cap, whole)
    finally:
        os.close(fd)


def _split(fd: int, at: int, cap: int, whole: bool) -> Iterator[tuple[bytes | None, int]]:
    kept, dropped, in_hole = bytearray(), 0, False
    while block := os.read(fd, _BLOCK):
        if is_hole(block):
            at = seek_behind(partial(os.lseek, fd), at + dropped + len(kept) + len(block))
            kept, dropped, in_hole = bytearray(), 0, True
            continue
        if in_hole:  # the block in which the hole ends begins with NULs, too
            behind, in_hole = block.lstrip(b"\0"), False
            at, block = at + len(block) - len(behind), behind
            yield None, at
        *ended, rest = block.split(b"\n")
        for part in ended:
            at += dropped + len(kept) + len(part) + 1
            too_long = dropped or len(kept) + len(part) > cap
            yield (None if too_long else bytes(kept) + part), at
            kept, dropped = bytearray(), 0
        if dropped or len(kept) + len(rest) > cap:
            dropped += len(kept) + len(rest)
            kept = bytearray()
        else:
            kept += rest
    if in_hole:
        yield None, at
    if whole and (kept or dropped):
        yield (None if dropped else bytes(kept)), at + dropped + len(kept)


OnLost = Callable[[], None]  # called for each line that is skipped as invalid


def page_lines(
    folder: Folder, name: str, offset: int, on_lost: OnLost = lambda: None
) -> Iterator[bytes]:
    """Yield the bytes of each valid page; invalid lines are skipped."""
    for found, _ in placed_pages(folder, name, offset, on_lost):
        yield found


def placed_pages(
    folder: Folder, name: str, offset: int, on_lost: OnLost = lambda: None
) -> Iterator[tuple[bytes, int]]:
    """Yield as `page_lines`, each with the byte behind its line, at which to continue."""
    for found, behind in lines(folder, name, offset, cap=PAGE_CAP):
        if found and _is_object(found):
            yield found, behind
        elif found is None or found.strip():
            on_lost()


def ranges(
    file: BinaryIO, spans: Iterable[tuple[int, int]], check: Callable[[], None]
) -> Iterator[bytes]:
    """Yield these byte ranges of a file in blocks, adjacent ones joined."""
    for begin, end in _joined(spans):
        file.seek(begin)
        at = begin
        while at < end and (block := file.read(min(MIB, end - at))):
            check()
            at += len(block)
            yield block


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    begin = end = 0
    for first, behind in spans:
        if first != end:
            if end > begin:
                yield begin, end
            begin = first
        end = behind
    if end > begin:
        yield begin, end


def page(found: bytes) -> dict[str, Any]:
    """Decode a line of `page_lines` as a dict without lone surrogates."""
    try:
        raw: dict[str, Any] = msgspec.json.decode(found)
    except msgspec.DecodeError:
        raw = without_surrogates(json.loads(found))
    return raw


def _is_object(found: bytes) -> bool:
    try:
        raw = json.loads(found.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(raw, dict) and not is_deep(raw)


def tail(folder: Folder, name: str, from_offset: int) -> tuple[Units | None, float | None, int]:
    """Return the newest progress and event time behind `from_offset`, from the last 64 KiB at most.

    An unreadable file counts as a missing one: progress is not worth failing a task for.
    """
    try:
        start, data = _last_bytes(folder, name, from_offset)
    except (OSError, Unusable):
        return None, None, from_offset
    end = data.rfind(b"\n") + 1
    units, last_ts = _newest(data[:end].split(b"\n"))
    return units, last_ts, start + end


def _last_bytes(folder: Folder, name: str, from_offset: int) -> tuple[int, bytes]:
    """Return the start of the last 64 KiB behind `from_offset`, and the bytes. Raises OSError,
    Unusable."""
    fd = folder.open(name, READ_FLAGS)
    try:
        size = os.fstat(fd).st_size
        start = max(0, from_offset if from_offset <= size else 0, size - TAIL_BYTES)
        if start >= size:
            return size, b""
        os.lseek(fd, start, os.SEEK_SET)
        return start, os.read(fd, size - start)
    finally:
        os.close(fd)


def _newest(found: list[bytes]) -> tuple[Units | None, float | None]:
    last_ts: float | None = None
    for text in reversed(found):
        event = event_of(text) if text else None
        if event is None:
            continue
        last_ts = event.ts if last_ts is None else last_ts
        if event.kind == "progress" and event.data is not None:
            return units_of(event.data), last_ts
    return None, last_ts


def units_of(data: dict[str, Any]) -> Units:
    """Units in a progress event's data; fields of an unusable shape are left out."""
    done, total, message = data.get("unitsDone"), data.get("unitsTotal"), data.get("message")
    return Units(
        done=_count(done) or 0,
        total=_count(total),
        message=message if isinstance(message, str) else None,
        failed=_count(data.get("unitsFailed")) or 0,
        carried=_count(data.get("unitsCarried")) or 0,
    )


def _count(number: object) -> int | None:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    return int(number) if 0 <= number < 2**53 else None


class _UnitTiming(msgspec.Struct):
    """Timing fields of a page and of a command; unknown value types count as missing."""

    url: object = None
    response_ms: object = None
    render_ms: object = None
    startedAt: object = None
    completedAt: object = None
    tool_name: object = None
    intention: object = None
    args: object = None
    error: object = None


_unit_timings: Final = msgspec.json.Decoder(_UnitTiming)


def read_unit_times(
    folder: Folder, name: str, since: int = 0, most: int = TIMES_AT_ONCE
) -> UnitTimes:
    """Read durations of units from byte `since`, about `most` bytes; continue at `next_offset`."""
    found: list[UnitTime] = []
    at = since
    for text, at in lines(folder, name, since, cap=PAGE_CAP):
        if text is not None and (unit := _unit(text)) is not None:
            found.append(unit)
        if at - since >= most:
            break
    return UnitTimes(tuple(found), at)


def _unit(text: bytes) -> UnitTime | None:
    try:
        unit = _unit_timings.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    failed = unit.error not in (None, msgspec.UNSET)
    began, ended = _ms(unit.startedAt), _ms(unit.completedAt)
    if began is not None and ended is not None and ended >= began:
        action = unit.args.get("action") if isinstance(unit.args, dict) else None
        label = " ".join(part for part in (unit.tool_name, action) if isinstance(part, str))
        about = unit.intention if isinstance(unit.intention, str) else ""
        return UnitTime(label, ended - began, began, failed, about)
    took = [ms for ms in map(_ms, (unit.response_ms, unit.render_ms)) if ms is not None]
    if not isinstance(unit.url, str) or not took:
        return None
    return UnitTime(unit.url, sum(took), None, failed)


def _ms(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 2**53 else None
