"""Units of a task as rows, read in parts, and one unit whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from engine.ledger import journal
from engine.ledger.json_stream import Damaged
from engine.ledger.reader import LedgerReader
from engine.model.errors import TaskUnreadable
from engine.model.records import PAGES_NAME, TaskRecord
from engine.results.findings import Findings
from engine.results.units import Unit, unit_of

PART_S: Final = 0.03  # of one part in a thread; the GUI thread runs in between
PART_UNITS: Final = 2_000
Placed = tuple[dict[str, Any], int]


class UnitPart(msgspec.Struct, frozen=True):
    """Part of the units, in order.

    `done` of `size` bytes are read; `resume` is the offset of future units (-1: there will be
    none).
    """

    units: tuple[Unit, ...]
    done: int = 0
    size: int = 0
    resume: int = -1
    last: bool = False


class UnitReader:
    """Reader of pages.jsonl from byte `since`, with units numbered from `number`.

    Without that file it reads a whole result. Every call may wait for a disk.
    """

    def __init__(self, reader: LedgerReader, task_id: str, since: int = 0, number: int = 0) -> None:
        entry = reader.read(task_id)
        kind = entry.kind if isinstance(entry, TaskRecord) else ""
        self._reader, self._task_id = reader, task_id
        self._findings = Findings(reader, task_id, kind)
        self._in_lines = self._findings.place == PAGES_NAME
        self._more = isinstance(entry, TaskRecord) and entry.is_live
        self._number, self._at = number, since
        self._rows = self._placed(since) if self._in_lines or since == 0 else iter(())

    def part(self) -> UnitPart:
        """Read the next units. Raises TaskUnreadable where a result breaks off."""
        units: list[Unit] = []
        last, until = False, time.perf_counter() + PART_S
        while len(units) < PART_UNITS and time.perf_counter() < until:
            found = self._next()
            if found is None:
                last = True
                break
            units.append(unit_of(found[0], self._number, found[1]))
            self._number += 1
        done = self._at if self._in_lines else self._findings.done
        resume = self._at if self._more and (self._in_lines or not self._findings.place) else -1
        return UnitPart(tuple(units), done, self._findings.size, resume, last)

    def rows(self) -> Iterator[Placed]:
        """Yield the units themselves, each with its offset."""
        while (found := self._next()) is not None:
            yield found

    def _next(self) -> Placed | None:
        try:
            return next(self._rows, None)
        except Damaged as error:
            reason = f"{self._findings.place}: {error}"
            path = str(self._reader.root / self._task_id / self._findings.place)
            raise TaskUnreadable(task_id=self._task_id, reason=reason, path=path) from error

    def _placed(self, since: int) -> Iterator[Placed]:
        if not self._in_lines:
            yield from ((row, -1) for row in self._findings.rows())
            return
        for line, behind in self._reader.placed_pages(self._task_id, since):
            self._at = behind
            yield journal.page(line), behind - len(line) - 1


def whole_unit(
    reader: LedgerReader, task_id: str, unit: Unit, stop: threading.Event
) -> dict[str, Any] | None:
    """Read the whole of one unit; None where it no longer exists (or `stop` is set)."""
    if unit.at >= 0:
        found = next(reader.placed_pages(task_id, unit.at), None)
        return None if found is None else journal.page(found[0])
    units = UnitReader(reader, task_id)
    for number, (row, _) in enumerate(units.rows()):
        if number == unit.number:
            return row
        if stop.is_set():
            break
    return None
