"""What an operator sees of the workers that crawls use."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.cluster import page_server, worker_pool
from engine.cluster.cluster_address import WorkerBusy, cluster_address
from engine.cluster.page_records import FETCH, HELLO
from engine.cluster.pool_worker import (
    RATE_S,
    Listed,
    PageRate,
    PoolWorker,
    WorkerFacts,
    listed_workers,
)
from engine.cluster.wire import Misbehaviour, WireError
from engine.cluster.worker_pool import NotReached, WorkerPool
from engine.model.cluster_workers import OpenClusters, WorkerView
from engine.model.records import Status
from engine.model.tally import Tally
from engine.service.engine import Engine
from fixtures.site.site import Site
from tests.cluster.dask_peers import cluster, message
from tests.support.engines import opened, until

SLOW_MS = 100


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the scheduler and at lost workers more often than a program does."""
    monkeypatch.setattr(worker_pool, "GREET_S", 60.0)  # which ends as soon as all have answered
    monkeypatch.setattr(page_server, "BUSY_S", 60.0)  # the first page imports its engine
    monkeypatch.setattr(worker_pool, "LOOK_S", 0.05)
    monkeypatch.setattr(worker_pool, "LAST_PAUSE_S", 0.1)


def views(engine: Engine) -> dict[str, WorkerView]:
    return {one.name: one for one in engine.cluster_workers() or ()}


async def test_the_workers_are_listed_while_a_crawl_uses_them(tmp_path: Path) -> None:
    async with cluster() as workers, opened(tmp_path) as engine:
        await workers.add("one")
        await workers.add("two")
        assert engine.cluster_workers() is None
        with Site(pages=1_000) as site:
            args = {"url": site.url, "engine": "static", "delay_ms": SLOW_MS, "max_pages": 1_000}
            record = await engine.requests.start("crawl", {**args, "cluster": workers.address})
            await until(lambda: sum(one.pages for one in views(engine).values()) >= 5)
            found = views(engine)
            assert set(found) == {"one", "two"}
            assert {one.cluster for one in found.values()} == {workers.address}
            assert {one.address for one in found.values()} == set(workers.listed)
            assert {(one.state, one.slots) for one in found.values()} == {("ready", 4)}
            await until(lambda: sum(one.pages_per_s for one in views(engine).values()) > 0)
            await engine.commands.cancel(record.task_id, None)
            await until(lambda: engine.cluster_workers() is None)


async def test_a_lost_worker_tells_why_and_when_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_pool, "AWAY_S", 600.0)
    monkeypatch.setattr(worker_pool, "MOST_AWAY_S", 600.0)
    async with cluster() as workers:
        peer = await workers.add("one")
        pool = pool_of(workers.address)
        async with pool.following():
            await until(lambda: [one.state for one in pool.views("c")] == ["ready"])
            await workers.scheduler.stop()  # it keeps its list: the worker is not forgotten
            worker = pool.borrow()
            await peer.stop()
            await pool.give_back(worker)
            with pytest.raises(WireError) as failed:
                await pool.load(worker, b"", FETCH, 60.0)
            await pool.lost(worker, failed.value)
            (lost,) = pool.views("c")
            assert lost.state == "lost"
            assert lost.reason
            assert lost.back_s is not None
            assert 0 < lost.back_s <= worker_pool.AWAY_S


async def test_a_worker_that_left_is_shown_as_lost_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster() as workers:
        peer = await workers.add("one")
        pool = pool_of(workers.address)
        async with pool.following():
            await until(lambda: [one.state for one in pool.views("c")] == ["ready"])
            await peer.stop()
            workers.listed.clear()
            await until(lambda: [one.state for one in pool.views("c")] == ["lost"])
            assert pool.views("c")[0].back_s is None
            await workers.add("one")  # another process of the same name
            await until(lambda: [one.state for one in pool.views("c")] == ["ready"])
            workers.listed.clear()
            monkeypatch.setattr(worker_pool, "GONE_S", -1.0)
            await workers.add("two")
            await until(lambda: "two" in {one.name for one in pool.views("c")})


async def test_workers_that_left_tell_of_a_scheduler_as_long_as_it_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster() as workers:
        peer = await workers.add("one")
        pool = pool_of(workers.address)
        async with pool.following():
            await peer.stop()
            workers.listed.clear()
            await until(lambda: [one.state for one in pool.views("c")] == ["lost"])
            await workers.scheduler.stop()
            await until(lambda: pool.is_scheduler_away)
            monkeypatch.setattr(worker_pool, "GONE_S", -1.0)
            assert [one.scheduler_away for one in pool.views("c")] == [True]
            await workers.scheduler.start()
            await until(lambda: not pool.views("c"))


async def test_a_worker_that_cannot_be_used_is_not_called_lost() -> None:
    async def other_version(_: dict[str, Any]) -> bytes:
        return message(b"no record")

    async with cluster() as workers:
        peer = await workers.add("odd")
        peer.operations[HELLO] = other_version
        pool = pool_of(workers.address)
        async with pool.following():
            await until(lambda: [one.state for one in pool.views("c")] == ["unusable"])
            assert pool.views("c")[0].reason.startswith("it sent")


async def test_a_lost_worker_is_tried_again_within_30_s_and_when_the_scheduler_is_back() -> None:
    async with cluster() as workers:
        await workers.add("one")
        pool = pool_of(workers.address)
        async with pool.following():
            await until(lambda: [one.state for one in pool.views("c")] == ["ready"])
            worker = pool.borrow()
            await pool.give_back(worker)
            for _ in range(1_100):  # 2.0 to that power is no number
                worker.is_live = True
                await pool.lost(worker, WireError("the connection ended"))
            (lost,) = pool.views("c")
            assert lost.back_s is not None
            assert worker_pool.AWAY_S < lost.back_s <= 30
            assert pool.at_once == 1
            worker.away_until_s += 3_600.0
            await workers.scheduler.stop()
            await until(lambda: [one.scheduler_away for one in pool.views("c")] == [True])
            await workers.scheduler.start()
            await until(lambda: [one.state for one in pool.views("c")] == ["ready"])
            await until(lambda: [one.scheduler_away for one in pool.views("c")] == [False])
            assert pool.at_once == 2


async def test_a_busy_worker_gets_no_page_for_a_short_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster() as workers:
        await workers.add("one")
        pool = pool_of(workers.address)
        async with pool.following(), asyncio.timeout(60):
            async with pool.room():
                worker = pool.borrow()
                monkeypatch.setattr(worker_pool, "BUSY_S", 3_600.0)
                monkeypatch.setattr(worker_pool, "MOST_BUSY_S", 3_600.0)
                await pool.busy(worker)
                await pool.give_back(worker)
                with pytest.raises(WorkerBusy):
                    pool.borrow()
            pool.answered(worker)
            monkeypatch.setattr(worker_pool, "BUSY_S", 0.05)
            await pool.busy(worker)
            assert worker.strikes == 0
            async with pool.room():  # nothing but the time ends the wait
                assert pool.borrow() is worker


async def test_a_connection_that_hangs_counts_as_time_of_the_page() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as mute:
        port = mute.sockets[0].getsockname()[1]
        worker = PoolWorker(cluster_address(f"tcp://127.0.0.1:{port}"), "mute")
        with pytest.raises(NotReached, match=r"within 0\.2 s"):
            await pool_of("tcp://127.0.0.1:1").load(worker, b"", FETCH, 0.2)


async def test_without_a_browser_is_a_state_of_its_own() -> None:
    async with cluster() as workers:
        await workers.add("one")
        pool = pool_of(workers.address)
        async with pool.following():
            await until(lambda: [one.state for one in pool.views("c")] == ["ready"])
            worker = pool.borrow()
            await pool.without_browser(worker, "none is installed")
            (view,) = pool.views("c")
            assert (view.state, view.reason) == ("no_browser", "none is installed")


def pool_of(address: str) -> WorkerPool:
    async def tell(_: str, **__: object) -> None:
        pass

    return WorkerPool(cluster_address(address), 2, tell, None)


@pytest.mark.parametrize(
    "told",
    [
        *({}, {"metrics": []}, {"metrics": {"memory": "1"}}),
        *({"metrics": {"memory": True}}, {"metrics": {"memory": -1}}, {"last_seen": "now"}),
        *({"metrics": {"memory": 2**63}}, {"last_seen": float("nan")}, {"last_seen": 1e300}),
        *({"metrics": {"memory": 1.5}}, {"last_seen": True}, {"last_seen": -(2**60)}),
    ],
)
def test_what_a_scheduler_may_not_tell_is_unknown(told: object) -> None:
    identity = {"workers": {"tcp://a:1": told}}
    (listed,) = listed_workers(msgspec.Raw(msgspec.msgpack.encode(identity))).values()
    assert listed == ("tcp://a:1", None, None)


@pytest.mark.parametrize(
    "identity",
    [
        *(None, [], {}, {"workers": []}, {"workers": {"tcp://a:1": []}}),
        {"workers": {f"tcp://a:{number}": {} for number in range(10_001)}},
    ],
)
def test_what_is_no_list_of_workers_is_refused(identity: object) -> None:
    with pytest.raises(Misbehaviour, match="no scheduler of Dask"):
        listed_workers(msgspec.Raw(msgspec.msgpack.encode(identity)))


def test_a_wrong_fact_of_a_listed_worker_is_unknown_and_the_others_are_read() -> None:
    entry = {"name": 7, "metrics": {"memory": [[]] * 9, "cpu": {}}, "last_seen": 5.5, "host": []}
    identity = {"workers": {"tcp://a:1": entry, "a" * 301: {}, "tcp://b:1": {"name": {}}}}
    assert listed_workers(msgspec.Raw(msgspec.msgpack.encode(identity))) == {
        "tcp://a:1": ("7", None, 5.5),
        "tcp://b:1": ("tcp://b:1", None, None),
    }


def test_memory_and_the_last_report_come_from_the_scheduler() -> None:
    facts = WorkerFacts()
    facts.read(Listed("w", 81_000_000, 1_700_000_000.5))
    first_s = facts.seen_s() or 0.0
    assert facts.memory_bytes == 81_000_000
    facts.read(Listed("w", None, 1_700_000_000.5))  # no new report
    again_s = facts.seen_s()
    assert again_s is not None
    assert again_s >= first_s


def test_the_rate_is_the_mean_of_the_last_seconds() -> None:
    rate = PageRate()
    for second in range(5):
        rate.add(1_000.0 + second)
        rate.add(1_000.5 + second)
    assert rate.per_s(1_004.9) == 10 / RATE_S
    assert rate.per_s(1_000.0 + RATE_S) == 8 / RATE_S  # the first second is over
    assert rate.per_s(2_000.0) == 0
    rate.add(2_000.5)
    assert rate.per_s(2_000.9) == 1 / RATE_S


def test_a_worker_of_two_crawls_is_one_worker() -> None:
    one = WorkerView("c", "tcp://a:1", "w", "ready", slots=4, loading=1, pages=5, pages_per_s=0.5)
    other = WorkerView("c", "tcp://a:1", "w", "lost", loading=2, pages=6, reason="why", back_s=3)
    apart = WorkerView("d", "tcp://a:1", "w", "ready")
    clusters = OpenClusters()
    assert clusters.workers() is None
    with clusters.used(lambda: [one]), clusters.used(lambda: [other, apart]):
        both, third = clusters.workers() or ()
        assert (both.state, both.reason, both.slots) == ("lost", "why", 4)
        assert (both.loading, both.pages, both.pages_per_s) == (3, 11, 0.5)
        assert third == apart
    with clusters.used(list):
        assert clusters.workers() == ()
    assert clusters.workers() is None


async def test_a_default_that_does_not_serve_a_crawl_is_told_by_one_event(tmp_path: Path) -> None:
    async with opened(tmp_path, cluster="tcp://127.0.0.1:9") as engine:
        with Site(pages=3) as site:
            args = {"url": site.url, "engine": "static", "delay_ms": 0, "archive": "warc"}
            record = await engine.requests.start("crawl", args)
            ended = await engine.tasks.wait(record.task_id)
        assert ended.status == Status.COMPLETED
        events = (await engine.tasks.events(record.task_id)).events
        said = [one.data or {} for one in events if one.kind == "log"]
        told = [one.get("note") for one in said if one.get("phase") == "cluster"]
        assert told == [
            "The pages load on this machine: the default cluster tcp://127.0.0.1:9 does not serve "
            "archive"
        ]


def test_a_result_counts_the_pages_of_each_worker() -> None:
    names: list[object] = ["b", "a", "b", "", 7, "x" * 65, None]
    tally = Tally({"url": "u", "worker": name} for name in names)
    summary = tally.outcome("**", 0, "frontier").summary()
    assert summary["workers"] == {"a": 1, "b": 2}
    assert "workers" not in Tally([{"url": "u"}]).outcome("**", 0, "frontier").summary()
