"""Durations of finished units, from pages.jsonl; other fields of a page are not decoded."""

from __future__ import annotations

from typing import Final

import msgspec

from engine.ledger import journal
from engine.ledger.files import MIB, Folder
from engine.model.records import UnitTime, UnitTimes

AT_ONCE: Final = 16 * MIB  # bytes that one call reads: about 50 ms


class _Unit(msgspec.Struct):
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


_decoder: Final = msgspec.json.Decoder(_Unit)


def read(folder: Folder, name: str, since: int = 0, most: int = AT_ONCE) -> UnitTimes:
    """Read units from byte `since`, about `most` bytes of them; continue at `next_offset`."""
    found: list[UnitTime] = []
    at = since
    for line, at in journal.lines(folder, name, since, cap=journal.PAGE_CAP):
        if line is not None and (unit := _unit(line)) is not None:
            found.append(unit)
        if at - since >= most:
            break
    return UnitTimes(tuple(found), at)


def _unit(line: bytes) -> UnitTime | None:
    try:
        unit = _decoder.decode(line)
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
