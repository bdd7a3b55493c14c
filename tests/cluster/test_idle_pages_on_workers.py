"""Pages of workers in which nothing happens: others load meanwhile, and every count ends at 0."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.core import Server

from engine.cluster import page_server, worker_pool
from engine.cluster.cluster_address import WorkerBusy, cluster_address
from engine.cluster.dask_worker import Engines
from engine.cluster.page_records import (
    FETCH,
    MOST_REPORTS,
    PageReply,
    PageRequest,
    Terms,
    packed,
    report_of,
    reported_state,
    unpacked,
)
from engine.cluster.page_server import PageServer
from engine.cluster.pool_worker import PoolWorker
from engine.cluster.wire import Wire, WireError
from engine.cluster.worker_pool import WorkerPool
from engine.kinds.crawl.concurrency import STAY_IDLE, Concurrency
from engine.model import machine_load
from engine.model.machine_load import most_tabs
from engine.pages.fetch import IDLE_STATES, Fetched, IdleState, PageOptions
from engine.sample.site import Answer, Request
from tests.cluster import dask_peers
from tests.cluster.dask_peers import cluster, message
from tests.cluster.test_pages_on_workers import crawled, once
from tests.support.engines import until
from tests.support.memory_context import MemoryContext
from tests.support.serving import served

LATE = "<!doctype html><div id=root></div><script>root.append('words')</script>"
LONG_MS = 600_000


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers answer as late as on a crowded machine, which has room for further tabs."""
    monkeypatch.setattr(worker_pool, "GREET_S", 60.0)
    monkeypatch.setattr(page_server, "BUSY_S", 60.0)
    monkeypatch.setattr(machine_load, "_memory", lambda: (16e9, 8e9))
    monkeypatch.setattr(machine_load, "ROOMY_CPU", 2.0)


def test_a_report_is_no_record() -> None:
    for state in IDLE_STATES:
        assert reported_state(report_of(state)) == state
    for other in (b"", b"leaves", b"idle ", packed(PageReply()), b"idle" * 9_999_999, "idle", None):
        assert reported_state(other) is None


# A worker's side.


def request(
    url: str, session: str = "one", *, reports: bool = True, settle_ms: int = LONG_MS // 2
) -> bytes:
    terms = Terms(url, pages=2, direct=True)
    options = PageOptions(timeout_ms=LONG_MS, settle_ms=settle_ms)
    return packed(PageRequest(session, terms, "browser", url, options, reports))


class LateSite:
    """Pages that scripts write, and the ones that were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.links = ""

    def answer(self, request: Request) -> Answer:
        if request.path == "/robots.txt":
            return Answer(b"", 404)
        self.asked.append(request.path)
        return Answer(f"{self.links}{LATE}".encode())


@pytest.fixture
def late() -> Any:
    site = LateSite()
    with served(site.answer) as url:
        yield site, url


@contextlib.asynccontextmanager
async def loading(server: PageServer) -> AsyncIterator[Callable[[bytes], list[IdleState]]]:
    """Let pages load, and cancel them at the end; each has a list of its states."""
    tasks: list[asyncio.Task[bytes]] = []

    def load(data: bytes) -> list[IdleState]:
        states: list[IdleState] = []
        tasks.append(asyncio.create_task(server.fetch(data, states.append)))
        return states

    try:
        yield load
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_another_page_has_the_room_of_an_idle_one(late: tuple[LateSite, str]) -> None:
    site, url = late
    server = PageServer("w", 2)
    async with server.running():
        async with loading(server) as load:
            states = [load(request(f"{url}/{number}")) for number in range(3)]
            await until(lambda: states[2] == ["idle"])
            # Each idle page makes room for one, up to the tabs of two pages at once.
            states += [load(request(f"{url}/{number}")) for number in range(3, 20)]
            await until(lambda: states.count(["idle"]) == most_tabs(2) - 2)
            await until(lambda: len(site.asked) == most_tabs(2))
        assert len(site.asked) == most_tabs(2)
        assert all(one in ([], ["idle", "over"]) for one in states)
        async with loading(server) as load:  # nothing is left of them
            states = [load(request(f"{url}/{number}", "two")) for number in range(3)]
            await until(lambda: states[2] == ["idle"])


@pytest.mark.thorough("memory")
@pytest.mark.parametrize("why", ["unasked", "memory", "processors"])
async def test_idle_pages_count_where_it_must_be(
    late: tuple[LateSite, str], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    site, url = late
    if why == "memory":
        monkeypatch.setattr(machine_load, "_memory", lambda: (16e9, 0.1e9))
    elif why == "processors":
        monkeypatch.setattr(machine_load, "ROOMY_CPU", -1.0)
    server = PageServer("w", 2)
    async with server.running(), loading(server) as load:
        states = [load(request(f"{url}/{number}", reports=why != "unasked")) for number in range(2)]
        await until(lambda: len(site.asked) == 2)
        monkeypatch.setattr(page_server, "BUSY_S", 1.5)
        third = unpacked(await server.fetch(request(f"{url}/3")), PageReply, 9_999)
        assert third.failed is not None
        assert third.failed.what == "busy"
    assert states == [[], []]


async def test_a_page_that_waits_for_room_goes_before_one_that_comes_later() -> None:
    slots, order = page_server._Slots(1), list[str]()
    await slots.take()

    async def load(name: str) -> None:
        await slots.take()
        order.append(name)
        slots.give_back()

    waiting = asyncio.create_task(load("first"))
    await asyncio.sleep(0)  # it waits now
    slots.give_back()
    await load("second")
    await waiting
    assert order == ["first", "second"]


def test_a_fetcher_that_ends_with_an_idle_page_leaves_no_count() -> None:
    slots, states = page_server._Slots(2), list[IdleState]()
    with contextlib.suppress(TimeoutError), slots.reporting(states.append) as record:
        assert record is not None
        record("idle")
        raise TimeoutError
    assert (states, slots._idle) == (["idle", "over"], 0)


def test_a_page_without_end_of_changes_is_reported_for_a_while() -> None:
    states: list[IdleState] = []
    with page_server._Slots(2).reporting(states.append) as record:
        assert record is not None
        for _ in range(MOST_REPORTS):
            record("idle")
            record("again")
    assert len(states) == MOST_REPORTS


async def test_dask_sends_the_states_of_a_page_before_its_reply(late: tuple[LateSite, str]) -> None:
    _, url = late
    server = PageServer("w", 2)
    worker = Server({})
    await worker.listen("tcp://127.0.0.1:0")
    asked = {"page": request(url, settle_ms=100)}
    try:
        async with server.running():
            Engines().add_handlers(worker, server)
            wire = await Wire.open(cluster_address(worker.address), None)
            for _ in range(2):  # the connection carries the next page
                said = [await wire.call(FETCH, asked, 60.0, 99_999)]
                while reported_state(said[-1]):
                    said.append(await wire.more(60.0, 99_999))
                *states, reply = said
                assert [reported_state(state) for state in states] in (["idle"], ["idle", "over"])
                fetched = unpacked(reply, PageReply, 99_999).fetched
                assert fetched is not None
                assert fetched.text == "words"
            wire.abort()
    finally:
        await worker.close()


# The engine's side.


class Worker:
    """A hand-made worker: each page waits for the next of these states, and then for its reply."""

    def __init__(self) -> None:
        self.steps: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def load(self, asked: dict[str, Any]) -> bytes | None:
        while reported_state(step := await self.steps.get()):
            asked["send"](step)
        return step


@contextlib.asynccontextmanager
async def one_worker(each: int) -> AsyncIterator[tuple[Worker, WorkerPool, PoolWorker]]:
    """A pool with one worker, which is lent for a page."""

    async def tell(_: str, **__: object) -> None: ...

    worker = Worker()
    async with cluster() as workers:
        await workers.add("one", **{FETCH: worker.load})
        pool = WorkerPool(cluster_address(workers.address), each, tell, None)
        async with pool.following(), pool.room():
            lent = pool.borrow()
            try:
                yield worker, pool, lent
            finally:
                await pool.give_back(lent)


def has_come(states: list[IdleState], number: int) -> bool:
    return len(states) == number


def room(pool: WorkerPool) -> int:
    """How many further pages the workers would take now."""
    lent = []
    with contextlib.suppress(WorkerBusy):
        while True:
            lent.append(pool.borrow())
    for worker in lent:
        worker.flying -= 1
        pool._flying -= 1
    return len(lent)


async def test_a_worker_has_room_for_another_page_while_one_is_idle() -> None:
    async with one_worker(2) as (worker, pool, lent):
        assert (pool.at_once, pool.most_open) == (2, most_tabs(2))
        states: list[IdleState] = []
        reply = message(b"the reply")
        loading = asyncio.create_task(pool.load(lent, b"", FETCH, 60.0, states.append))
        steps: list[tuple[IdleState, int]] = [("idle", 2), ("again", 1), ("idle", 2), ("over", 1)]
        for number, (state, further) in enumerate(steps, 1):
            worker.steps.put_nowait(report_of(state))
            await until(partial(has_come, states, number))
            assert (states[-1], room(pool)) == (state, further)
        worker.steps.put_nowait(reply)
        assert await loading == b"the reply"
        assert states == ["idle", "again", "idle", "over"]
        # Unasked reports change nothing, and the connection is used again.
        loading = asyncio.create_task(pool.load(lent, b"", FETCH, 60.0))
        for step in (report_of("idle"), reply):
            worker.steps.put_nowait(step)
        assert await loading == b"the reply"
        assert (room(pool), lent.idle_pages) == (1, 0)


async def test_idle_pages_make_room_up_to_a_limit() -> None:
    async with one_worker(2) as (_, pool, lent):
        lent.idle_pages = 1_000
        assert room(pool) == most_tabs(2) - 1
        lent.idle_pages = 0


async def test_who_waits_for_room_gets_that_of_a_page_that_becomes_idle() -> None:
    async with one_worker(2) as (worker, pool, lent), pool.room():
        pool.borrow()
        waiting = asyncio.create_task(pool.room().__aenter__())
        loading = asyncio.create_task(pool.load(lent, b"", FETCH, 60.0, lambda _: None))
        await asyncio.sleep(0)
        assert not waiting.done()
        worker.steps.put_nowait(report_of("idle"))
        await asyncio.wait_for(waiting, 60.0)
        worker.steps.put_nowait(message(b""))
        await loading


@pytest.mark.parametrize("end", [None, "cancel", "many"])
async def test_a_page_that_is_lost_while_it_is_idle_leaves_no_count(end: str | None) -> None:
    async with one_worker(2) as (worker, pool, lent):
        states: list[IdleState] = []
        loading = asyncio.create_task(pool.load(lent, b"", FETCH, 60.0, states.append))
        worker.steps.put_nowait(report_of("idle"))
        await until(lambda: states)
        if end == "cancel":
            loading.cancel()
            await asyncio.wait({loading})
        elif end == "many":
            for _ in range(MOST_REPORTS):
                worker.steps.put_nowait(report_of("idle"))
            assert reported_state(await loading) is not None, "refused as a record"
        else:
            worker.steps.put_nowait(None)
            with pytest.raises(WireError):
                await loading
        assert (states, lent.idle_pages) == (["idle", "over"], 0)


def test_further_pages_load_after_pages_that_stayed_idle_up_to_those_of_all_workers() -> None:
    workers: Any = SimpleNamespace(at_once=4, most_open=6)
    number = Concurrency(MemoryContext(), 2, workers)
    for _ in range(STAY_IDLE + 1):
        number.count_idle("idle")
        assert number.number == 4
        number.count_idle("over")
    number.count_idle("idle")
    assert number.number == 5
    number.count_idle("over")
    for wanted in (5, 6, 6):
        number.count_idle("idle")
        assert number.number == wanted


async def test_a_crawl_has_more_pages_open_than_its_workers_load_at_once(
    tmp_path: Path,
) -> None:
    loading: Counter[str] = Counter()
    most: dict[bool, int] = {True: 0, False: 0}
    begun, pages, wanted = 0, 60, 10
    all_there = asyncio.Event()

    def worker(name: str) -> dask_peers.Answer:
        async def load(asked: dict[str, Any]) -> bytes:
            nonlocal begun
            request = unpacked(asked["page"], PageRequest, 2**20)
            begun += 1
            loading[name] += 1
            is_early = begun <= STAY_IDLE
            most[is_early] = max(most[is_early], loading.total())
            assert loading[name] <= most_tabs(2)
            if loading.total() == wanted:
                all_there.set()
            asked["send"](report_of("idle"))
            if begun > STAY_IDLE + 2 * wanted:  # so many stayed idle to their end
                await all_there.wait()
            loading[name] -= 1
            html = "".join(f"<a href=/{number}>to</a>" for number in range(pages))
            links = [f"{request.terms.start}{number}" for number in range(pages)]
            found = Fetched(request.url, request.url, 200, "text/html", html=html, links=links)
            return message(packed(PageReply(found)))

        return load

    async with cluster() as workers:
        for name in ("one", "two"):
            await workers.add(name, **{FETCH: worker(name)})
        context = await crawled(
            *("http://127.0.0.1:9/", tmp_path, workers.address),
            engine="browser",
            concurrency=2,
            max_pages=pages,
            respect_robots=False,
        )
    assert once(context, pages)
    assert most[True] <= 4
    assert most[False] >= wanted
