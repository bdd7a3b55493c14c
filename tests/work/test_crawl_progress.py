"""A crawl's progress never exceeds its maximum or its end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.egress.egress_policy import Policy
from engine.kinds.crawl.crawl import crawl
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.model.records import Units
from engine.pages.static_engine import open_static
from tests.support.memory_context import MemoryContext

ROBOTS = "User-agent: *\nDisallow: /static/1\n"  # and 10 to 19, as far as they are linked


class SlowContext(MemoryContext):
    """Writes so slowly that several workers keep their pages at the same time."""

    async def page(self, page: dict[str, Any], units: Units) -> None:
        await asyncio.sleep(0.05)
        await super().page(page, units)


async def told(url: str, context: MemoryContext | None = None, **more: Any) -> list[Units]:
    args = parse_crawl({"url": url, "engine": "static", "delay_ms": 0, **more})
    context = context or MemoryContext()

    @asynccontextmanager
    async def open_fetcher(engine: Any, asked: Any) -> Any:
        async with open_static(Policy.for_start(args.url), asked.credentials, judge=False) as one:
            yield one

    await crawl(args, context, open_fetcher)
    return context.progress


@pytest.mark.parametrize("most", [5, 9, 30, 100])
@pytest.mark.parametrize("concurrency", [1, 4])
async def test_the_total_is_bounded(site: Any, most: int, concurrency: int) -> None:
    site.robots = ROBOTS
    url = f"{site.url}/static/"
    progress = await told(url, max_pages=most, max_depth=9, concurrency=concurrency)
    for units in progress[:-1]:
        assert units.total is not None
        assert units.total <= max(most, units.done + 1)  # blocked pages are kept beside them
        assert units.done <= units.total
    assert [units.done for units in progress] == list(range(1, len(progress) + 1))


async def test_with_more_to_come_nothing_looks_finished(site: Any) -> None:
    site.robots = ROBOTS
    progress = await told(f"{site.url}/static/", max_pages=9, max_depth=1, concurrency=1)
    assert len(progress) == 9  # with what robots.txt forbids
    assert all(units.total is not None and units.done < units.total for units in progress[:-1])
    assert progress[3].total == 9


async def test_pages_that_are_kept_at_the_same_time_are_not_still_to_come(site: Any) -> None:
    url = f"{site.url}/static/"
    progress = await told(url, SlowContext(), max_pages=40, max_depth=1, concurrency=5)
    last = max(progress, key=lambda units: units.done)
    assert (last.done, last.total) == (len(progress), len(progress))


async def test_without_blocked_pages_the_total_is_the_limit_at_most(site: Any) -> None:
    progress = await told(f"{site.url}/static/", max_pages=9, max_depth=9)
    assert {units.total for units in progress} <= set(range(1, 10))
    assert (progress[-1].done, progress[-1].total) == (9, 9)
