"""Exports contain no formula and no markup, and read back unchanged."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.export.exporter import FORMATS, Order
from engine.export.exports import Exports
from engine.export.table import About, Table, Tally, csv_cell
from engine.kinds.spec import Column
from fixtures.hostile_ledger import HOSTILE_TEXTS
from fixtures.hostile_ledger.traps import base

STARTS = [*"=+-@\t\r", *"＝＋－＠", "\u2212", "﹦", "﹢", "﹣", "﹫"]
FRONTS = ["", " ", "  ", "\n", "\u00a0", "\u200b", "\ufeff", "\u2060", "\u3000", "\u00ad", "\u200e"]
FRONTS += ["\u2800", "\u3164", " \ufeff ", "\ufe0f", "\U000e0020"]
ANY_TEXT = st.text(st.characters(codec=None))
FORMULAS = st.tuples(st.sampled_from(FRONTS), st.sampled_from(STARTS), ANY_TEXT).map("".join)
CELLS = FORMULAS | ANY_TEXT | st.sampled_from(sorted(HOSTILE_TEXTS.values()))
ROWS = st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=4)


def written(form: str, rows: list[list[str]], names: tuple[str, ...] = ("a", "b")) -> bytes:
    empty: dict[str, Any] = dict.fromkeys(About.__struct_fields__, "")
    about = About(**{**empty, "partial": True, "summary": {}})
    found: Iterator[dict[str, Any]] = iter([dict(zip(names, row, strict=True)) for row in rows])
    out = io.BytesIO()
    columns = tuple(map(Column, names))
    FORMATS[form].write(out, Table(about, "pages", columns, found, True, Tally(rows=len(rows))))
    return out.getvalue()


@pytest.mark.case("R84")
@given(FORMULAS)
def test_a_text_that_a_spreadsheet_could_calculate_gets_an_apostrophe(text: str) -> None:
    assert csv_cell(text).startswith("'")


@pytest.mark.case("R84")
@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_stays_the_number_it_is(number: float) -> None:
    assert csv_cell(number) == str(number)


@pytest.mark.case("R84")
@given(ROWS)
def test_a_csv_is_read_again_as_it_was_written(rows: list[list[str]]) -> None:
    data = written("csv", rows).decode("utf-8")
    assert data.endswith("\r\n")
    again = list(csv.reader(io.StringIO(data, newline=""), strict=True))
    assert again[0] == ["a", "b"]
    assert again[1:] == [[csv_cell(cell) for cell in row] for row in rows]
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]", data)


@pytest.mark.case("R84", "R36")
@settings(max_examples=50)
@given(ROWS)
def test_a_report_holds_every_text_as_text(rows: list[list[str]]) -> None:
    page = written("html", rows).decode("utf-8")
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    tags = set(re.findall("<[^>]*>", body))
    assert tags <= {"<tr>", "</tr>", "<td>", "</td>"}
    cells = re.findall("<td>(.*?)</td>", body, re.DOTALL)
    assert len(cells) == 2 * len(rows)
    assert "\x1b" not in html.unescape(page)


@pytest.mark.case("R84")
@settings(max_examples=25)
@given(ROWS)
def test_a_workbook_holds_no_formula_and_no_link(rows: list[list[str]]) -> None:
    with zipfile.ZipFile(io.BytesIO(written("xlsx", rows))) as book:
        for name in book.namelist():
            text = book.read(name).decode("utf-8")
            assert "<f>" not in text
            assert "<f " not in text
            assert "<hyperlink" not in text


@pytest.mark.case("R36")
@pytest.mark.parametrize("form", [name for name, form in FORMATS.items() if form.text])
async def test_every_hostile_text_leaves_as_valid_utf_8(tmp_path: Path, form: str) -> None:
    texts = list(HOSTILE_TEXTS.values())
    folder = tmp_path / "tasks" / "0123456789abcdef"
    folder.mkdir(parents=True)
    said = "".join(texts)
    record: dict[str, Any] = base(objective=said, args_summary={"url": said}, engine={"name": said})
    (folder / "meta.json").write_text(json.dumps(record))
    pages = [json.dumps({"url": each, "title": each, each: each, "status": 200}) for each in texts]
    (folder / "pages.jsonl").write_text("\n".join(pages) + "\n")
    out = io.BytesIO()
    made = await Exports(tmp_path / "tasks").to_stream(Order(folder.name, form), out)
    assert made.rows == len(texts)
    text = out.getvalue().decode("utf-8")
    if form == "jsonl":
        titles = [json.loads(line)["title"] for line in text.rstrip("\n").split("\n")]
        assert titles == [re.sub("[\ud800-\udfff]", "\ufffd", each) for each in texts]
    elif form == "json":
        assert len(json.loads(text)["pages"]) == len(texts)
