from __future__ import annotations

from typing import Any

from engine.ledger.ledger import Ledger
from engine.results.file_reader import TaskFileReader


def crawl(ledger: Ledger, *pages: dict[str, Any]) -> str:
    task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    ledger.claim(task_id)
    for page in pages:
        ledger.append_page(task_id, {"status": 200, "title": "T", "content": "c", **page})
    return task_id


async def test_two_runs_are_compared(reading: TaskFileReader, ledger: Ledger) -> None:
    before = crawl(ledger, {"url": "/same"}, {"url": "/gone"}, {"url": "/x"}, {"url": "/t"})
    after = crawl(
        ledger,
        {"url": "/same"},
        {"url": "/x", "status": 404},
        {"url": "/new"},
        {"url": "/t", "content": "other"},
    )
    found = await reading.differences(before, after, lambda _: None)
    assert {(one.change, one.name, one.before, one.after) for one in found.found} == {
        ("changed", "/x", "200 · T", "404 · T"),
        ("changed", "/t", "200 · T", "200 · T"),
        ("added", "/new", "", "200 · T"),
        ("removed", "/gone", "200 · T", ""),
    }
    assert (found.added, found.removed, found.changed, found.same) == (1, 1, 2, 1)
