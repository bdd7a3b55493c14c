"""The units of a task are found in pages.jsonl, in own results and in OpenChrome's."""

from __future__ import annotations

import json

import pytest

from engine.ledger.json_stream import Damaged
from engine.model.records import Status
from engine.results.findings import BLOCK, Findings
from tests.results.conftest import page, wrapped

PAGES = [page(1), page(2, title='"quoted" \\ 😀'), page(3, error="HTTP 404")]


def test_a_running_crawl_has_the_pages_that_it_kept(ledger, crawled) -> None:
    task_id = crawled(*PAGES, status=None)
    found = Findings(ledger, task_id, "crawl")
    assert (found.place, list(found.rows())) == ("pages.jsonl", PAGES)


def test_without_pages_the_result_is_read(ledger, with_result) -> None:
    task_id = with_result("crawl", json.dumps({"summary": {"a": 1}, "pages": PAGES}).encode())
    found = Findings(ledger, task_id, "crawl")
    assert (found.place, list(found.rows())) == ("result.json", PAGES)
    assert found.head() == {"summary": {"a": 1}}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_result_inside_a_text_is_opened(ledger, with_result, indent) -> None:
    task_id = with_result("crawl", wrapped({"summary": {"a": 1}, "pages": PAGES}, indent))
    found = Findings(ledger, task_id, "crawl")
    assert list(found.rows()) == PAGES
    assert found.head() == {"summary": {"a": 1}}


def test_a_result_inside_a_text_is_opened_across_many_blocks(ledger, with_result) -> None:
    pages = [page(n, content='"\\é😀' * 20_000) for n in range(8)]
    data = wrapped({"pages": pages})
    assert len(data) > 4 * BLOCK
    assert list(Findings(ledger, with_result("crawl", data), "crawl").rows()) == pages


@pytest.mark.parametrize(
    ("kind", "key"),
    [("recording", "actions"), ("oc_evidence_bundle", "parts"), ("oc_session_snapshot", "tabs")],
)
def test_each_kind_has_its_units_under_its_own_name(ledger, with_result, kind, key) -> None:
    result = {"id": "x", "others": [1], key: [{"a": 1}, {"a": 2}]}
    found = Findings(ledger, with_result(kind, json.dumps(result).encode()), kind)
    assert (found.key, list(found.rows())) == (key, [{"a": 1}, {"a": 2}])


@pytest.mark.parametrize(
    ("result", "rows"),
    [
        (b'{"items": [{"a": 1}, 2]}', [{"a": 1}, {"value": 2}]),
        (b'{"a": 1, "b": {"c": 2}}', [{"a": 1, "b": {"c": 2}}]),
        (b"[1, 2]", [{"value": 1}, {"value": 2}]),
        (b'"done"', [{"value": "done"}]),
        (b"", []),
        (wrapped("x"), [{"text": '"x"'}]),
        (b'{"content": [{"type": "text", "text": "Error: no"}], "isError": true}', None),
    ],
)
def test_unknown_kinds_are_readable(ledger, with_result, result, rows) -> None:
    found = list(Findings(ledger, with_result("stranger", result), "stranger").rows())
    assert found == (rows if rows is not None else [{"text": "Error: no", "isError": True}])


def test_an_envelope_has_the_calls_among_its_events(ledger) -> None:
    task_id = ledger.create("browser_task", {}).task_id
    ledger.append_event(task_id, "tool_call", {"tool": "navigate"})
    rows = list(Findings(ledger, task_id, "browser_task").rows())
    assert rows[-1]["kind"] == "tool_call"
    assert rows[-1]["data"] == {"tool": "navigate"}


@pytest.mark.parametrize("cut_at", [1, 40, -3])
def test_a_result_that_breaks_off_is_damaged_and_not_shorter(ledger, with_result, cut_at) -> None:
    data = json.dumps({"summary": {}, "pages": PAGES}).encode()[:cut_at]
    with pytest.raises(Damaged):
        list(Findings(ledger, with_result("crawl", data), "crawl").rows())


def test_a_task_that_kept_nothing_has_no_place(ledger, crawled) -> None:
    assert Findings(ledger, crawled(status=None), "crawl").place == ""


def test_reading_tells_how_far_it_is(ledger, crawled) -> None:
    found = Findings(ledger, crawled(*PAGES, status=Status.CANCELLED), "crawl")
    for _ in found.rows():
        assert 0 < found.done <= found.size
    assert found.done == found.size
