"""Pages that have loaded and must only stay stable: a crawl loads others meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from engine.browser.page import extraction_options
from engine.kinds.crawl import concurrency
from engine.kinds.crawl.concurrency import Concurrency, most_tabs
from engine.kinds.crawl.concurrency_rule import MOST
from engine.model.errors import PageError
from engine.model.records import Status
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer, Request
from tests.browser.conftest import Making, Pages
from tests.support.engines import opened, until
from tests.support.memory_context import MemoryContext
from tests.support.serving import served

PATIENT = PageOptions(timeout_ms=100_000)
STABLE_MS = "const RENDERED_MS = 500;"


def written(script: str = "") -> str:
    writes = "addEventListener('load', () => root.append('words that a script wrote'))"
    return f"<div id=root></div><script>{writes};{script}</script>"


@pytest.fixture
def stable_for(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`stable_for(ms)`: pages that scripts wrote must stay stable so long, in later browsers."""
    read = extraction_options.script

    def forget() -> None:
        extraction_options.taking_script.cache_clear()
        extraction_options._taking.cache_clear()

    def set_limit(limit_ms: int) -> None:
        def changed(name: str) -> str:
            source = read(name)
            if name == "settle":
                assert STABLE_MS in source
            return source.replace(STABLE_MS, f"const RENDERED_MS = {limit_ms};")

        monkeypatch.setattr(extraction_options, "script", changed)
        forget()

    yield set_limit
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "playwright"])
async def test_a_page_is_idle_from_its_last_change_until_it_is_extracted(
    browsing: Making, pages: Pages, direct: bool, subtests: pytest.Subtests
) -> None:
    pages["/held"] = Answer(b"data: x\n\n", 200, "text/event-stream", spread_s=60.0)
    cases: dict[str, tuple[str, list[int]]] = {
        "written": (written(), [1, -1]),
        "whole": ("<p>" + "All of this came with the markup. " * 10, [1, -1]),
        # a connection that it holds is one less for other pages of its host
        "held open": (written("new EventSource('/held')"), []),
        "waits for a timer": (written("onload = () => setTimeout(() => 0, 120)"), [1, -1]),
    }
    async with browsing(pages.url, direct=direct) as made:
        for name, (markup, wanted) in cases.items():
            with subtests.test(name=name):
                pages["/"] = markup
                reported: list[int] = []
                limit_ms = 12_000 if name == "held open" else PATIENT.timeout_ms
                page = await made.fetcher.fetch(
                    pages.url, PageOptions(timeout_ms=limit_ms), reported.append
                )
                assert page.text
                assert reported == wanted


async def test_a_page_that_asks_again_is_idle_again_after_that(
    browsing: Making, pages: Pages, stable_for: Any
) -> None:
    stable_for(8_000)
    pages["/slow"] = Answer(b"more words", 200, "text/plain", delay_s=0.5)
    pages["/"] = written()
    reported: list[int] = []
    asks = "fetch('/slow').then(a => a.text()).then(t => root.append(t))"
    async with browsing(pages.url, direct=True) as made:
        fetching = asyncio.create_task(made.fetcher.fetch(pages.url, PATIENT, reported.append))
        await until(lambda: reported)
        (page,) = made.fetcher.pages
        await page.session.send("Runtime.evaluate", {"expression": asks})
        found = await fetching
    assert "more words" in found.text
    assert reported == [1, -1, 1, -1]


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "playwright"])
async def test_a_page_that_is_replaced_or_fails_is_not_idle_any_more(
    browsing: Making, pages: Pages, direct: bool, stable_for: Any
) -> None:
    stable_for(60_000)
    pages["/next"] = Answer(b"", 200, "text/html", delay_s=60.0)
    pages["/"] = written("onload = () => setTimeout(() => { location = '/next' }, 1000)")
    reported: list[int] = []
    async with browsing(pages.url, direct=direct) as made:
        with suppress(PageError):
            await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=12_000), reported.append)
        assert sum(reported) == 0
        pages["/"] = written()
        reported.clear()
        fetching = asyncio.create_task(made.fetcher.fetch(pages.url, PATIENT, reported.append))
        await until(lambda: reported)
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)
        assert reported == [1, -1]


async def test_a_page_that_loads_more_is_not_idle(browsing: Making, pages: Pages) -> None:
    pages["/"] = written()
    reported: list[int] = []
    async with browsing(pages.url, direct=True) as made:
        options = PageOptions(timeout_ms=100_000, scroll=True)
        await made.fetcher.fetch(pages.url, options, reported.append)
    assert reported == []


@pytest.mark.own_browser
@pytest.mark.parametrize(
    ("connection", "concurrency", "most"),
    [("direct", 2, 8), ("playwright", 2, 8), ("direct", 1, 1), ("direct", "auto", 3)],
)
async def test_others_load_meanwhile_within_a_limit_of_tabs(
    home: Path, stable_for: Any, connection: str, concurrency: int | str, most: int
) -> None:
    stable_for(120_000)
    asked: list[str] = []

    def answer(request: Request) -> Answer:
        asked.append(request.path)
        return Answer(f"<!doctype html><title>t</title>{written()}".encode())

    async with opened(home) as engine:
        with served(answer) as url:
            addresses = [f"{url}/{number}" for number in range(20)]
            options = {"delay_ms": 0, "respect_robots": False, "timeout_ms": 300_000}
            args = {"url": addresses[0], "urls": addresses, "concurrency": concurrency, **options}
            record = await engine.requests.start("crawl", {**args, "connection": connection})
            await until(lambda: len(asked) >= most)
            await engine.commands.cancel(record.task_id)
            ended = await engine.tasks.wait(record.task_id, 60_000)
    assert ended.status == Status.CANCELLED
    assert len(asked) == len({*asked}) == most


def test_the_number_of_tabs_is_limited_and_one_page_stays_alone() -> None:
    assert [most_tabs(one) for one in (1, 2, 3, 4, MOST, "auto")] == [1, 8, 12, 16, MOST, MOST]
    for given in (1, 2, 4, MOST):
        number = Concurrency(MemoryContext(), given)
        assert number.counts_idle == (1 < given < MOST)
        for idle in range(40):
            assert number.number == min(given + idle, most_tabs(given))
            number.count_idle(1)
        number.count_idle(-40)
        assert number.number == given
    assert not Concurrency(MemoryContext(), "auto").counts_idle


def test_short_memory_opens_no_further_tabs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "MEMORY_S", 0.0)
    number = Concurrency(MemoryContext(), 4)
    for free_bytes, wanted in ((1e9, 5), (0.5e9, 4), (1e9, 7)):
        monkeypatch.setattr(concurrency, "_memory", lambda free=free_bytes: (8e9, free))
        number.count_idle(1)
        assert number.number == wanted
