"""One task's life in a real engine: accepted, run, cancelled, failed, lost; on disk first."""

import asyncio
import errno
import itertools
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.ledger.ledger import Ledger
from engine.model.errors import (
    InvalidArguments,
    LedgerReadOnly,
    LedgerUnusable,
    ShuttingDown,
    WaitTimeout,
)
from engine.model.records import Status, TaskRecord, TaskView
from engine.sample.site import Answer, Request
from engine.text import words
from tests.support.engines import WAIT_S, opened, until
from tests.support.line_files import whole_lines
from tests.support.serving import served

STATIC = {"engine": "static", "delay_ms": 0, "respect_robots": False}
# With all pages of the site it takes longer than any test.
ENDLESS = {**STATIC, "max_pages": 10_000, "max_depth": 100, "delay_ms": 1_000}


def pages_on_disk(home: Path, task_id: str) -> list[dict[str, Any]]:
    return whole_lines(home / "tasks" / task_id / "pages.jsonl")


def result_of(home: Path, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "tasks" / task_id / "result.json").read_bytes())
    return found


def kinds_of_events(home: Path, task_id: str) -> list[str]:
    events = whole_lines(home / "tasks" / task_id / "events.jsonl")
    return [event["kind"] for event in events]


def record_of(view: TaskView) -> TaskRecord:
    assert isinstance(view.entry, TaskRecord)
    return view.entry


async def test_a_task_is_pending_on_disk_before_start_returns(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        record = await engine.requests.start("crawl", {"url": site.url, **STATIC, "max_pages": 1})
        assert record.status == Status.PENDING
        assert (home / "tasks" / record.task_id / "meta.json").exists()
        assert (await engine.tasks.wait(record.task_id)).status == Status.COMPLETED


async def test_a_finished_crawl_has_result_then_state_then_event(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        started = await engine.requests.start("crawl", {"url": site.url, **STATIC, "max_pages": 5})
        record = await engine.tasks.wait(started.task_id)
        await engine.tasks.join(started.task_id)
    assert record.status == Status.COMPLETED
    assert record.result_path == str(home / "tasks" / record.task_id / "result.json")
    result = result_of(home, record.task_id)
    assert result["summary"]["total_pages"] == len(result["pages"]) == 5
    assert result["summary"]["stopped_by"] == "max_pages"
    assert result["pages"] == pages_on_disk(home, record.task_id)
    assert record.engine is not None
    assert record.engine.units is not None
    assert record.engine.units.done == 5
    kinds = kinds_of_events(home, record.task_id)
    assert kinds[0] == "started"
    assert kinds[-1] == "completed"
    assert kinds.count("progress") == 5


async def test_a_task_leaves_files_times_and_events(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        started = await engine.requests.start("crawl", {"url": site.url, **STATIC, "max_pages": 3})
        record = await engine.tasks.wait(started.task_id)
        await engine.tasks.join(started.task_id)
    folder = home / "tasks" / record.task_id
    files = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert files == {"meta.json", "events.jsonl", "pages.jsonl", "result.json", "lock"}
    assert record.created_at <= (record.started_at or 0) <= (record.ended_at or 0)
    events = whole_lines(folder / "events.jsonl")
    assert all(isinstance(event["ts"], int) for event in events)
    progress = [event["data"] for event in events if event["kind"] == "progress"]
    assert [data["unitsDone"] for data in progress] == [1, 2, 3]
    assert all(data["unitsDone"] <= data["unitsTotal"] <= 3 for data in progress)
    urls = [page["url"] for page in pages_on_disk(home, record.task_id)]
    assert [data["message"] for data in progress] == urls


@pytest.mark.case("R77")
async def test_a_cancelled_crawl_keeps_every_finished_page(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        args = {"url": site.url, **ENDLESS}
        task_id = (await engine.requests.start("crawl", args)).task_id
        await until(lambda: len(pages_on_disk(home, task_id)) >= 3)
        await engine.commands.cancel(task_id, "seen enough")
        record = await engine.tasks.wait(task_id, timeout_ms=100_000)
        await engine.tasks.join(task_id)
    assert record.status == Status.CANCELLED
    assert record.result_path is None
    result = result_of(home, task_id)
    assert result["summary"]["stopped_by"] == "cancelled"
    assert result["pages"] == pages_on_disk(home, task_id)
    assert result["summary"]["total_pages"] == len(result["pages"]) >= 3
    kinds = kinds_of_events(home, task_id)
    assert kinds.count("cancel_requested") == 1
    assert kinds[-1] == "cancelled"


@pytest.mark.case("R77")
async def test_a_page_that_never_answers_does_not_hold_up_a_cancel(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        task_id = (
            await engine.requests.start("crawl", {"url": site.url + "/hang", **STATIC})
        ).task_id
        await until(lambda: site.hits["/hang"] > 0)
        await engine.commands.cancel(task_id)
        assert (await engine.tasks.wait(task_id, timeout_ms=100_000)).status == Status.CANCELLED


async def test_a_queued_task_is_cancelled_at_once_and_never_runs(home: Path, site: Any) -> None:
    async with opened(home, slots=1) as engine:
        first = await engine.requests.start("crawl", {"url": site.url + "/hang", **STATIC})
        await until(lambda: site.hits["/hang"] > 0)
        second = await engine.requests.start("crawl", {"url": site.url, **STATIC})
        assert engine.health().queued == 1
        assert (await engine.commands.cancel(second.task_id)).status == Status.CANCELLED
        await engine.tasks.join(second.task_id)
        assert engine.health().queued == 0
        await engine.commands.cancel(first.task_id)
        await engine.tasks.wait(first.task_id, timeout_ms=100_000)
    assert record_of(TaskView(Ledger(home / "tasks").read(second.task_id))).started_at is None
    assert site.hits["/"] == 0


async def test_a_failed_task_keeps_its_pages(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        args = {"url": site.url, **STATIC, "failOnPage": 2, "concurrency": 1}
        record = await engine.tasks.wait((await engine.requests.start("crawl", args)).task_id)
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == "injected_fault"
    result = result_of(home, record.task_id)
    assert len(result["pages"]) == 1
    assert result["summary"]["stopped_by"] == "failed"
    # The lock is free: another process' change goes through at once.
    assert Ledger(home / "tasks").request_cancel(record.task_id).status == Status.FAILED


async def test_a_refused_request_writes_nothing_and_names_every_mistake(home: Path) -> None:
    async with opened(home) as engine:
        args = {"url": "ftp://example.com", "max_pages": 0, "concurrency": 99}
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start("crawl", args)
        assert await engine.tasks.list() == []
    named = {problem.path for problem in refused.value.problems}
    assert named == {"url", "max_pages", "concurrency"}


async def test_an_unknown_kind_is_refused_with_the_known_ones(home: Path) -> None:
    async with opened(home) as engine:
        with pytest.raises(InvalidArguments, match=r"known: .*crawl"):
            await engine.requests.start("crawlz", {})


@pytest.mark.case("R27")
async def test_a_task_ended_by_someone_else_stops_and_says_so(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        args = {"url": site.url, **ENDLESS}
        task_id = (await engine.requests.start("crawl", args)).task_id
        await until(lambda: len(pages_on_disk(home, task_id)) >= 2)
        meta = home / "tasks" / task_id / "meta.json"
        other = Ledger(home / "tasks")  # which takes its turn to write, as other programs do
        await asyncio.to_thread(
            other.mutate, task_id, lambda raw: raw.update(status="FAILED", ended_at=1)
        )
        before = meta.read_bytes()
        await engine.tasks.join(task_id)
    assert meta.read_bytes() == before
    notes = (home / "tasks" / task_id / "events.jsonl").read_text()
    assert "lost ownership" in notes
    assert len(pages_on_disk(home, task_id)) >= 2


@pytest.mark.case("R78")
async def test_closing_cancels_what_runs_and_keeps_its_pages(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        args = {"url": site.url, **ENDLESS}
        task_id = (await engine.requests.start("crawl", args)).task_id
        await until(lambda: len(pages_on_disk(home, task_id)) >= 2)
    record = Ledger(home / "tasks").read(task_id)
    assert isinstance(record, TaskRecord)
    assert record.status == Status.CANCELLED
    assert len(result_of(home, task_id)["pages"]) >= 2


async def test_a_closed_engine_takes_nothing_new(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        pass
    with pytest.raises(ShuttingDown):
        await engine.requests.start("crawl", {"url": site.url})


@pytest.mark.skipif(os.name == "nt", reason="folder modes do not bind on Windows")
@pytest.mark.case("R50")
async def test_a_read_only_ledger_can_be_looked_at_but_takes_no_task(
    home: Path, site: Any, read_only: Callable[[Path], None]
) -> None:
    async with opened(home) as engine:
        task_id = (
            await engine.requests.start("crawl", {"url": site.url, **STATIC, "max_pages": 1})
        ).task_id
        await engine.tasks.wait(task_id)
        await engine.tasks.join(task_id)
    read_only(home / "tasks")
    async with opened(home) as engine:
        assert engine.health().read_only
        stopped = await engine.commands.cancel(task_id)
        assert stopped.status == Status.COMPLETED, "an ended task has nothing to write"
        assert [view.task_id for view in await engine.tasks.list()] == [task_id]
        with pytest.raises(LedgerReadOnly):
            await engine.requests.start("crawl", {"url": site.url})


async def test_a_wait_that_times_out_ends_no_task(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        task_id = (
            await engine.requests.start("crawl", {"url": site.url + "/hang", **STATIC})
        ).task_id
        with pytest.raises(WaitTimeout) as late:
            await engine.tasks.wait(task_id, timeout_ms=50)
        assert late.value.code == "ETIMEDOUT"
        assert record_of(await engine.tasks.get(task_id)).is_live


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
async def test_a_full_disk_at_the_end_is_waited_out_and_nothing_is_lost(
    home: Path, site: Any, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    disk = {"full": False}
    fsync = os.fsync

    def full_or_not(descriptor: int) -> None:
        if disk["full"]:
            raise OSError(code, os.strerror(code))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full_or_not)
    monkeypatch.setattr("engine.execution.runner.AGAIN_S", 0.02)
    async with opened(home) as engine:
        args = {"url": site.url, **STATIC, "max_pages": 3, "delay_ms": 100}
        task_id = (await engine.requests.start("crawl", args)).task_id
        await until(lambda: len(pages_on_disk(home, task_id)) >= 1)
        disk["full"] = True
        await until(lambda: bool(engine.health().warnings))
        assert os.strerror(code) in engine.health().warnings[0]
        assert record_of(await engine.tasks.get(task_id)).status == Status.RUNNING
        disk["full"] = False
        assert (await engine.tasks.wait(task_id)).status == Status.COMPLETED
        await engine.tasks.join(task_id)
        assert engine.health().warnings == ()
    assert len(result_of(home, task_id)["pages"]) == 3


@pytest.mark.parametrize("last", ["result.json", "meta.json"])
async def test_what_a_limit_of_file_sizes_forbids_ends_the_run_and_is_never_a_success(
    home: Path, site: Any, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """Without a result the task is FAILED; without a record the run is given up, and reaped."""
    write, limited = os.write, {"now": False}

    def too_large(descriptor: int, data: bytes) -> int:
        of_end = b'"ended_at"' in bytes(data) and last == "meta.json"
        if limited["now"] and (b'"summary"' in bytes(data) or of_end):
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", too_large)
    limited["now"] = True
    async with opened(home) as engine:
        args = {"url": site.url, **STATIC, "max_pages": 2}
        task_id = (await engine.requests.start("crawl", args)).task_id
        async with asyncio.timeout(WAIT_S):
            await engine.tasks.join(task_id)
        lost = engine.own.lost(task_id)
        record = record_of(await engine.tasks.get(task_id))
        assert record.status == (Status.FAILED if lost is None else Status.RUNNING)
        assert (lost is not None) == (last == "meta.json")
        if lost is not None:
            assert (await engine.tasks.get(task_id)).orphaned
    limited["now"] = False
    async with opened(home) as engine:
        await engine.commands.reap()
        record = record_of(await engine.tasks.get(task_id))
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == ("orphaned" if last == "meta.json" else "ledger_file_too_large")
    assert len(pages_on_disk(home, task_id)) == 2


async def test_a_page_that_could_not_be_written_is_not_counted(
    home: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, pages = os.write, []

    def full_at_the_third(descriptor: int, data: bytes) -> int:
        if b'"final_url"' in bytes(data):
            pages.append(descriptor)
            if len(pages) == 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    async with opened(home) as engine:
        monkeypatch.setattr(os, "write", full_at_the_third)
        args = {"url": site.url, **STATIC, "max_pages": 9, "concurrency": 1}
        task_id = (await engine.requests.start("crawl", args)).task_id
        assert (await engine.tasks.wait(task_id)).status == Status.FAILED
        await engine.tasks.join(task_id)
        units = (await engine.tasks.get(task_id)).units
    assert units is not None
    assert units.done == len(result_of(home, task_id)["pages"]) == 2


async def test_failed_pages_are_counted(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        args = {"url": site.url + "/odd/", **STATIC, "include_patterns": ["/status/*"]}
        task_id = (await engine.requests.start("crawl", args)).task_id
        record = await engine.tasks.wait(task_id)
        view = await engine.tasks.get(task_id)
    assert record.status == Status.COMPLETED
    assert view.units is not None
    assert (view.units.done, view.units.failed) == (3, 2)
    assert words.progress("crawl", view.units) == "3/3 · 2 failed"


async def test_a_reason_says_that_it_is_of_the_first_of_several_pages(
    home: Path, site: Any
) -> None:
    async with opened(home) as engine:
        urls = [f"{site.url}/status/503", f"{site.url}/status/404"]
        args = {**STATIC, "url": f"{site.url}/status/500", "urls": urls, "max_depth": 0}
        record = await engine.tasks.wait((await engine.requests.start("crawl", args)).task_id)
    assert record.error is not None
    assert record.error.message.endswith(" (the first of 3 failed pages)")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/status/500", "only_error_answers"),
        ("/redirect/to?url=http://127.0.0.1:1/", "nothing_taken"),
    ],
)
async def test_a_crawl_without_pages_fails(home: Path, site: Any, path: str, code: str) -> None:
    async with opened(home) as engine:
        record = await engine.tasks.wait(
            (await engine.requests.start("crawl", {**STATIC, "url": site.url + path})).task_id
        )
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == code
    (page,) = result_of(home, record.task_id)["pages"]
    assert page["error"] in record.error.message


async def test_what_failed_is_told_with_its_reason_as_it_happens(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        task_id = (
            await engine.requests.start("crawl", {"url": site.url + "/status/500", **STATIC})
        ).task_id
        await engine.tasks.wait(task_id)
        told = [event.data for event in (await engine.tasks.events(task_id)).events]
    assert {"unitsDone": 1, "unitsTotal": 1, "unitsFailed": 1} | {
        "message": f"{site.url}/status/500: HTTP 500"
    } in told


async def test_a_ledger_that_cannot_be_looked_at_for_a_moment_stops_no_task(
    home: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp, looks, looked = Ledger.stamp, itertools.count(1), threading.Event()

    def sometimes(ledger: Ledger, task_id: str) -> Any:
        if (look := next(looks)) <= 3:
            raise LedgerUnusable(path=str(home), reason="Too many open files")
        if look > 4:
            looked.set()
        return stamp(ledger, task_id)

    def answer(_: Request) -> Answer:
        looked.wait(WAIT_S)  # the task runs until it was looked at often enough
        return Answer(b"<p>a page</p>")

    monkeypatch.setattr(Ledger, "stamp", sometimes)
    with served(answer) as url:
        async with opened(home) as engine:
            args = {"url": url, **STATIC, "max_pages": 1, "timeout_ms": 600_000}
            try:
                started = await engine.requests.start("crawl", args)
                record = await engine.tasks.wait(started.task_id, timeout_ms=100_000)
            finally:
                looked.set()
    assert next(looks) > 4
    assert record.status == Status.COMPLETED
    assert record.engine is not None
    assert record.engine.units is not None
    assert (record.engine.units.done, record.engine.units.failed) == (1, 0)


@pytest.mark.case("R82")
async def test_a_password_in_the_scope_stays_out_of_the_result(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        scope = site.url.replace("http://", "http://ann:hunter2secret@") + "/**"
        args = {"url": site.url, **STATIC, "scope": scope, "max_pages": 1}
        task_id = (await engine.requests.start("crawl", args)).task_id
        await engine.tasks.wait(task_id)
        await engine.tasks.join(task_id)
    for path in (home / "tasks" / task_id).iterdir():
        assert path.is_dir() or b"hunter2secret" not in path.read_bytes()


async def test_a_start_that_comes_while_closing_leaves_no_lost_task(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        starting = asyncio.create_task(engine.requests.start("crawl", {"url": site.url, **STATIC}))
        await until(lambda: any(home.glob("tasks/*/meta.json")) or starting.done())
        await engine.close()
        try:
            task_id = (await starting).task_id
        except ShuttingDown:
            task_id = next(home.glob("tasks/*/meta.json")).parent.name
    record = Ledger(home / "tasks").read(task_id)
    assert isinstance(record, TaskRecord)
    assert record.status == Status.CANCELLED
