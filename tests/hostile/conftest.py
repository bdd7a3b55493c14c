"""Crawls of the hostile site by a real engine, reported by page."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from engine.model.config import Settings
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from fixtures.hostile.program import HostileProgram
from tests.support.far_limits import FAR_S

LIMIT_MS = 800_000  # pages are ended at their limits; a crowded machine has many of those


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """Start browsers however long that takes, also for crawls that a whole module looks at.

    The limits within a page stay: they are what ends many of the traps.
    """
    with pytest.MonkeyPatch.context() as patched:
        for limit in ("launch.LAUNCH_S", "browser_session.START_S", "locate.VERSION_LIMIT_S"):
            patched.setattr(f"engine.browser.chromium.{limit}", FAR_S)
        yield


class Told(NamedTuple):
    """What one crawl came to; `pages` by their path and query."""

    record: TaskRecord
    summary: dict[str, Any]
    pages: dict[str, dict[str, Any]]
    folder: Path

    def error(self, path: str) -> str:
        return str(self.pages[path].get("error", ""))


async def crawled(home: Path, url: str, kind: str = "crawl", **args: Any) -> Told:
    """One task from its start to its end, by an engine of its own."""
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    try:
        given = {"url": url, "delay_ms": 0, **args}
        task_id = (await engine.requests.start(kind, given)).task_id
        record = await engine.tasks.wait(task_id, timeout_ms=LIMIT_MS)
        await engine.tasks.join(task_id)
    finally:
        await engine.close()
    return told(engine.settings.root / task_id, record, url)


def told(folder: Path, record: TaskRecord, url: str) -> Told:
    """Read back what a task left in its folder."""
    result = json.loads((folder / "result.json").read_bytes())
    site = "/".join(url.split("/")[:3])
    kept = result.get("pages")
    if kept is None:  # a large result leaves them where they are
        kept = [json.loads(line) for line in (folder / "pages.jsonl").read_bytes().splitlines()]
    pages = {page["url"].removeprefix(site): page for page in kept}
    assert len(pages) == len(kept), "a page was taken twice"
    return Told(record, result["summary"], pages, folder)


class Seen(NamedTuple):
    """One crawl of some traps, what reached the canary, and the processes left over."""

    told: Told
    canary: list[str]
    left: list[str]

    def error(self, path: str) -> str:
        return self.told.error(path)

    def page(self, path: str) -> dict[str, Any]:
        return self.told.pages[path]


def taken(home: Path, paths: Sequence[str], **args: Any) -> Seen:
    """A crawl of these traps alone, for the tests of one module to look at; not on a loop."""
    with HostileProgram() as site:
        given = {"max_depth": 1, "max_pages": 500, "concurrency": 4, **args}
        told = asyncio.run(crawled(home, site.only(*paths), **given))
        reached = [hit[0] for hit in site.told()["canary"]]
        return Seen(told, reached, left_over())


def left_over(limit_s: float = 60.0) -> list[str]:
    """The names of what runs below this program and is no Python, after a while for its end."""
    until = time.monotonic() + limit_s
    while True:
        names = [_name(one) for one in psutil.Process().children(recursive=True)]
        left = [name for name in names if name and "python" not in name]
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.05)  # other programs' processes: they can only be looked at again


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""
