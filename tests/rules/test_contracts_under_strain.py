"""A crawl with a locked contract continues, ends correctly, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from engine.contracts.contract_store import Contracts
from engine.model.errors import LockTimeout
from engine.model.records import CONTRACTS_FOLDER, ErrorInfo, Status, TaskId, TaskRecord
from tests.rules.contract_bench import FORCE, THREE, Bench
from tests.support.engines import until

HELD_S = 180
HANGS: tuple[dict[str, Any], ...] = ({},)


@contextmanager
def held(bench: Bench, task_id: str) -> Iterator[threading.Event]:
    """The contract's lock, held by a thread that does not move until it is told to."""
    taken, free = threading.Event(), threading.Event()

    def hold() -> None:
        record_store = Contracts(bench.root.parent, lambda: 0).record_store
        with record_store.hold(bench.link(task_id)):
            taken.set()
            free.wait(HELD_S)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(60)
    try:
        yield free
    finally:
        free.set()
        holder.join()


def pages_kept(bench: Bench, task_id: str) -> int:
    return sum(1 for _ in bench.ledger.raw_pages(task_id))


def record_of(bench: Bench, task_id: TaskId) -> TaskRecord:
    record = bench.ledger.read(task_id)
    assert isinstance(record, TaskRecord)
    return record


async def test_a_locked_contract_does_not_stop_its_crawl(bench: Bench) -> None:
    task_id = bench.submit("run-1", {"expected_total": 3})
    with held(bench, task_id) as free:
        await until(lambda: pages_kept(bench, task_id) == 3)
        free.set()
        await bench.executor.join(task_id)
    assert record_of(bench, task_id).status == Status.COMPLETED
    assert bench.contract(task_id).completed == tuple(page["url"] for page in THREE)


async def test_a_locked_contract_does_not_delay_a_cancel(bench: Bench) -> None:
    task_id = bench.submit("run-1", {"expected_total": 3}, (*THREE, *HANGS))
    with held(bench, task_id):
        await until(lambda: pages_kept(bench, task_id) == 3)
        began = time.monotonic()
        await asyncio.to_thread(bench.cancel, task_id)
        await bench.executor.join(task_id)
        took_s = time.monotonic() - began
    assert took_s < HELD_S - 60, "it waited for the contract"  # a rig holds the two seconds
    assert record_of(bench, task_id).status == Status.CANCELLED
    assert bench.ends(task_id) == ["cancelled"]


async def test_pages_are_recorded_after_a_contract_lock_ends(bench: Bench) -> None:
    task_id = bench.submit("run-1", pages=(*THREE, *HANGS))
    with held(bench, task_id):
        await until(lambda: pages_kept(bench, task_id) == 3)
    await asyncio.to_thread(bench.cancel, task_id)
    bench.executor.nudge(task_id)
    await bench.executor.join(task_id)
    assert bench.contract(task_id).completed_total == 3


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_contract_that_is_held_at_the_end_fails_no_crawl(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """It is asked again and again, as a full disk is; a cancel ends that, too."""
    monkeypatch.setattr("engine.contracts.crawl_contract.TIMEOUT_S", 0.1)
    monkeypatch.setattr("engine.execution.runner.AGAIN_S", 0.05)
    task_id = bench.submit("run-1", {"expected_total": 3})
    with held(bench, task_id):
        await until(lambda: bench.executor.trouble)
        assert pages_kept(bench, task_id) == 3
        assert not record_of(bench, task_id).is_terminal
        if cancelled:
            await asyncio.to_thread(bench.cancel, task_id)
            await bench.executor.join(task_id)
    await bench.executor.join(task_id)
    ended = Status.CANCELLED if cancelled else Status.COMPLETED
    assert record_of(bench, task_id).status == ended


async def test_a_crawl_whose_contract_is_gone_keeps_everything_and_says_so(bench: Bench) -> None:
    task_id = bench.submit("run-1", pages=(*THREE, *HANGS))
    await until(lambda: pages_kept(bench, task_id) == 3)
    bench.goals._contract_store.forget(bench.link(task_id))
    with pytest.raises(Exception, match="contract"):
        bench.force(task_id)
    await asyncio.to_thread(bench.cancel, task_id)
    await bench.executor.join(task_id)
    again = bench.submit("run-2", {"expected_total": 3})
    (bench.root.parent / CONTRACTS_FOLDER / f"{bench.link(again)}.json").unlink()
    await bench.executor.join(again)
    record = record_of(bench, again)
    assert record.status == Status.FAILED
    assert record.error is not None
    assert pages_kept(bench, again) == 3


async def test_only_named_items_count_however_they_are_spelled_or_reached(bench: Bench) -> None:
    items = ["http://x.test/a?two=2&one=1", "http://x.test/b", "http://X.test:80/c#top"]
    pages = (
        {"url": "http://x.test/"},
        {"url": "http://x.test/news"},
        {"url": "http://x.test/a?one=1&two=2"},
        {"url": "http://x.test/old", "final_url": "http://x.test/b"},
        {"url": "http://x.test/c", "error": "HTTP 500"},
    )
    task_id = bench.submit("run-1", {"items": items}, pages)
    await bench.executor.join(task_id)
    found = bench.contract(task_id)
    assert found.completed == ("http://x.test/a?two=2&one=1", "http://x.test/b")
    assert [(one.item, one.reason) for one in found.failed] == [("http://x.test/c", "HTTP 500")]
    assert record_of(bench, task_id).status == Status.COMPLETED
    fewer = bench.submit("run-2", {"items": items}, pages[:4])
    await bench.executor.join(fewer)
    assert record_of(bench, fewer).status == Status.FAILED  # four pages, but only two of the items


async def test_forcing_before_the_first_page_gives_an_empty_result(bench: Bench) -> None:
    task_id = bench.submit("run-1", pages=HANGS)
    await until(lambda: record_of(bench, task_id).status == Status.RUNNING)
    await asyncio.to_thread(bench.force, task_id)
    await bench.executor.join(task_id)
    record = record_of(bench, task_id)
    assert record.status == Status.COMPLETED
    assert json.loads((bench.root / task_id / "result.json").read_bytes())["pages"] == []
    assert bench.contract(task_id).forced is not None


def test_an_unlinked_contract_starts_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a PENDING task would stay that nobody runs."""

    def create(link: str | None) -> TaskRecord:
        record = bench.ledger.create("crawl", {})
        monkeypatch.setattr(Contracts, "hold", locked)
        return record

    def locked(self: Contracts, contract_id: str, **_: object) -> Any:
        raise LockTimeout(task_id=contract_id, waited_s=15)

    assert bench.goals.accept("crawl", {"expected_total": 3}, None, create).is_live


async def test_a_force_precedes_an_exceeded_budget(bench: Bench) -> None:
    task_id = bench.submit("run-1", pages=HANGS)
    await until(lambda: record_of(bench, task_id).status == Status.RUNNING)
    bench.others.completing.task(
        task_id, Status.COMPLETED, FORCE, lambda: record_of(bench, task_id)
    )
    over = ErrorInfo(message="over", code="BUDGET_EXCEEDED")
    ended = bench.ledger.finish(task_id, Status.FAILED, error=over)
    assert (ended.status, ended.error) == (Status.COMPLETED, None)
    await bench.executor.join(task_id)
