"""Whole crawls by a real engine in real Chromium, on the sample site."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.model.config import Settings
from engine.model.records import Status, TaskRecord
from engine.sample.site import marker
from engine.service.engine import Engine
from fixtures.site.site import Site
from tests.support.far_limits import wait_for_answers

QUICK = {"delay_ms": 0, "respect_robots": False}


@pytest.fixture
def engine_at(home: Path) -> Callable[[], Any]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Engine]:
        engine = Engine(Settings.at(home=home), accepts=True)
        await engine.open()
        try:
            yield engine
        finally:
            await engine.close()

    return opened


async def crawled(
    running: Engine, url: str, **args: Any
) -> tuple[TaskRecord, list[dict[str, Any]]]:
    """A crawl to its end, and its pages as the result has them."""
    task_id = (await running.requests.start("crawl", {"url": url, **QUICK, **args})).task_id
    record = await running.tasks.wait(task_id, timeout_ms=150_000)
    await running.tasks.join(task_id)
    result = json.loads((running.settings.root / task_id / "result.json").read_bytes())
    return record, result["pages"]


async def test_what_scripts_render_late_is_in_the_pages(
    engine_at: Callable[[], Any], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_answers(monkeypatch)
    async with engine_at() as engine:
        record, pages = await crawled(engine, site.url + "/js/", max_pages=12, concurrency=4)
    assert record.status == Status.COMPLETED
    assert len(pages) == 12
    for page in pages:
        number = int(page["url"].rpartition("/")[2] or 0)
        assert marker(number) in page["content"], page["url"]
        assert page["engine_used"] == "browser"
        assert page["settled"]


async def test_auto_takes_the_browser_only_where_a_script_could_matter(
    engine_at: Callable[[], Any], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_answers(monkeypatch)
    async with engine_at() as engine:
        _, static = await crawled(engine, site.url + "/static/", engine="auto", max_pages=4)
        assert {page["engine_used"] for page in static} == {"static"}
        assert engine.health().browser == "idle"
        _, late = await crawled(engine, site.url + "/js/1", engine="auto", max_pages=1)
        assert [page["engine_used"] for page in late] == ["browser"]
        assert marker(1) in late[0]["content"]


async def test_screenshots_are_artifacts(engine_at: Callable[[], Any], site: Site) -> None:
    async with engine_at() as engine:
        record, pages = await crawled(engine, site.url, max_pages=2, screenshot="all")
        folder = engine.settings.root / record.task_id
    for page in pages:
        shot = folder / page["screenshot"]
        assert shot.parent == folder / "artifacts"
        assert shot.read_bytes().startswith(b"\x89PNG")


async def test_parallel_pages_have_screenshots(engine_at: Callable[[], Any], site: Site) -> None:
    async with engine_at() as engine:
        url = site.url + "/static/"
        _, pages = await crawled(engine, url, max_pages=16, concurrency=8, screenshot="all")
    assert len(pages) == 16
    assert len({page["screenshot"] for page in pages}) == 16


async def test_crawls_open_no_private_redirect(engine_at: Callable[[], Any], site: Site) -> None:
    with Site(pages=3) as canary:
        async with engine_at() as engine:
            start = f"{site.url}/redirect/to?url={canary.url}/static/1"
            for kind in ("browser", "static"):
                _, pages = await crawled(engine, start, engine=kind, max_pages=1)
                assert pages[0]["error"].startswith("blocked: "), pages[0]
        assert canary.log == []


@pytest.mark.case("R73")
async def test_a_killed_browser_loses_no_page(engine_at: Callable[[], Any], home: Path) -> None:
    with Site(pages=40) as site:
        async with engine_at() as engine:
            args = {"url": site.url + "/js/", **QUICK, "max_pages": 40, "max_depth": 50}
            task_id = (await engine.requests.start("crawl", args)).task_id
            kept = home / "tasks" / task_id / "pages.jsonl"
            killed, due = 0, 8
            while (record := (await engine.tasks.get(task_id)).entry).is_live:
                done = kept.read_bytes().count(b"\n") if kept.exists() else 0
                if killed < 2 and done >= due and kill_browser():
                    killed, due = killed + 1, done + 8  # no page is under way both times
            assert killed == 2
    pages = [json.loads(line) for line in kept.read_bytes().splitlines()]
    assert record.status == Status.COMPLETED
    urls = [page["url"] for page in pages]
    assert len(urls) == len(set(urls)) == 40
    assert [page["error"] for page in pages if "error" in page] == []


def kill_browser() -> bool:
    """Kill the browser's first process (the others are its children, and go with it)."""
    for process in psutil.Process().children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:  # it has just ended
            continue
        if any("headless" in word for word in words[:2]) and "--type=" not in " ".join(words):
            process.kill()
            return True
    return False
