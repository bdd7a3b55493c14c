"""Input of every format: the facts about the task, columns, rows, and counts of the writing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from engine.export.cells import picked
from engine.kinds.spec import Column
from engine.model import redact
from engine.model.display import display
from engine.model.errors import TaskUnreadable
from engine.model.records import Status, TaskRecord, Unreadable
from engine.model.status import moment
from engine.model.version import VERSION
from engine.text.messages import ENGLISH

Row = dict[str, Any]


class About(msgspec.Struct, frozen=True):
    """Facts about the task, its end, and the completeness of its rows.

    `partial` is true for every task that did not end COMPLETED. Times are ISO 8601 in UTC.
    """

    task_id: str
    kind: str
    status: str
    partial: bool
    note: str
    name: str
    url: str
    created_at: str
    started_at: str
    ended_at: str
    exported_at: str
    program: str
    error: str
    summary: dict[str, Any]


@dataclass(slots=True)
class Tally:
    """Counts while a format writes, so that omissions are reported."""

    rows: int = 0
    cells_cut: int = 0
    sheets: int = 0
    fields_left: set[str] = field(default_factory=set)

    def notes(self) -> list[str]:
        """List in sentences what this file omits."""
        notes: list[str] = []
        if self.cells_cut:
            message = "export.cut.one" if self.cells_cut == 1 else "export.cut"
            notes.append(ENGLISH[message].format(count=self.cells_cut))
        if self.sheets > 1:
            notes.append(ENGLISH["export.sheets"].format(count=self.sheets))
        if self.fields_left:
            names = display(", ".join(sorted(self.fields_left)), 300)
            notes.append(ENGLISH["export.fields"].format(names=names))
        return notes


@dataclass(frozen=True, slots=True)
class Table:
    """Table to write; `rows` is an iterator, `whole` means that records are written unchanged."""

    about: About
    key: str
    columns: tuple[Column, ...]
    rows: Iterator[Row]
    whole: bool
    tally: Tally

    def values(self, row: Row) -> list[Any]:
        """Return the cells of `row`, in the order of the columns."""
        return [picked(row, column.name) for column in self.columns]

    def record(self, row: Row) -> Row:
        """Convert `row` for a format of records: unchanged, or only the chosen columns."""
        if self.whole:
            return row
        return {column.name: picked(row, column.name) for column in self.columns}


def about(record: TaskRecord | Unreadable, head: Row, now_ms: float) -> About:
    """Collect the facts about a task, redacted. Raises TaskUnreadable."""
    if isinstance(record, Unreadable):
        raise TaskUnreadable(task_id=record.task_id, reason=record.reason, path=record.path)
    summary = head.get("summary")
    values = {
        "task_id": record.task_id,
        "kind": record.kind,
        "status": record.status,
        "partial": record.status != Status.COMPLETED,
        "note": _note(record),
        "name": (record.engine.name if record.engine else None) or "",
        "url": record.url,
        "created_at": iso(record.created_at),
        "started_at": iso(record.started_at),
        "ended_at": iso(record.ended_at),
        "exported_at": iso(now_ms),
        "program": f"openchrome-monitor {VERSION}",
        "error": record.error.message if record.error else "",
        "summary": summary if isinstance(summary, dict) else {},
    }
    return About(**redact.value(values))


def _note(record: TaskRecord) -> str:
    if record.status == Status.COMPLETED:
        return ENGLISH["export.whole"]
    message = "export.partial.live" if record.is_live else "export.partial.ended"
    return ENGLISH[message].format(status=display(record.status, 40))


def iso(at_ms: float | None) -> str:
    """Format `2026-03-01T08:00:00.123Z`; empty for an invalid time."""
    known = moment(at_ms)
    if known is None:
        return ""
    try:
        at = datetime.fromtimestamp(known / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return ""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
