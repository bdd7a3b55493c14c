"""Addresses without end, one page in many spellings, servers that ask for silence; no browser."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from engine.egress.egress_policy import Policy
from engine.kinds.crawl.crawl import crawl
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.kinds.crawl.frontier import is_repeating
from engine.kinds.host_delay import MAX_RETRY_AFTER_S
from engine.pages.fetch import pause_s
from engine.pages.static_engine import open_static
from fixtures.hostile.rules import ROBOTS
from fixtures.hostile.site import HostileSite
from tests.support.memory_context import MemoryContext


class Patient(MemoryContext):
    """A context whose pauses take no time and are written down; its clock knows of them."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        super().__init__(monotonic=lambda: sum(self.waited))

    async def pause(self, seconds: float) -> None:
        self.waited.append(seconds)


@pytest.fixture
def trapped():
    with HostileSite() as site:
        yield site


async def static(url, ctx=None, **more):
    args = parse_crawl(
        {"url": url, "engine": "static", "delay_ms": 0, "timeout_ms": 60_000, **more}
    )
    ctx = ctx or MemoryContext()

    @asynccontextmanager
    async def opener(engine, asked):
        async with open_static(Policy.for_start(args.url), asked.credentials) as fetcher:
            yield fetcher

    outcome = await crawl(args, ctx, opener)
    return outcome.summary(), {page["url"]: page for page in ctx.pages}


@pytest.mark.case("R62")
@pytest.mark.parametrize("path", ["/calendar/", "/session/", "/facets/", "/random/", "/deep/"])
async def test_a_trap_without_end_stops_at_the_most_pages_and_says_so(trapped, path):
    summary, pages = await static(trapped.url + path, max_pages=40, max_depth=100)
    if path == "/deep/":  # its path repeats itself: that is left alone before
        assert (summary["stopped_by"], summary["links_repeating"]) == ("frontier", 1)
        assert len(pages) < 10
    else:
        assert (summary["stopped_by"], summary["total_pages"]) == ("max_pages", 40)


@pytest.mark.case("R62")
@pytest.mark.parametrize("path", ["/calendar/", "/random/", "/facets/"])
async def test_a_trap_without_end_stops_at_its_depth_and_says_what_is_missing(trapped, path):
    summary, pages = await static(trapped.url + path, max_pages=1_000, max_depth=1)
    assert (summary["stopped_by"], summary["max_depth_reached"]) == ("frontier", 1)
    assert summary["links_too_deep"] >= 1
    assert len(pages) <= 11


@pytest.mark.case("R62")
async def test_patterns_keep_a_crawl_out_of_a_trap_and_count_what_they_kept_out(trapped):
    start = trapped.only("/calendar/", "/random/", "/safe/1")
    summary, pages = await static(start, exclude_patterns=["/calendar/**", "/random/**"])
    assert [url.removeprefix(trapped.url) for url in pages][1:] == ["/safe/1"]
    assert summary["links_outside"] == 2


@pytest.mark.parametrize(
    ("url", "repeats"),
    [
        ("http://h/a/a/a/a/a/", True),
        ("http://h/x/news/all/news/all/news/all/news/all/news/all", True),
        ("http://h/2026/1/1/1/1", False),
        ("http://h/1/2/3/4/5/6/7/8/9/10/11", False),
        ("http://h/find?from=/a/a/a/a/a/a/a", False),
        ("http://h/aaaaaaaaaaaaaaaaaaaaaaaa/a/b/c/d/e/f", False),
    ],
)
def test_a_path_that_says_the_same_five_times_in_a_row_repeats_itself(url, repeats):
    assert is_repeating(url) is repeats


@pytest.mark.case("R63")
@pytest.mark.parametrize(("path", "most"), [("/fragments/", 1), ("/spellings/", 3)])
async def test_spellings_of_one_page_are_taken_once(trapped, path, most):
    _, pages = await static(trapped.url + path, max_pages=100, max_depth=5)
    mine = [url for url in pages if url.startswith(trapped.url + path)]
    assert len(mine) <= most
    assert trapped.hits[path] == len(mine)


@pytest.mark.case("R76")
@pytest.mark.parametrize(
    ("name", "status", "waits_s"),
    [
        ("small", 429, 1.0),
        ("large", 503, MAX_RETRY_AFTER_S),
        ("far", 429, MAX_RETRY_AFTER_S),
        ("past", 429, 0.0),
        ("garbage", 503, None),
        ("negative", 503, None),
        ("none", 429, None),
    ],
)
async def test_a_busy_server_is_retried_up_to_the_cap(trapped, name, status, waits_s):
    ctx = Patient()
    url = f"{trapped.url}/busy/{name}"
    _, pages = await static(url, ctx, respect_robots=False, retries=1)
    assert pages[url]["error"] == f"HTTP {status}"
    assert pages[url]["status"] == status
    assert trapped.hits[f"/busy/{name}"] == 2
    # Without a time that is worth waiting for the crawl pauses by its own measure.
    assert sum(ctx.waited) == pytest.approx(waits_s or pause_s(1))


@pytest.mark.case("R61")
@pytest.mark.parametrize("name", sorted(set(ROBOTS) - {"slow"}))
async def test_no_robots_file_ends_a_crawl_or_keeps_it_for_long(name):
    with HostileSite(robots=name) as site:
        ctx = Patient()
        summary, pages = await static(site.only("/safe/1"), ctx)
        assert summary["total_pages"] == len(pages)
        closed = name in {"broken", "canary"}
        errors = {page.get("error", "") for page in pages.values()}
        assert (errors == {""}) is not closed, errors
        assert site.canary_hits == []
        assert max(ctx.waited, default=0.0) <= 30.0
