"""Results that OpenChrome stored are opened: as units of the viewer, and in exports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.ledger.ledger import Ledger
from engine.results.findings import Findings
from engine.results.units import UnitState, unit_of
from tests.results.conftest import wrapped
from tests.results.reading import csv_rows, jsonl_rows, streamed, workbook

CORPUS = Path(__file__).resolve().parents[2] / "fixtures" / "openchrome" / "tasks"
CRAWLS = {
    "55b4363522fc5037": "COMPLETED",
    "812e93f621c6d904": "COMPLETED",  # of a sitemap
    "26595067fa4f54ec": "CANCELLED",  # stored before its cancel counted
    "970cfad864c911e6": "COMPLETED",  # the oldest layout
}
SIZE = {"url": "http://site.test/large", "depth": 1, "links_found": 3, "content_length": 91_234}
PAGES: list[dict[str, Any]] = [
    {"url": "http://site.test/", "title": 'A "b" \\ 😀', "content": "é\n\tx", "depth": 0},
    {**SIZE, "title": "Large", "note": "Content omitted due to size constraints"},
    {"url": "http://site.test/no", "title": "", "content": "", "error": "Blocked by robots.txt"},
    {"url": "http://site.test/s", "error": "static-insufficient: too-small", "engine_used": "cdp"},
]


@pytest.fixture
def corpus(ledger: Ledger) -> Ledger:
    for name in CRAWLS:
        shutil.copytree(CORPUS / name, ledger.root / name)
    return ledger


def stored_pages(task_id: str) -> list[dict[str, Any]]:
    """Pages as a reader gets them that parses twice."""
    outer = json.loads((CORPUS / task_id / "result.json").read_bytes())
    pages: list[dict[str, Any]] = json.loads(outer["content"][0]["text"])["pages"]
    return pages


@pytest.mark.parametrize("task_id", CRAWLS)
def test_the_pages_of_a_stored_crawl_are_its_units(corpus: Ledger, task_id: str) -> None:
    kind = corpus.read_raw(task_id)["kind"]
    found = Findings(corpus, task_id, kind)
    rows = list(found.rows())
    assert rows == stored_pages(task_id) != []
    assert found.head()["summary"]["total_pages"] == len(rows)
    units = [unit_of(row, number) for number, row in enumerate(rows)]
    assert [unit.name for unit in units] == [row["url"] for row in rows]
    assert {unit.state for unit in units} == {UnitState.DONE}


@pytest.mark.parametrize("task_id", CRAWLS)
def test_the_pages_of_a_stored_crawl_are_exported(
    corpus: Ledger, task_id: str, tmp_path: Path
) -> None:
    pages = stored_pages(task_id)
    titles = [one["title"] for one in pages]
    assert [row["title"] for row in csv_rows(streamed(corpus, task_id, "csv"))] == titles
    told = json.loads(streamed(corpus, task_id, "json"))
    assert told["pages"] == pages
    assert told["about"]["summary"]["total_pages"] == len(pages)
    added = {"task_id": task_id, "task_status": CRAWLS[task_id]}
    assert jsonl_rows(streamed(corpus, task_id, "jsonl")) == [one | added for one in pages]
    names, *rows = workbook(corpus, task_id, tmp_path / "a.xlsx")["pages"]
    assert [row[names.index("title")] for row in rows] == titles


def test_pages_that_it_refused_or_cut_are_told_apart(ledger: Ledger, with_result: Any) -> None:
    task_id = with_result("crawl", wrapped({"summary": {}, "pages": PAGES}))
    rows = list(Findings(ledger, task_id, "crawl").rows())
    assert rows == PAGES
    states = [unit_of(row, number).state for number, row in enumerate(rows)]
    assert states == [UnitState.DONE, UnitState.DONE, UnitState.REFUSED, UnitState.FAILED]
    row = csv_rows(streamed(ledger, task_id, "csv"))[1]
    assert row["content_length"] == "91234"
    assert row["note"] == "Content omitted due to size constraints"


def test_half_a_letter_inside_the_text_costs_that_letter_only(
    ledger: Ledger, with_result: Any
) -> None:
    """It cuts contents in the middle of a pair; the half is escaped once or twice."""
    cut = [{**PAGES[0], "content": "cut \ud83d"}]
    text = json.dumps({"summary": {}, "pages": cut}, ensure_ascii=False)
    whole = json.dumps({"content": [{"type": "text", "text": text}]}, ensure_ascii=False)
    once = with_result("crawl", whole.encode("utf-8", "backslashreplace"))
    inner = json.dumps({"summary": {}, "pages": cut})
    twice = with_result("crawl", json.dumps({"content": [{"text": inner}]}).encode())
    for task_id in (once, twice):
        (row,) = Findings(ledger, task_id, "crawl").rows()
        assert row == {**PAGES[0], "content": "cut \ufffd"}
        assert csv_rows(streamed(ledger, task_id, "csv"))[0]["content"] == "cut \ufffd"


def test_the_empty_result_of_a_tool_that_returned_nothing_is_no_damage(
    ledger: Ledger, with_result: Any
) -> None:
    assert list(Findings(ledger, with_result("crawl", b""), "crawl").rows()) == []
