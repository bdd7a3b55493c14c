"""A page with thousands of links: all of them are followed, or counted where they are too many."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.egress_policy import Policy
from engine.kinds.crawl.crawl import crawl
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.pages import fetch
from engine.pages.extract import extract_now
from engine.pages.fetch import Fetched, PageOptions
from engine.sample.site import Answer
from tests.support.memory_context import MemoryContext

LINKS = 5_017


def listing(number: int) -> str:
    links = "".join(f'<li><a href="/many/{n}">{n}</a></li>' for n in range(number))
    return f"<!doctype html><title>All</title><ul>{links}</ul>"


class Listed:
    """The wire's far end: a page of links, and a small page behind each."""

    async def fetch(self, url: str, options: Any, on_idle: Any = None) -> Fetched:
        html = listing(LINKS) if url.endswith("/all") else "<p>one</p>"
        return Fetched(url, url, 200, "text/html", html=html, engine="static")

    async def close(self) -> None:
        pass


async def test_a_page_of_5017_links_leads_to_5017_pages() -> None:
    @asynccontextmanager
    async def open_fetcher(engine: Any, args: Any) -> AsyncIterator[Any]:
        yield Listed()

    given = {"url": "http://site.test/all", "engine": "static", "delay_ms": 0}
    args = parse_crawl({**given, "max_pages": 10_000, "respect_robots": False})
    ctx = MemoryContext()
    summary = (await crawl(args, ctx, open_fetcher)).summary()
    assert (summary["total_pages"], summary["stopped_by"]) == (LINKS + 1, "frontier")
    assert "links_over_limit" not in summary


async def test_links_beyond_the_limit_are_counted(site: Any) -> None:
    site.answers["/all"] = Answer(listing(LINKS).encode())
    session = BrowserSession()
    try:
        async with session.fetcher(FetcherOptions(Policy.for_start(site.url), pages=1)) as fetcher:
            whole = await fetcher.fetch(f"{site.url}/all", PageOptions())
            cut = await fetcher.fetch(f"{site.url}/all", PageOptions(max_links=5_000))
    finally:
        await session.aclose()
    found = extract_now(whole, "markdown")
    assert (len(found.links), found.links_found, found.links_over) == (LINKS, LINKS, 0)
    found = extract_now(cut, "markdown")
    assert (len(found.links), found.links_found, found.links_over) == (5_000, LINKS, 17)


@pytest.mark.parametrize(("depth", "counted"), [(1, 17), (0, None)])
async def test_links_beyond_the_limit_are_counted_where_they_would_be_followed(
    monkeypatch: pytest.MonkeyPatch, depth: int, counted: int | None
) -> None:
    monkeypatch.setattr("engine.pages.extract.MAX_LINKS", 5_000)

    @asynccontextmanager
    async def open_fetcher(engine: Any, args: Any) -> AsyncIterator[Any]:
        yield Listed()

    given = {"url": "http://site.test/all", "engine": "static", "delay_ms": 0}
    more = {"max_pages": 1, "max_depth": depth, "respect_robots": False}
    ctx = MemoryContext()
    summary = (await crawl(parse_crawl({**given, **more}), ctx, open_fetcher)).summary()
    assert ctx.pages[0]["links_over_limit"] == 17
    assert summary.get("links_over_limit") == counted
    assert fetch.MAX_LINKS >= 20_000
