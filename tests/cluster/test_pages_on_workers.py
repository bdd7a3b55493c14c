"""Crawls whose pages load on workers: each page once, whatever workers do."""

from __future__ import annotations

import asyncio
import math
import pickle
from collections import Counter
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.cluster import cluster_pages, page_server, worker_pool
from engine.cluster.cluster_address import ClusterUnreachable
from engine.cluster.page_records import (
    FETCH,
    HELLO,
    PROTOCOL,
    Failed,
    Hello,
    PageReply,
    PageRequest,
    packed,
    unpacked,
)
from engine.cluster.wire import Wire
from engine.egress import egress_policy
from engine.egress.public_addresses import IPAddress
from engine.kinds import host_delay
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.errors import BrowserFailed, LedgerUnusable, NothingTaken
from engine.pages.fetch import Fetched
from fixtures.site.site import Site
from tests.cluster.dask_peers import HEAD, Answer, cluster, message
from tests.cluster.test_wire import pickled_frames
from tests.support.engines import until
from tests.support.memory_context import MemoryContext

PAGES = 12


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the scheduler and at lost workers more often than a program does.

    What a crowded machine may need longer for gets more time: the first answer of workers, which a
    crawl waits for, and the first page of a worker, which imports its engine.
    """
    monkeypatch.setattr(worker_pool, "GREET_S", 60.0)
    monkeypatch.setattr(page_server, "BUSY_S", 60.0)
    monkeypatch.setattr(worker_pool, "LOOK_S", 0.05)
    monkeypatch.setattr(worker_pool, "LAST_PAUSE_S", 0.1)
    monkeypatch.setattr(worker_pool, "AWAY_S", 0.2)
    monkeypatch.setattr(worker_pool, "WRONG_S", 600.0)


async def crawled(
    url: str, tmp_path: Path, address: str, context: MemoryContext | None = None, **given: Any
) -> MemoryContext:
    context = context or MemoryContext()
    kind = KINDS["crawl"]
    usual = {"engine": "static", "delay_ms": 0, "max_pages": PAGES, "retries": 0}
    tools = Tools(Settings.at(home=tmp_path), BrowserSession())
    assert kind.parse_here is not None
    args = kind.parse_here({"url": url, **usual, "cluster": address, **given}, tools)
    try:
        await kind.body(args, context, tools)
    finally:
        await tools.browser.aclose()
    return context


def notes(context: MemoryContext) -> list[str]:
    return [note for phase, note, _ in context.notes if phase == "cluster"]


def by_worker(context: MemoryContext) -> Counter[str]:
    return Counter(page.get("worker", "") for page in context.pages)


def once(context: MemoryContext, number: int = PAGES) -> bool:
    urls = {page["url"] for page in context.pages}
    return len(urls) == len(context.pages) == number


async def test_a_crawl_is_the_same_on_workers_as_here(tmp_path: Path) -> None:
    async with cluster() as workers:
        await workers.add("one")
        await workers.add("two")
        with Site(pages=PAGES) as site:
            there = await crawled(site.url, tmp_path, workers.address)
            here = await crawled(site.url, tmp_path, "none")
        assert set(by_worker(there)) == {"one", "two"}
        assert set(by_worker(here)) == {""}

        def known(context: MemoryContext) -> dict[str, dict[str, Any]]:
            varying = ("worker", "response_ms", "render_ms")
            return {
                page["url"]: {key: value for key, value in page.items() if key not in varying}
                for page in context.pages
            }

        assert known(there) == known(here)


async def test_robots_and_sitemaps_are_read_here(tmp_path: Path) -> None:
    async with cluster() as workers:
        urls = []
        peer = await workers.add("one")
        load = peer.operations[FETCH]

        async def noted(asked: dict[str, Any]) -> bytes | None:
            urls.append(unpacked(asked["page"], PageRequest, 2**20).url)
            return await load(asked)

        peer.operations[FETCH] = noted
        with Site(pages=PAGES) as site:
            await crawled(site.url, tmp_path, workers.address)
            assert site.hits["/robots.txt"] == 1
        assert len(urls) == PAGES
        assert not [url for url in urls if url.endswith("robots.txt")]


async def test_concurrency_counts_for_each_worker(tmp_path: Path) -> None:
    async with cluster() as workers:
        loading, most = 0, 0
        all_there = asyncio.Event()

        async def reply(asked: dict[str, Any]) -> bytes | None:
            nonlocal loading, most
            request = unpacked(asked["page"], PageRequest, 2**20)
            links = [f"{request.terms.start}{number}" for number in range(PAGES)]
            loading += 1
            most = max(most, loading)
            if loading == 6:
                all_there.set()
            if request.url != request.terms.start:
                await all_there.wait()
            loading -= 1
            html = "".join(f"<a href={link}>to</a>" for link in links)
            page = Fetched(request.url, request.url, 200, "text/html", html=html, engine="static")
            return message(packed(PageReply(page)))

        for name in ("one", "two"):
            await workers.add(name, **{FETCH: reply})
        url = "http://127.0.0.1:9/"
        context = await crawled(
            url, tmp_path, workers.address, concurrency=3, respect_robots=False, max_pages=13
        )
        assert most == 6
        assert once(context, 13)


async def bombs(_: dict[str, Any]) -> bytes | None:
    return pickled_frames()


async def hangs_up(_: dict[str, Any]) -> bytes | None:
    return None


async def too_much(_: dict[str, Any]) -> bytes | None:
    return HEAD.pack(16 + 2**40, 1, 2**40) + b"a" * 100_000


async def another_page(_: dict[str, Any]) -> bytes | None:
    page = Fetched("http://evil.test/", "http://evil.test/", 200, "text/html", engine="static")
    return message(packed(PageReply(page)))


async def rels_without_sense(asked: dict[str, Any]) -> bytes | None:
    url = unpacked(asked["page"], PageRequest, 2**20).url
    page = Fetched(url, url, 200, "text/html", html="<p>", links=[url], link_rels="x")
    page.engine = "static"
    return message(packed(PageReply(page)))


async def many_tiny_lists(_: dict[str, Any]) -> bytes | None:
    return message([[]] * 100_000)


async def nonsense(_: dict[str, Any]) -> bytes | None:
    return message({"a": 1})


async def pickle_in_a_record(_: dict[str, Any]) -> bytes | None:
    return message(pickle.dumps({"a": 1}))


@pytest.mark.parametrize(
    "manners",
    [
        *(bombs, hangs_up, too_much, another_page, rels_without_sense, many_tiny_lists, nonsense),
        pickle_in_a_record,
    ],
)
async def test_a_worker_that_misbehaves_is_put_aside_and_its_pages_go_to_another(
    tmp_path: Path, manners: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster() as workers:
        monkeypatch.setattr(worker_pool, "AWAY_S", 600.0)
        bad = await workers.add("bad", **{FETCH: manners})
        await workers.add("good")
        with Site(pages=PAGES) as site:
            context = await crawled(site.url, tmp_path, workers.address, concurrency=1)
        assert by_worker(context) == {"good": PAGES}
        assert once(context)
        assert not [page for page in context.pages if "error" in page]
        assert bad.calls.count(FETCH) == 1
        assert [note for note in notes(context) if note.startswith("Worker bad was ")]


async def test_a_worker_that_drips_is_given_up_in_the_time_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster() as workers:
        usual_s = cluster_pages.MARGIN_S
        monkeypatch.setattr(cluster_pages, "MARGIN_S", -29.0)  # a page has 30 s
        monkeypatch.setattr(worker_pool, "AWAY_S", 600.0)
        never = asyncio.Event()

        async def drips(_: dict[str, Any]) -> bytes | None:
            await never.wait()
            return None

        bad = await workers.add("bad", **{FETCH: drips})
        with Site(pages=PAGES) as site:
            running = asyncio.create_task(
                crawled(site.url, tmp_path, workers.address, context := MemoryContext())
            )
            await until(lambda: [note for note in notes(context) if "no answer within" in note])
            # The others get the time that a crowded machine needs.
            monkeypatch.setattr(cluster_pages, "MARGIN_S", usual_s)
            workers.listed.pop(bad.address)
            await bad.stop()
            await workers.add("good")
            await running
        assert by_worker(context) == {"good": PAGES}


async def test_a_page_whose_workers_are_lost_three_times_is_a_failed_page(tmp_path: Path) -> None:
    async with cluster() as workers:
        peer = await workers.add("one", **{FETCH: hangs_up})
        with (
            Site(pages=PAGES) as site,
            pytest.raises(NothingTaken, match="the worker one was lost"),
        ):
            await crawled(site.url, tmp_path, workers.address, context := MemoryContext())
        (page,) = context.pages
        assert page["error_code"] == "worker"
        assert peer.calls.count(FETCH) == 3


async def test_no_worker_is_said_once_and_waited_for(tmp_path: Path) -> None:
    async with cluster() as workers:
        with Site(pages=PAGES) as site:
            running = asyncio.create_task(
                crawled(site.url, tmp_path, workers.address, context := MemoryContext())
            )
            await until(lambda: notes(context))
            await until(lambda: workers.scheduler.calls.count("identity") > 5)
            assert len(notes(context)) == 1
            assert "has no worker at the moment: it lists none" in notes(context)[0]
            assert notes(context)[0] in {units.message for units in context.progress}
            await workers.add("late")
            await running
        assert by_worker(context) == {"late": PAGES}


async def test_the_wait_for_a_worker_can_be_stopped(tmp_path: Path) -> None:
    async with cluster() as workers:
        with Site(pages=PAGES) as site:
            running = asyncio.create_task(
                crawled(site.url, tmp_path, workers.address, context := MemoryContext())
            )
            await until(lambda: notes(context))
            context.stop()
            await running
        assert context.pages == []


async def test_an_event_that_cannot_be_written_ends_the_wait_for_a_worker(tmp_path: Path) -> None:
    class Full(MemoryContext):
        async def log(self, phase: str, note: str, **data: object) -> None:
            await super().log(phase, note, **data)
            if "does not answer" in note:
                raise LedgerUnusable(path="here", reason="the disk is full")

    async with cluster() as workers:
        with Site(pages=PAGES) as site:
            running = asyncio.create_task(
                crawled(site.url, tmp_path, workers.address, context := Full())
            )
            await until(lambda: notes(context))
            await workers.scheduler.stop()
            with pytest.raises(LedgerUnusable, match="the disk is full"):
                await running


async def test_a_crawl_goes_on_without_its_scheduler_and_finds_it_again(tmp_path: Path) -> None:
    async with cluster() as workers:
        await workers.add("one")
        going = asyncio.Event()

        def on_page(page: dict[str, Any], _: object) -> None:
            going.set()

        context = MemoryContext(on_page=on_page)
        with Site(pages=1_000) as site:
            running = asyncio.create_task(
                crawled(
                    site.url,
                    tmp_path,
                    workers.address,
                    context,
                    max_pages=1_000,
                    max_depth=100,
                    delay_ms=20,
                )
            )
            await going.wait()
            await workers.scheduler.stop()
            await until(lambda: [note for note in notes(context) if "known workers go on" in note])
            before = len(context.pages)
            await until(lambda: len(context.pages) > before + 5)
            await workers.scheduler.start()
            await until(lambda: [note for note in notes(context) if "answers again" in note])
            context.stop()
            await running
        assert not [page for page in context.pages if "error" in page]


async def test_a_worker_that_dies_under_its_pages_loses_none(tmp_path: Path) -> None:
    async with cluster() as workers:
        dying = await workers.add("dying")
        await workers.add("other")
        load = dying.operations[FETCH]
        dead: list[asyncio.Future[None]] = []

        async def dies_with_a_page(asked: dict[str, Any]) -> bytes | None:
            if dying.calls.count(FETCH) <= 2:
                return await load(asked)
            if not dead:
                workers.listed.pop(dying.address)
                dead.append(asyncio.ensure_future(dying.stop()))
            await asyncio.Event().wait()
            return None

        dying.operations[FETCH] = dies_with_a_page
        context = MemoryContext()
        with Site(pages=60) as site:
            given = {"max_pages": 60, "max_depth": 100}
            await crawled(site.url, tmp_path, workers.address, context, **given)
        await asyncio.gather(*dead)
        assert once(context, 60)
        assert not [page for page in context.pages if "error" in page]
        assert [note for note in notes(context) if note.startswith("Worker dying was lost")]


async def test_workers_of_another_program_and_version_get_no_page(tmp_path: Path) -> None:
    async with cluster() as workers:

        async def older(_: dict[str, Any]) -> bytes:
            return message(packed(Hello(PROTOCOL + 1, "7.1", "older", 4)))

        plain = await workers.add("plain")
        plain.operations.clear()
        old = await workers.add("older", **{HELLO: older})
        await workers.add("ours")
        with Site(pages=PAGES) as site:
            context = await crawled(site.url, tmp_path, workers.address)
        assert by_worker(context) == {"ours": PAGES}
        assert FETCH not in plain.calls + old.calls
        assert [note for note in notes(context) if "another version of this program (7.1)" in note]


async def test_no_browser_on_any_worker_ends_the_crawl_with_the_reason(tmp_path: Path) -> None:
    async with cluster() as workers:

        async def none(_: dict[str, Any]) -> bytes:
            return message(packed(PageReply(failed=Failed("browser", message="none is installed"))))

        await workers.add("one", **{FETCH: none})
        await workers.add("two", **{FETCH: none})
        with Site(pages=PAGES) as site, pytest.raises(BrowserFailed, match="none is installed"):
            await crawled(site.url, tmp_path, workers.address)


async def test_a_worker_without_room_is_asked_again(tmp_path: Path) -> None:
    async with cluster() as workers:
        peer = await workers.add("one")
        load = peer.operations[FETCH]

        async def busy_at_first(asked: dict[str, Any]) -> bytes | None:
            peer.operations[FETCH] = load
            return message(packed(PageReply(failed=Failed("busy"))))

        peer.operations[FETCH] = busy_at_first
        with Site(pages=PAGES) as site:
            context = await crawled(site.url, tmp_path, workers.address)
        assert by_worker(context) == {"one": PAGES}


async def test_no_room_for_a_while_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "BUSY_S", 0.01)
    monkeypatch.setattr(worker_pool, "ROOMLESS_S", 0.0)
    async with cluster() as workers:
        peer = await workers.add("one")
        load = peer.operations[FETCH]

        async def busy_at_first(asked: dict[str, Any]) -> bytes | None:
            if peer.calls.count(FETCH) < 5:
                return message(packed(PageReply(failed=Failed("busy"))))
            return await load(asked)

        peer.operations[FETCH] = busy_at_first
        with Site(pages=PAGES) as site:
            context = await crawled(site.url, tmp_path, workers.address)
        assert by_worker(context) == {"one": PAGES}
        assert len([note for note in notes(context) if "have no room" in note]) == 1


class Turns(MemoryContext):
    """A context whose clock stands still, and which notes the turns of pages instead of waiting."""

    def __init__(self) -> None:
        super().__init__(monotonic=lambda: 0.0)
        self.turns_s: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.turns_s.append(seconds)
        await asyncio.sleep(0)


async def test_pages_that_waited_for_workers_keep_the_delay_of_their_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_delay, "LOOK_S", math.inf)  # the clock stands still: no turn is freed
    async with cluster() as workers:
        urls: list[str] = []
        is_slow = True

        async def reply(asked: dict[str, Any]) -> bytes | None:
            request = unpacked(asked["page"], PageRequest, 2**20)
            urls.append(request.url)
            if is_slow and request.url != request.terms.start:
                await asyncio.Event().wait()
            html = "".join(f"<a href=/{number}>to</a>" for number in range(8))
            page = Fetched(request.url, request.url, 200, "text/html", html=html, engine="static")
            return message(packed(PageReply(page)))

        peers = [await workers.add(name, **{FETCH: reply}) for name in ("one", "two")]
        given: dict[str, Any] = {"respect_robots": False, "concurrency": 4, "max_pages": 9}
        running = asyncio.create_task(
            crawled(
                "http://127.0.0.1:9/",
                tmp_path,
                workers.address,
                context := Turns(),
                delay_ms=1_000,
                **given,
            )
        )
        await until(lambda: len(urls) == 9)
        for peer in peers:
            await peer.stop()
        await until(lambda: [note for note in notes(context) if "has no worker" in note])
        is_slow = False
        urls.clear()
        before = len(context.turns_s)
        for peer in peers:
            await peer.start()
        await running
        assert once(context, 9)
        assert len(urls) == 8
        again_s = context.turns_s[before:]
        assert len(again_s) >= 8
        assert again_s == [again_s[0] + number for number in range(len(again_s))]


async def test_workers_without_a_browser_do_not_count_against_a_page(tmp_path: Path) -> None:
    async with cluster() as workers:

        async def none(_: dict[str, Any]) -> bytes:
            return message(packed(PageReply(failed=Failed("browser", message="none is installed"))))

        async def rendered(asked: dict[str, Any]) -> bytes:
            request = unpacked(asked["page"], PageRequest, 2**20)
            page = Fetched(request.url, request.url, 200, "text/html", html="<p>x")
            page.engine = "browser"
            return message(packed(PageReply(page)))

        for name in ("a", "b", "c"):
            await workers.add(name, **{FETCH: none})
        await workers.add("d", **{FETCH: rendered})  # of equal ones the last to be asked
        given: dict[str, Any] = {"engine": "browser", "respect_robots": False, "max_pages": 1}
        context = await crawled("http://127.0.0.1:9/", tmp_path, workers.address, **given)
        assert by_worker(context) == {"d": 1}
        assert not [page for page in context.pages if "error" in page]


async def test_a_silent_worker_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "GREET_S", 0.05)
    # The time limit of a connection is the default of a parameter.
    monkeypatch.setattr(Wire.__dict__["open"].__func__, "__defaults__", (600.0,))
    gone: list[str] = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # the greeting, and the end of the connection
        gone.append("given up")
        writer.close()

    def on_page(page: dict[str, Any], _: object) -> None:
        assert not gone

    async with cluster() as workers, await asyncio.start_server(silent, "127.0.0.1", 0) as mute:
        await workers.add("fine")
        workers.listed[f"tcp://127.0.0.1:{mute.sockets[0].getsockname()[1]}"] = "silent"
        context = MemoryContext(on_page=on_page)
        with Site(pages=3) as site:
            await crawled(site.url, tmp_path, workers.address, context, max_pages=3)
        assert by_worker(context) == {"fine": 3}


async def test_the_egress_policy_of_the_task_holds_on_workers(tmp_path: Path) -> None:
    async with cluster() as workers:
        await workers.add("one")
        with Site(pages=PAGES) as canary, Site(pages=PAGES) as site:
            given: dict[str, Any] = {
                "urls": [f"{site.url}/redirect/to?url={canary.url}/"],
                "max_depth": 0,
                "max_pages": 2,
            }
            context = await crawled(site.url, tmp_path, workers.address, **given)
            assert not canary.hits
        refused = [note for phase, note, _ in context.notes if phase == "egress"]
        assert refused == [f"Refused 127.0.0.1:{canary.port}: private address"]
        assert [page["error_code"] for page in context.pages if "error" in page] == ["blocked"]


class Names:
    """A name server whose answers change: the last one stays."""

    def __init__(self, *answers: str) -> None:
        self.answers = [ip_address(one) for one in answers]

    def __call__(self, _: str) -> asyncio.Future[tuple[IPAddress, ...]]:
        found: asyncio.Future[tuple[IPAddress, ...]] = asyncio.get_running_loop().create_future()
        found.set_result((self.answers.pop(0) if len(self.answers) > 1 else self.answers[0],))
        return found


async def test_a_public_start_whose_name_becomes_private_is_refused_on_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(egress_policy, "look_up", Names("93.184.216.34", "127.0.0.1"))
    async with cluster() as workers:
        await workers.add("one")
        with Site(pages=PAGES) as site:
            url = f"http://shop.test:{site.port}/"
            with pytest.raises(NothingTaken, match="private address"):
                await crawled(url, tmp_path, workers.address, respect_robots=False)
        assert not site.hits


async def test_a_private_start_with_a_name_is_loaded_on_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(egress_policy, "look_up", Names("127.0.0.1"))
    async with cluster() as workers:
        await workers.add("one")
        with Site(pages=PAGES) as site:
            context = await crawled(f"http://wiki.test:{site.port}/", tmp_path, workers.address)
        assert by_worker(context) == {"one": PAGES}


async def test_a_private_start_that_leads_elsewhere_on_workers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(egress_policy, "look_up", Names("10.0.0.7", "127.0.0.1"))
    async with cluster() as workers:
        await workers.add("one")
        with Site(pages=PAGES) as site:
            url = f"http://wiki.test:{site.port}/"
            with pytest.raises(NothingTaken, match="private address"):
                await crawled(url, tmp_path, workers.address, respect_robots=False)
        assert not site.hits


async def test_a_worker_that_is_too_slow_three_times_fails_the_page(tmp_path: Path) -> None:
    async def slow(_: dict[str, Any]) -> bytes:
        return message(packed(PageReply(failed=Failed("slow"))))

    async with cluster() as workers:
        peer = await workers.add("one", **{FETCH: slow})
        with Site(pages=PAGES) as site, pytest.raises(NothingTaken, match="in time"):
            await crawled(site.url, tmp_path, workers.address, context := MemoryContext())
        assert [page["error_code"] for page in context.pages] == ["worker"]
        assert peer.calls.count(FETCH) == 3


async def test_a_scheduler_that_does_not_answer_ends_the_task_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster() as workers:
        monkeypatch.setattr(worker_pool, "FIRST_S", 0.1)
        await workers.scheduler.stop()
        with pytest.raises(ClusterUnreachable, match="connection refused"):
            await crawled("http://127.0.0.1:9/", tmp_path, workers.address)
        await workers.scheduler.start()
        workers.scheduler.operations.clear()
        with pytest.raises(ClusterUnreachable, match="no scheduler of Dask"):
            await crawled("http://127.0.0.1:9/", tmp_path, workers.address)


async def test_a_sitemap_crawl_loads_its_pages_on_workers(tmp_path: Path) -> None:
    async with cluster() as workers:
        await workers.add("one")
        kind = KINDS["crawl_sitemap"]
        tools = Tools(Settings.at(home=tmp_path), BrowserSession())
        context = MemoryContext()
        with Site(pages=PAGES) as site:
            given = {"url": site.url, "engine": "static", "delay_ms": 0, "max_pages": 5}
            assert kind.parse_here is not None
            args = kind.parse_here({**given, "cluster": workers.address}, tools)
            await kind.body(args, context, tools)
        assert by_worker(context) == {"one": 5}


async def test_the_connections_to_workers_end_with_the_task(tmp_path: Path) -> None:
    async with cluster() as workers:
        peer = await workers.add("one")
        with Site(pages=PAGES) as site:
            await crawled(site.url, tmp_path, workers.address)
        await until(lambda: not peer.connections and not workers.scheduler.connections)
