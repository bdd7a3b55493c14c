"""Temporary failures are retried, permanent ones are not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.egress_policy import Policy
from engine.kinds.crawl.crawl import crawl
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.kinds.crawl.frontier import Frontier, Visit
from engine.model.addresses import Address, address_of
from engine.model.errors import AddressBlocked, BrowserGone, PageError
from engine.model.listening import close_server
from engine.pages import fetch
from engine.pages.fetch import Failure, Fetched
from engine.pages.static_engine import open_static
from tests.support.memory_context import MemoryContext

PAGES = 60
TROUBLES = ("500", "503", "429", "reset", "half", "silent", "408")


class Unsteady:
    """A site of linked pages whose first answer may fail; `troubles` says how, by path."""

    def __init__(self, troubles: dict[str, str], times: int = 1) -> None:
        self.troubles, self.times = troubles, times
        self.hits: Counter[str] = Counter()
        self.held = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Unsteady:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self.held.set()
        await close_server(self._server)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split()[1].decode()
            self.hits[path] += 1
            trouble = self.troubles.get(path) if self.hits[path] <= self.times else None
            if trouble == "silent":
                await self.held.wait()
            elif trouble == "half":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
                writer.write(b"Content-Length: 9999\r\n\r\n<p>The first half.")
                await writer.drain()
            elif trouble in ("empty 503", "empty 404"):
                writer.write(_answer(int(trouble[-3:]), b""))
                await writer.drain()
            elif trouble == "later":
                writer.write(_answer(503, b"").replace(b"After: 0", b"After: 30"))
                await writer.drain()
            elif trouble != "reset":
                status = int(trouble or (404 if path == "/robots.txt" else 200))
                writer.write(_answer(status, _body(path)))
                await writer.drain()
            if trouble in ("reset", "half"):
                writer.transport.abort()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def _answer(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
    wait = "Retry-After: 0\r\n" if status in (429, 503) else ""
    return f"{head}{wait}Connection: close\r\n\r\n".encode() + body


def _body(path: str) -> bytes:
    numbers = range(1, PAGES) if path == "/" else ()
    links = "".join(f'<a href="/{n}">{n}</a> ' for n in numbers)
    return f"<!doctype html><title>{path}</title><p>This is {path}.</p>{links}".encode()


def some_trouble() -> dict[str, str]:
    """One page of ten, and robots.txt and the start page beside them."""
    found = {f"/{n}": TROUBLES[n // 10 % len(TROUBLES)] for n in range(3, PAGES, 10)}
    return {**found, "/": "500", "/robots.txt": "503"}


async def crawled(site: Unsteady, ctx: MemoryContext | None = None, **more: Any) -> Any:
    given = {"url": f"{site.url}/", "engine": "static", "delay_ms": 0, "max_pages": 200, **more}
    args = parse_crawl(given)
    policy = Policy.for_start(args.url)
    ctx = ctx or MemoryContext()
    session = BrowserSession()

    @asynccontextmanager
    async def open_fetcher(engine: str, asked: Any) -> AsyncIterator[Any]:
        if engine == "static":
            async with open_static(policy, None, judge=asked.engine == "auto") as fetcher:
                yield fetcher
        else:
            async with session.fetcher(FetcherOptions(policy, pages=3)) as fetcher:
                yield fetcher

    try:
        return await crawl(args, ctx, open_fetcher), ctx
    finally:
        await session.aclose()


@pytest.mark.parametrize("engine", ["static", pytest.param("browser", marks=pytest.mark.thorough)])
async def test_of_a_site_whose_first_answers_fail_no_page_is_lost(engine: str) -> None:
    async with Unsteady(some_trouble()) as site:
        # The silent page takes all of it; a browser that stands still takes a part.
        timeout_ms = {"static": 8_000, "browser": 15_000}[engine]
        outcome, ctx = await crawled(site, engine=engine, timeout_ms=timeout_ms)
        urls = [page["url"] for page in ctx.pages]
        assert len(urls) == len(set(urls)) == PAGES
        assert [page for page in ctx.pages if "error" in page] == []
        assert (outcome.failed, outcome.stopped_by) == (0, "frontier")
        assert all(
            f"This is /{page['url'].rpartition('/')[2]}." in page["content"] for page in ctx.pages
        )
        tried = {page["url"].removeprefix(site.url) for page in ctx.pages if "attempts" in page}
        assert all(site.hits[path] == 2 for path in site.troubles)
        # The HTTP client of the static engine makes one reset good by itself.
        assert {*site.troubles} - {"/33", "/robots.txt"} <= tried <= {*site.troubles}
        assert outcome.summary()["retried"] == len(tried)
        done = [units.done for units in ctx.progress]
        assert done == list(range(1, PAGES + 1))
        assert all(units.total is not None and units.done <= units.total for units in ctx.progress)


async def test_what_fails_every_time_is_kept_once_with_its_last_failure() -> None:
    async with Unsteady({"/3": "500", "/5": "reset"}, times=99) as site:
        outcome, ctx = await crawled(site, retries=3)
        failed = {page["url"].rpartition("/")[2]: page for page in ctx.pages if "error" in page}
        assert (failed["3"]["error"], failed["3"]["error_code"]) == ("HTTP 500", "http")
        assert (failed["3"]["attempts"], failed["5"]["attempts"]) == (4, 4)
        assert failed["5"]["error_code"] == "network"
        assert site.hits["/3"] == 4
        assert len(ctx.pages) == PAGES
        summary = outcome.summary()
        assert (summary["http_errors"], summary["not_loaded"], summary["retried"]) == (1, 1, 2)


@pytest.mark.parametrize("status", ["404", "403", "410"])
async def test_what_the_site_has_not_got_is_asked_for_once(status: str) -> None:
    async with Unsteady({"/3": status}, times=99) as site:
        _, ctx = await crawled(site)
        assert site.hits["/3"] == 1
        assert not any("attempts" in page for page in ctx.pages)


@pytest.mark.parametrize("engine", ["static", "browser"])
async def test_an_error_without_a_page_is_judged_by_its_status(engine: str) -> None:
    async with Unsteady({"/3": "empty 503", "/5": "empty 404"}) as site:
        _, ctx = await crawled(site, engine=engine, max_pages=8)
        pages = {page["url"].rpartition("/")[2]: page for page in ctx.pages}
        assert (pages["3"]["attempts"], "error" in pages["3"]) == (2, False)
        assert (site.hits["/5"], pages["5"]["error"], pages["5"]["status"]) == (1, "HTTP 404", 404)
        assert pages["5"]["error_code"] == "http"


async def test_without_retries_a_failure_is_final() -> None:
    async with Unsteady({"/3": "503"}) as site:
        outcome, _ = await crawled(site, retries=0)
        assert (site.hits["/3"], outcome.failed) == (1, 1)


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_page_that_is_tried_again_counts_once_for_max_pages(concurrency: int) -> None:
    async with Unsteady({f"/{n}": "500" for n in (1, 2, 3)}) as site:
        outcome, ctx = await crawled(site, max_pages=6, concurrency=concurrency)
        assert (len(ctx.pages), outcome.failed, outcome.stopped_by) == (6, 0, "max_pages")
        assert {"/1", "/2", "/3"} <= {page["url"].removeprefix(site.url) for page in ctx.pages}


async def test_a_retry_comes_after_the_rest_of_its_level() -> None:
    async with Unsteady({"/1": "500"}) as site:
        _, ctx = await crawled(site, concurrency=1)
        assert ctx.pages[-1]["url"] == f"{site.url}/1"


async def test_a_stop_during_a_wait_is_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, put_off = asyncio.Event(), Frontier.put_off

    def noticed(frontier: Frontier, visit: Visit) -> None:
        put_off(frontier, visit)
        waits.set()

    monkeypatch.setattr(Frontier, "put_off", noticed)
    async with Unsteady({"/1": "later"}) as site:
        ctx = MemoryContext()
        work = asyncio.create_task(crawled(site, ctx, max_depth=1))
        await waits.wait()
        ctx.stop()
        outcome, _ = await asyncio.wait_for(work, 25)  # the site asked for 30 s
        assert outcome.stopped_by == "cancelled"
        (last,) = (page for page in ctx.pages if page["url"] == f"{site.url}/1")
        assert last["error"] == "HTTP 503"
        assert "attempts" not in last  # it was made once


async def test_a_stop_keeps_many_waiting_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.kinds.crawl.crawl.KEPT_SINGLY", 3)
    monkeypatch.setattr(fetch, "_PAUSE_S", 60.0)
    monkeypatch.setattr(fetch, "_LONGEST_PAUSE_S", 60.0)
    async with Unsteady({f"/{n}": "500" for n in range(1, PAGES)}) as site:
        kept: list[int] = []
        ctx = MemoryContext(on_page=lambda _, units: kept.append(len(ctx.pages) - units.done))
        work = asyncio.create_task(crawled(site, ctx, host_pause=False))
        while len(site.hits) < PAGES + 1:  # with robots.txt
            await asyncio.sleep(0.01)
        ctx.stop()
        outcome, _ = await asyncio.wait_for(work, 50)
        assert len({page["url"] for page in ctx.pages}) == len(ctx.pages) == outcome.total_pages
        assert outcome.failed >= PAGES - 4  # those under way when it was stopped are no pages
        assert set(kept) == {0}  # what is counted was kept before


@pytest.mark.parametrize("kind", ["timeout", "connection", "network", "dns", "protocol"])
def test_a_failure_of_the_network_may_pass(kind: str) -> None:
    assert fetch.is_passing(PageError(kind, kind))


@pytest.mark.parametrize(
    "kind", ["blocked", "download", "redirects", "tls", "certificate", "crash", "memory", "auth"]
)
def test_a_failure_of_the_page_does_not_pass(kind: str) -> None:
    assert not fetch.is_passing(PageError(kind, kind))
    assert not fetch.is_passing(AddressBlocked("http://a/", "private address"))
    assert not fetch.is_passing(BrowserGone(url="http://a/"))


def test_an_answer_passes_by_its_status_alone() -> None:
    assert [n for n in range(200, 600) if fetch.is_passing_status(n)] == [
        *(408, 429),
        *range(500, 600),
    ]


def made(number: int) -> Address:
    found = address_of(f"http://site.test/{number}")
    assert found is not None
    return found


@given(st.data(), st.integers(1, 12))
def test_every_page_ends_once_however_often_it_is_put_off(data: st.DataObject, most: int) -> None:
    frontier = Frontier(5, 1_000, lambda _: True)
    frontier.start([Visit(made(0), 0)])
    ended: list[Visit] = []
    flying: list[Visit] = []
    began: set[str] = set()
    while not frontier.is_empty and (frontier.waiting or flying or len(began) < most):
        fresh = len(began) < most
        visit = frontier.take(fresh=fresh)
        if visit is not None:
            assert fresh or visit.address.key in began
            assert all(visit.depth <= one.depth + 1 for one in flying)
            began.add(visit.address.key)
            flying.append(visit)
        if flying and (visit is None or data.draw(st.booleans())):
            visit = flying.pop(data.draw(st.integers(0, len(flying) - 1)))
            if visit.tries < 2 and data.draw(st.booleans()):
                failure = Failure("HTTP 500", "http", 500)
                frontier.put_off(visit._replace(tries=visit.tries + 1, failure=failure))
                continue
            number = int(visit.address.url.rpartition("/")[2])
            frontier.add([made(3 * number + n) for n in (1, 2, 3)], visit.depth)
            frontier.done(visit)
            ended.append(visit)
    keys = [visit.address.key for visit in ended]
    assert len(keys) == len(set(keys)) == len(began)


def test_half_a_page_is_no_answer_to_keep_at_once() -> None:
    half = Fetched("http://a/", "http://a/", 200, html="<p>x", cut_off=True)
    assert fetch.passing_failure(half) is not None
    assert fetch.passing_failure(Fetched("http://a/", "http://a/", 200)) is None
