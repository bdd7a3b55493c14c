"""Exports read back the way other programs read them."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from engine.export.exporter import ExportProgress, Order, export_file, export_stream
from engine.ledger.reader import LedgerReader

XML = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
LINKED = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")


def streamed(
    ledger: LedgerReader,
    task_id: str,
    form: str,
    *columns: str,
    bom: bool = False,
    report: str = "",
    language: str = "",
) -> str:
    out, order = io.BytesIO(), Order(task_id, form, columns, bom, report, language)
    export_stream(ledger, order, out, ExportProgress())
    return out.getvalue().decode()


def csv_rows(text: str) -> list[dict[str, str]]:
    """By Python's own reader, which takes RFC 4180."""
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def jsonl_rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n") if line]


def workbook(
    ledger: LedgerReader, task_id: str, place: Path, *columns: str
) -> dict[str, list[Any]]:
    export_file(ledger, Order(task_id, "xlsx", columns), place, ExportProgress(), force=True)
    return sheets(place)


def sheets(place: Path) -> dict[str, list[list[Any]]]:
    """Every sheet by its name, as rows of numbers, truth values and texts."""
    with zipfile.ZipFile(place) as book:
        links = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
        targets = {link.get("Id"): link.get("Target") for link in links}
        listed = ElementTree.fromstring(book.read("xl/workbook.xml")).iter(f"{XML}sheet")
        return {
            str(one.get("name")): _rows(book.read(f"xl/{targets[one.get(LINKED)]}"))
            for one in listed
        }


def filters(place: Path) -> list[str | None]:
    """The cells of each sheet that have buttons to filter it, in the order of the sheets."""
    with zipfile.ZipFile(place) as book:
        names = sorted(one for one in book.namelist() if one.startswith("xl/worksheets/sheet"))
        found = [ElementTree.fromstring(book.read(one)).find(f"{XML}autoFilter") for one in names]
    return [None if one is None else one.get("ref") for one in found]


def _rows(data: bytes) -> list[list[Any]]:
    rows = []
    for row in ElementTree.fromstring(data).iter(f"{XML}row"):
        cells: dict[int, Any] = {_column(str(cell.get("r"))): _value(cell) for cell in row}
        rows.append([cells.get(at) for at in range(max(cells, default=-1) + 1)])
    return rows


def _column(place: str) -> int:
    number = 0
    for letter in place.rstrip("0123456789"):
        number = number * 26 + ord(letter) - 64
    return number - 1


def _value(cell: ElementTree.Element) -> Any:
    assert cell.find(f"{XML}f") is None, "a formula"
    match cell.get("t"):
        case "inlineStr":
            text = "".join(node.text or "" for node in cell.iter(f"{XML}t"))
            return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
        case "b":
            return cell.findtext(f"{XML}v") == "1"
        case None | "n":
            number = cell.findtext(f"{XML}v")
            return None if number is None else float(number)
    raise AssertionError(f"a cell of type {cell.get('t')}")
