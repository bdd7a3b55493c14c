"""Tables of a result: cells as text by column, and their writers for CSV, JSON and JSON Lines."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import msgspec

from engine.kinds.spec import Column
from engine.model import redact
from engine.model.config import VERSION
from engine.model.display import display
from engine.model.errors import TaskUnreadable
from engine.model.records import Status, TaskRecord, Unreadable
from engine.model.status import moment
from engine.text.messages import ENGLISH

_BOM = b"\xef\xbb\xbf"


def write_csv(out: BinaryIO, table: Table) -> None:
    """Write RFC 4180 in UTF-8: a header, then a line for each row; no cell is a formula."""
    buffer = io.StringIO(newline="")
    lines = csv.writer(buffer, lineterminator="\r\n")

    def flush() -> None:
        out.write(buffer.getvalue().encode())
        buffer.seek(0)
        buffer.truncate()

    lines.writerow([csv_cell(column.name) for column in table.columns])
    flush()
    for row in table.rows:
        lines.writerow(map(csv_cell, table.values(row)))
        flush()


def write_csv_with_bom(out: BinaryIO, table: Table) -> None:
    """Write CSV with a BOM, for programs that assume a code page otherwise (Excel)."""
    out.write(_BOM)
    write_csv(out, table)


def write_jsonl(out: BinaryIO, table: Table) -> None:
    """Write one object a line, each with the task's id and status, so that a part is
    identifiable."""
    encode = msgspec.json.Encoder().encode
    for row in table.rows:
        out.write(encode(table.record(row)) + b"\n")


def write_json(out: BinaryIO, table: Table) -> None:
    """Write one object: `about`, the rows under the kind's own key, and the counts."""
    encode = msgspec.json.Encoder().encode
    out.write(b'{"about":' + encode(table.about) + b',"' + table.key.encode() + b'":[')
    lead = b"\n"
    for row in table.rows:
        out.write(lead + encode(table.record(row)))
        lead = b",\n"
    notes = encode({"rows": table.tally.rows, "notes": table.tally.notes()})
    out.write(b'\n],"written":' + notes + b"}\n")


# Characters that XML 1.0 forbids or no table needs: controls, lone surrogates.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# Leading blanks and invisible characters, which a spreadsheet may drop before parsing.
_FRONT = re.compile(
    "[ \n\v\f\x85\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]*"
)
_STARTS: Final = frozenset("=+-@\t\r\u2212")
EXACT: Final = 2**53  # larger integers lose digits in a spreadsheet


def plain(text: str) -> str:
    """Remove the characters that XML forbids from `text`."""
    return _ILLEGAL.sub("", text)


def rows_message(count: int) -> str:
    """Return the id of the message about a number of rows."""
    return "export.rows.one" if count == 1 else "export.rows"


def text_of(value: Any) -> str:
    """Convert any value to text: None is empty, containers are JSON."""
    if isinstance(value, str):
        return plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return plain(msgspec.json.encode(value).decode())


def begins_formula(text: str) -> bool:
    """Return whether a spreadsheet would evaluate this text, also with full-width signs (OWASP)."""
    front = _FRONT.match(text)
    first = text[front.end() : front.end() + 1] if front else ""
    # A spreadsheet normalises a full-width or small form to the plain sign.
    return bool(first) and (first in _STARTS or unicodedata.normalize("NFKC", first) in _STARTS)


def csv_cell(value: Any) -> str:
    """Format a CSV cell: text that begins like a formula gets a leading apostrophe."""
    text = text_of(value)
    return "'" + text if not is_number(value) and begins_formula(text) else text


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def picked(row: dict[str, Any], name: str) -> Any:
    """Return the value of column `name` in `row`; a dot descends one level (`error.message`)."""
    if name in row:
        return row[name]
    value: Any = row
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


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
    lines_lost: int = 0
    cells_cut: int = 0
    sheets: int = 0
    fields_left: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """List in sentences what this file omits."""
        notes = list(self.remarks)
        if self.lines_lost:
            message = "export.lost.one" if self.lines_lost == 1 else "export.lost"
            notes.append(ENGLISH[message].format(count=self.lines_lost))
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
    """Table to write; `rows` is an iterator, `whole` means that records are written unchanged.

    `language` is the code of the language of a report; "" for English. `is_audit`: the rows are
    of a report about the pages of a crawl.
    """

    about: About
    key: str
    columns: tuple[Column, ...]
    rows: Iterator[Row]
    whole: bool
    tally: Tally
    language: str = ""
    is_audit: bool = False

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
