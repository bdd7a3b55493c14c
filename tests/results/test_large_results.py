"""A large result stores its head and refers to its pages; readers get all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.ledger.files import Folder
from engine.ledger.ledger import Ledger
from engine.ledger.reader import LedgerReader
from engine.ledger.reaper import Reaper
from engine.model.records import Status
from engine.results.file_reader import TaskFileReader
from engine.results.json_tree import Node
from fixtures.site.site import Site
from gui.details.result import summary_text
from tests.results.conftest import page
from tests.results.test_octask_results import octask
from tests.store.test_orphans import leave_running
from tests.support.engines import opened, until

FAST = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_pages": 3}
HEAD = {"summary": {"total_pages": 3}}


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if few bytes were many."""
    monkeypatch.setattr("engine.ledger.ledger.APART_BYTES", 10)


def large(ledger: Ledger) -> str:
    """A crawl whose units stand apart; its id."""
    task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    ledger.claim(task_id)
    ledger.append_pages(task_id, [page(n, title=f"é {n}") for n in range(3)])
    ledger.write_units(task_id, HEAD, "pages")
    ledger.finish(task_id, Status.COMPLETED)
    return task_id


def file_of(root: Path, task_id: str) -> dict:
    return json.loads((root / task_id / "result.json").read_bytes())


def lines_of(root: Path, task_id: str) -> list[dict]:
    text = (root / task_id / "pages.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def test_a_small_result_is_whole_in_itself(ledger: Ledger) -> None:
    task_id = large(ledger)
    assert file_of(ledger.root, task_id) == {**HEAD, "pages": lines_of(ledger.root, task_id)}


def test_a_large_result_says_where_its_pages_are(ledger: Ledger, small_limit: None) -> None:
    task_id = large(ledger)
    refers = {**HEAD, "pages_file": "pages.jsonl", "pages_total": 3}
    assert file_of(ledger.root, task_id) == refers
    assert "pages.jsonl" in summary_text(refers)


def test_the_pages_are_flushed_before_a_result_refers_to_them(
    ledger: Ledger, small_limit: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[str, bool]] = []
    append, replace = Folder.append, Folder.replace

    def appended(self: Folder, name: str, data: bytes, **how: bool) -> None:
        steps.append((name, how["durable"]))
        append(self, name, data, **how)

    def replaced(self: Folder, name: str, *rest: Any, **how: Any) -> None:
        steps.append((name, how["durable"]))
        replace(self, name, *rest, **how)

    monkeypatch.setattr(Folder, "append", appended)
    monkeypatch.setattr(Folder, "replace", replaced)
    large(ledger)
    at = steps.index(("result.json", True))
    assert steps[at - 1] == ("pages.jsonl", True)


def test_large_and_small_reads_agree(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    small = large(ledger)
    monkeypatch.setattr("engine.ledger.ledger.APART_BYTES", 10)
    with ledger.whole_result(small) as before, ledger.whole_result(large(ledger)) as now:
        assert now.read() == before.read()


def test_parts_of_a_large_result_are_read_alone(ledger: Ledger, small_limit: None) -> None:
    task_id = large(ledger)
    pages = lines_of(ledger.root, task_id)
    with (ledger.root / task_id / "pages.jsonl").open("ab") as file:
        file.write(b'{"url": "torn')
    with LedgerReader(ledger.root).open_whole(task_id, "result.json") as file:
        whole = file.read()
        assert json.loads(whole) == {**HEAD, "pages": pages}
        assert file.seek(0, 2) == len(whole)
        for start in range(len(whole) + 1):
            file.seek(start)
            assert file.read(7) == whole[start : start + 7]


async def test_tree_and_search_read_large_results(ledger: Ledger, small_limit: None) -> None:
    task_id, reading = large(ledger), TaskFileReader(ledger.root)
    root = Node("$", "object", 0, "")
    found = [one async for part in reading.members(task_id, "result.json", root) for one in part]
    assert [one.step for one in found if isinstance(one, Node)] == ["summary", "pages"]
    parts = [part async for part in reading.search(task_id, "result.json", "é 2")]
    assert [hit.steps for part in parts for hit in part.hits] == [("pages", 2, "title")]
    with reading.open(task_id, "result.json") as file:
        assert parts[-1].size == file.seek(0, 2)
    place = await reading.find(task_id, "result.json", "é 2", 0, lambda *_: None)
    part = await reading.part(task_id, "result.json", place, 4)
    assert part.data.decode() == "é 2"


def test_a_large_result_may_lack_its_pages(ledger: Ledger, small_limit: None) -> None:
    task_id = large(ledger)
    (ledger.root / task_id / "pages.jsonl").unlink()
    with ledger.whole_result(task_id) as file:
        assert json.load(file)["pages_total"] == 3


def test_another_programs_result_refers_to_nothing(ledger: Ledger, with_result) -> None:
    said = b'{"pages_file":"pages.jsonl","pages":[1],"x":{"tabs_file":"pages.jsonl"}}'
    with ledger.whole_result(with_result("crawl", said)) as file:
        assert file.read() == said


def test_large_results_are_exported_whole(home: Path, ledger: Ledger, small_limit: None) -> None:
    task_id = large(ledger)
    pages = lines_of(ledger.root, task_id)
    plain = octask(home, "get", task_id, "--result").stdout
    assert json.loads(plain[plain.index('\n{"summary"') :]) == {**HEAD, "pages": pages}
    told = json.loads(octask(home, "get", task_id, "--result", "--json").stdout)
    assert told["result"] == {**HEAD, "pages": pages}
    exported = json.loads(octask(home, "export", task_id, "--format", "json").stdout)
    assert (exported["pages"], exported["about"]["summary"]) == (pages, HEAD["summary"])


async def test_cancelled_crawls_keep_page_files(home: Path, site: Site, small_limit: None) -> None:
    async with opened(home) as engine:
        args = {"url": f"{site.url}/static/1", **FAST, "delay_ms": 60_000}
        task_id = (await engine.requests.start("crawl", args)).task_id
        folder = home / "tasks" / task_id
        await until(lambda: (folder / "pages.jsonl").exists())
        await engine.commands.cancel(task_id)
        await engine.tasks.wait(task_id)
        await engine.tasks.join(task_id)
        source = await engine.tasks.result(task_id)
        assert source is not None
        with source:
            whole = json.load(source)
        head = await engine.tasks.head(task_id)
    kept = file_of(home / "tasks", task_id)
    assert (kept["pages_total"], kept["summary"]["stopped_by"]) == (1, "cancelled")
    assert whole == {"summary": kept["summary"], "pages": lines_of(home / "tasks", task_id)}
    assert head["pages_file"] == "pages.jsonl"


def test_the_pages_of_a_killed_crawl_stand_apart_too(ledger: Ledger, small_limit: None) -> None:
    root = ledger.root
    task_id = leave_running(root)
    Reaper(ledger).reap()
    assert file_of(root, task_id)["pages_total"] == 2
    with LedgerReader(root).whole_result(task_id) as file:
        assert [one["url"] for one in json.load(file)["pages"]] == [
            one["url"] for one in lines_of(root, task_id)
        ]
