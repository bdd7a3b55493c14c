"""Workers that answer but are of no use: without a way to the site, without room, about to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import dask.config
import pytest

from engine.cluster import cluster_connection, worker_pool
from engine.cluster.cluster_address import ClusterUnreachable, LocalClusterFailed
from engine.cluster.page_records import (
    FETCH,
    Failed,
    PageReply,
    PageRequest,
    Terms,
    packed,
    unpacked,
)
from engine.cluster.page_server import PageServer
from engine.pages.fetch import Fetched, PageOptions
from fixtures.site.site import Site
from tests.cluster.dask_peers import cluster, message
from tests.cluster.test_local_processes import left, tell, the_program
from tests.cluster.test_pages_on_workers import by_worker, crawled, notes, once, quick_looks

__all__ = ("quick_looks",)  # a fixture of each test here
MIB = 2**20
ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120
WORDS = "words of a page that needs no script " * 20


async def unreached(_: dict[str, Any]) -> bytes | None:
    return message(packed(PageReply(failed=Failed("page", "dns", "name not found"))))


async def test_a_worker_without_a_way_to_the_site_does_not_get_all_its_pages(
    tmp_path: Path,
) -> None:
    async with cluster() as workers:
        bad = await workers.add("bad", **{FETCH: unreached})
        await workers.add("good")
        with Site(pages=80) as site:
            context = await crawled(
                site.url, tmp_path, workers.address, concurrency=1, retries=2, max_pages=30
            )
            place = site.url.partition("://")[2]
        assert by_worker(context) == {"good": 30}
        assert once(context, 30)
        assert not [page for page in context.pages if "error" in page]
        assert bad.calls.count(FETCH) == worker_pool.MOST_UNREACHED
        note = f"Worker bad was put aside: it does not reach {place}, others do"
        assert note in notes(context)


async def test_a_site_that_no_worker_reaches_puts_none_aside(tmp_path: Path) -> None:
    async with cluster() as workers:
        peers = [await workers.add(name, **{FETCH: unreached}) for name in ("one", "two")]
        urls = [f"http://127.0.0.1:9/{number}" for number in range(8)]
        given: dict[str, Any] = {"urls": urls, "respect_robots": False, "host_pause": False}
        with pytest.raises(Exception, match="name not found"):
            await crawled("http://127.0.0.1:9/", tmp_path, workers.address, **given)
        assert sum(peer.calls.count(FETCH) for peer in peers) == 9


async def test_a_busy_worker_is_not_a_failed_load_of_the_static_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "BUSY_S", 0.01)
    engines = Counter[str]()

    async def reply(asked: dict[str, Any]) -> bytes | None:
        request = unpacked(asked["page"], PageRequest, MIB)
        engines[request.engine] += 1
        if engines.total() == 1:
            return message(packed(PageReply(failed=Failed("busy"))))
        html = f"<p>{WORDS}</p>"
        page = Fetched(request.url, request.url, 200, "text/html", html=html, engine="static")
        return message(packed(PageReply(page)))

    async with cluster() as workers:
        await workers.add("one", **{FETCH: reply})
        context = await crawled(
            "http://127.0.0.1:9/", tmp_path, workers.address, engine="auto", respect_robots=False
        )
    assert engines == {"static": 2}
    assert [page["engine_used"] for page in context.pages] == ["static"]


async def test_settings_that_require_encryption_hold_for_crawls(
    tmp_path: Path,
) -> None:
    with dask.config.set({"distributed.comm.require-encryption": True}):
        async with cluster() as workers:
            peer = await workers.add("one")
            with pytest.raises(ClusterUnreachable, match="require encryption"):
                await crawled("http://127.0.0.1:9/", tmp_path, workers.address)
            assert not peer.calls


async def test_a_worker_that_ends_says_that_it_has_no_room() -> None:
    server = PageServer("w", 1)
    async with server.running():
        pass
    url = "http://127.0.0.1:9/"
    request = PageRequest("one", Terms(url), "browser", url, PageOptions())
    reply = unpacked(await server.fetch(packed(request)), PageReply, MIB)
    assert reply.failed is not None
    assert reply.failed.what == "busy"


@pytest.mark.usefixtures(the_program.__name__)
async def test_a_worker_that_fails_to_start_leaves_none_that_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_connection, "START_S", 5.0)
    (tmp_path / "worker.plan").write_text("fail wait wait")
    with pytest.raises(LocalClusterFailed):
        async with cluster_connection.local_cluster(3, 1, None, tell):
            pass
    assert not left(tmp_path)


def test_a_worker_tells_why_it_does_not_reach_its_scheduler() -> None:
    with socket.socket() as nobody:  # bound, but it does not listen
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        worker = subprocess.Popen(
            [sys.executable, "-m", "engine.cli", "worker", address],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert worker.stderr is not None
        end = threading.Timer(LIMIT_S, worker.kill)
        end.start()
        try:
            lines = iter(worker.stderr.readline, "")
            began = next(lines)
            # A process that stands still for 10 s first tells that it got no connection in time.
            told = next(line for line in lines if "no connection within" not in line)
        finally:
            end.cancel()
            worker.kill()
            worker.communicate()
    assert began == f"Connecting to {address}; Ctrl-C ends\n"
    assert told == f"{address} cannot be reached: connection refused. This worker keeps trying\n"


def test_a_scheduler_that_ends_each_connection_is_tried_about_once_a_second() -> None:
    with socket.create_server(("127.0.0.1", 0)) as scheduler:
        scheduler.settimeout(LIMIT_S)
        worker = subprocess.Popen(
            [sys.executable, "-m", "engine.cli", "worker", address_of(scheduler)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.DEVNULL,
        )
        try:
            came_s: list[float] = []
            while len(came_s) < 4:
                scheduler.accept()[0].close()
                came_s.append(time.monotonic())
        finally:
            worker.kill()
            worker.wait()
    assert came_s[3] - came_s[0] > 2.0


def test_a_scheduler_that_comes_back_and_ends_each_connection_is_tried_as_seldom() -> None:
    from tests.cluster.test_worker_command import octask, told
    from tests.cluster.test_worker_command import scheduler as running_scheduler

    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        _, address = first.enter_context(running_scheduler({}))
        worker = stack.enter_context(octask("worker", address, "--json"))
        assert told(worker)["scheduler"] == address
        first.close()
        port = int(address.rpartition(":")[2])
        other = stack.enter_context(socket.create_server(("127.0.0.1", port)))
        other.settimeout(LIMIT_S)
        came_s: list[float] = []
        while len(came_s) < 6:  # the first may be of a heartbeat that had begun
            other.accept()[0].close()
            came_s.append(time.monotonic())
    assert came_s[-1] - came_s[0] > 2.0


async def test_a_scheduler_that_sends_its_workers_away_is_waited_for_as_seldom() -> None:
    from distributed import Scheduler

    from tests.cluster.test_worker_command import octask, told

    with contextlib.ExitStack() as stack:
        async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
            worker = stack.enter_context(octask("worker", scheduler.address, "--json"))
            assert (await asyncio.to_thread(told, worker))["scheduler"] == scheduler.address
        port = int(scheduler.address.rpartition(":")[2])
        other = stack.enter_context(socket.create_server(("127.0.0.1", port)))
        other.settimeout(LIMIT_S)
        came_s: list[float] = []
        while len(came_s) < 4:
            (await asyncio.to_thread(other.accept))[0].close()
            came_s.append(time.monotonic())
    assert came_s[-1] - came_s[0] > 2.0


def address_of(scheduler: socket.socket) -> str:
    return f"tcp://127.0.0.1:{scheduler.getsockname()[1]}"
