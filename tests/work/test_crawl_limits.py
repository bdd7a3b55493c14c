"""Limits of time and data: a crawl starts no further page, and says which one ended it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.kinds.context import Clock
from engine.kinds.crawl import crawl
from engine.sample.site import Answer, Request
from tests.support.engines import opened
from tests.support.late_clock import late_clock
from tests.support.serving import served

CROWD = "".join(f"<a href=/{number}>{number}</a>" for number in range(40))


async def result_of(
    home: Path, url: str, kind: str = "crawl", clock: Clock | None = None, **args: Any
) -> dict[str, Any]:
    given = {"url": url, "engine": "static", "max_pages": 100, "delay_ms": 0, **args}
    async with opened(home, clock=clock) as service:
        record = await service.requests.start(kind, given)
        ended = await service.tasks.wait(record.task_id, 150_000)
        assert ended.status == "COMPLETED", ended.error
    found = json.loads((home / "tasks" / record.task_id / "result.json").read_text())
    return dict(found)


class Site:
    """It counts requests, from one of which on the time of a crawl's limit can run."""

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self.asked = Counter[str]()
        self._answer = answer

    def answer(self, request: Request) -> Answer:
        self.asked[request.path] += 1
        return self._answer(request)

    def clock_from(self, path: str) -> Clock:
        return late_clock(lambda: self.asked[path])


def slow(request: Request) -> Answer:
    if request.path == "/robots.txt":
        return Answer(b"", 404)
    return Answer(CROWD.encode(), delay_s=1.0)


@pytest.mark.thorough("600000")
@pytest.mark.parametrize("delay_ms", [0, 600_000])
async def test_a_crawl_ends_at_its_time_limit(
    home: Path, monkeypatch: pytest.MonkeyPatch, delay_ms: int
) -> None:
    monkeypatch.setattr(crawl, "MINUTE_S", 5.0)
    site = Site(slow)
    with served(site.answer) as url:
        args: dict[str, Any] = {"max_minutes": 1, "delay_ms": delay_ms}
        found = await result_of(home, url, clock=site.clock_from("/"), **args)
    assert found["summary"]["stopped_by"] == "max_minutes"
    assert 1 <= len(found["pages"]) < 41
    assert not [page for page in found["pages"] if "error" in page]


async def test_a_page_that_waits_for_a_retry_keeps_its_failure_at_the_time_limit(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl, "MINUTE_S", 5.0)
    busy = Answer(b"busy", 503, headers=(("Retry-After", "300"),))
    first = Answer(b"<a href=/busy>busy</a>")
    site = Site(lambda request: busy if request.path == "/busy" else first)
    with served(site.answer) as url:
        args: dict[str, Any] = {"max_minutes": 1, "respect_robots": False}
        found = await result_of(home, url, clock=site.clock_from("/busy"), **args)
    assert [page.get("error") for page in found["pages"]] == [None, "HTTP 503"]
    assert found["summary"]["stopped_by"] == "max_minutes"


async def test_a_crawl_ends_at_its_limit_of_data(home: Path) -> None:
    with served(lambda _: Answer(CROWD.encode())) as url:
        found = await result_of(home, url, max_bytes=5 * len(CROWD), concurrency=1)
    assert found["summary"]["stopped_by"] == "max_bytes"
    assert len(found["pages"]) == 5


async def test_a_crawl_within_its_limits_ends_by_itself(home: Path) -> None:
    with served(lambda _: Answer(b"<a href=/a>a</a>")) as url:
        found = await result_of(home, url, max_bytes=10_000, max_minutes=1)
    assert (found["summary"]["stopped_by"], len(found["pages"])) == ("frontier", 2)


@pytest.mark.thorough
async def test_a_search_for_addresses_ends_with_the_time_of_its_crawl(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl, "MINUTE_S", 5.0)

    def answer(request: Request) -> Answer:
        page = "<urlset><url><loc>{}/page</loc></url></urlset>"
        one = "<sitemap><loc>{{0}}/{}.xml</loc></sitemap>"
        index = f"<sitemapindex>{one.format('a')}{one.format('b')}</sitemapindex>"
        texts = {"/sitemap.xml": index, "/a.xml": page}
        if request.path == "/b.xml":
            return Answer(b"", stops="before")
        text = texts.get(request.path)
        if text is None:
            return Answer(b"<p>page", 200 if request.path == "/page" else 404)
        return Answer(text.format(where[0]).encode(), 200, "application/xml")

    where: list[str] = []
    site = Site(answer)
    with served(site.answer) as url:
        where.append(url)
        clock, start = site.clock_from("/page"), f"{url}/sitemap.xml"
        found = await result_of(home, start, "crawl_sitemap", clock, max_minutes=1)
    assert found["summary"]["stopped_by"] == "max_minutes"
    assert [page["url"] for page in found["pages"]] == [f"{url}/page"]
