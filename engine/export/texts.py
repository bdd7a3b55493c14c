"""CSV, JSON and JSON lines, written row by row."""

from __future__ import annotations

import csv
import io
from typing import BinaryIO

import msgspec

from engine.export.cells import csv_cell
from engine.export.table import Table

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
