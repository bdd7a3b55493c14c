"""Workers that end in an orderly way: they leave, and are not lost, and no page is to blame."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from distributed import Security

from engine.cluster import worker_pool
from engine.cluster.cluster_address import ClusterAddress, cluster_address
from engine.cluster.page_records import BUNDLE, FETCH, HELLO, LEAVES
from engine.cluster.wire import Wire
from engine.cluster.worker_pool import WorkerPool
from engine.kinds.cluster_use import LOADS
from fixtures.site.site import Site
from tests.cluster.dask_peers import Cluster, Peer, cluster, message
from tests.cluster.test_bundles_on_workers import bundling
from tests.cluster.test_pages_on_workers import crawled, notes, once
from tests.cluster.test_worker_command import ROOT
from tests.support.engines import until
from tests.support.memory_context import MemoryContext
from tests.support.ports import free_port

PAGES = 12
LEFT = "Worker one left the cluster"


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the scheduler more often than a program does."""
    monkeypatch.setattr(worker_pool, "GREET_S", 60.0)
    monkeypatch.setattr(worker_pool, "LOOK_S", 0.05)
    monkeypatch.setattr(worker_pool, "LAST_PAUSE_S", 0.1)


async def leaves(_: dict[str, Any]) -> bytes:
    return message(LEAVES)


@asynccontextmanager
async def pooled(workers: Cluster) -> AsyncIterator[tuple[WorkerPool, list[str]]]:
    """A pool of the workers, which are ready, and its news."""
    news = list[str]()

    async def tell(note: str, **_: object) -> None:
        news.append(note)

    pool = WorkerPool(cluster_address(workers.address), 2, tell, None)
    async with pool.following():
        await until(lambda: {one.state for one in pool.views("c")} == {"ready"})
        news.clear()
        yield pool, news


async def test_pages_of_a_worker_that_leaves_load_on_another_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    async with cluster() as workers:
        one = await workers.add("one")
        await workers.add("two")
        load = one.operations[FETCH]

        async def fetch(asked: dict[str, Any]) -> bytes | None:
            if one.calls.count(FETCH) < 3:
                return await load(asked)
            one.operations[HELLO] = leaves
            return message(LEAVES)

        one.operations[FETCH] = fetch
        with Site(pages=PAGES) as site:
            context = await crawled(site.url, tmp_path, workers.address)
        assert once(context, PAGES)
        assert not [page for page in context.pages if "error" in page]
        assert [note for note in notes(context) if "loads pages" not in note] == [LEFT]


async def test_a_page_may_meet_more_leaving_workers_than_lost_ones(tmp_path: Path) -> None:
    context = MemoryContext()
    async with cluster() as workers:
        for number in range(LOADS + 1):
            await workers.add(f"leaving-{number}", **{FETCH: leaves})
        with Site(pages=1) as site:
            loading = asyncio.create_task(
                crawled(site.url, tmp_path, workers.address, context, max_pages=1)
            )
            await until(lambda: len([one for one in notes(context) if "left" in one]) > LOADS)
            await workers.add("last")
            await loading
    (page,) = context.pages
    assert (page.get("worker"), "error" in page) == ("last", False)


async def test_a_bundle_outlives_more_leaving_workers_than_lost_ones(tmp_path: Path) -> None:
    context = MemoryContext()
    async with cluster() as workers, bundling(tmp_path) as take:
        for number in range(LOADS + 1):
            await workers.add(f"leaving-{number}", **{BUNDLE: leaves})
        taking = asyncio.create_task(take("http://127.0.0.1:9/", workers.address, context))
        await until(lambda: taking.done() or "has no worker" in str(notes(context)))
        assert not taking.done()
        assert len([one for one in notes(context) if "left the cluster" in one]) == LOADS + 1
        taking.cancel()
        await asyncio.wait({taking})


async def test_a_worker_without_a_page_leaves_and_comes_back() -> None:
    async with cluster() as workers:
        one = await workers.add("one")
        async with pooled(workers) as (pool, news):
            workers.listed.clear()
            await one.leave()
            await until(lambda: [one.state for one in pool.views("c")] == ["left"])
            (view,) = pool.views("c")
            assert (view.reason, view.back_s) == ("", None)
            await until(lambda: not pool._workers)  # it is also not there, which is no news
            assert news == [LEFT]
            await one.start()
            workers.listed[one.address] = "one"
            await until(lambda: [one.state for one in pool.views("c")] == ["ready"])
            # One that ends without notice is lost.
            workers.listed.clear()
            await one.stop()
            await until(lambda: [one.state for one in pool.views("c")] == ["lost"])
            assert "was lost" in news[-1]


async def test_a_page_is_not_sent_to_a_worker_that_leaves() -> None:
    async with cluster() as workers:
        one = await workers.add("one")
        async with pooled(workers) as (pool, _):
            worker = pool.borrow()
            await workers.scheduler.stop()
            await one.leave()
            with pytest.raises(worker_pool.HasLeft):
                await pool.load(worker, b"", FETCH, 60.0)
            await pool.give_back(worker)
        assert FETCH not in one.calls


async def test_the_notice_of_a_worker_is_read_over_tls_after_its_end() -> None:
    security = Security.temporary()
    peer = Peer()
    peer.tls = security.get_listen_args("worker")["ssl_context"]
    await peer.start()
    try:
        there = ClusterAddress("tls", "127.0.0.1", peer.port)
        wire = await Wire.open(there, security.get_connection_args("client")["ssl_context"])
        await peer.leave()
        await until(wire._writer.is_closing)
        with pytest.raises(worker_pool.HasLeft):
            await worker_pool._called(wire, HELLO, {}, 60.0, 4_096)
    finally:
        await peer.close()


async def test_a_page_that_is_cancelled_before_its_request_leaves_no_connection() -> None:
    async with cluster() as workers:
        peer = await workers.add("one")
        wire = await Wire.open(cluster_address(peer.address), None)
        calling = asyncio.create_task(worker_pool._called(wire, HELLO, {}, 60.0, 4_096))
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait({calling})
        assert wire._writer.is_closing()
        assert HELLO not in peer.calls


def process(stack: ExitStack, *words: str) -> subprocess.Popen[str]:
    """A process of Python, which ends with the stack at the latest."""
    started = subprocess.Popen(
        [sys.executable, "-m", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    stack.callback(started.wait)
    stack.callback(started.kill)
    return started


OCTASK = ("engine.cli", "worker")
DASK = ("distributed.cli.dask_worker", "--preload", "engine.cluster.dask_worker", "--nworkers", "1")


@pytest.mark.timeout(600)
# On Windows a worker is ended with Ctrl-C, which a test without a console cannot send.
@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process without its handlers")
@pytest.mark.parametrize("words", [OCTASK, DASK], ids=["octask", "dask"])
@pytest.mark.parametrize("is_loading", [True, False], ids=["with a page", "without a page"])
async def test_a_worker_of_dask_leaves_when_it_is_asked_to_end(
    tmp_path: Path, words: tuple[str, ...], is_loading: bool
) -> None:
    context = MemoryContext()
    with ExitStack() as stack, Site(pages=PAGES) as site:
        port = str(stack.enter_context(free_port()))
        process(stack, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port)
        address = f"tcp://127.0.0.1:{port}"
        one = process(stack, *words, address, "--name", "one")
        url = f"{site.url}/hang" if is_loading else site.url
        crawl = crawled(url, tmp_path, address, context, delay_ms=30_000, timeout_ms=600_000)
        running = asyncio.create_task(crawl)
        await until(lambda: running.done() or (site.hits["/hang"] if is_loading else context.pages))
        one.send_signal(signal.SIGTERM)
        await until(lambda: LEFT in notes(context))
        await asyncio.to_thread(one.wait, 60)
        context.stop()
        await running
    assert not [note for note in notes(context) if "lost" in note]
