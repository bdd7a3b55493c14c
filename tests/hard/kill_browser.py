"""The browser killed again and again under a crawl: every page once, none lost, none doubled.

Whole browsers, single renderers, and Playwright's driver, each after so many pages.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from engine.model.config import Settings
from engine.service.engine import Engine
from fixtures.site.site import Site
from tests.hard.figures import Figures

LIMIT_S = 600
Kill = Callable[[], bool]


def _below() -> list[tuple[psutil.Process, str]]:
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            found.append((process, " ".join(process.cmdline())))
        except psutil.Error:
            continue
    return found


def kill_browser() -> bool:
    """Kill the first process of the browser; False when there is none just now."""
    return _kill(lambda line: "--user-data-dir=" in line and "--type=" not in line)


def kill_renderer() -> bool:
    """Kill the process of one page."""
    return _kill(lambda line: "--type=renderer" in line)


def kill_driver() -> bool:
    """Kill Playwright's own process."""
    return _kill(lambda line: "run-driver" in line)


def _kill(is_meant: Callable[[str], bool]) -> bool:
    for process, line in _below():
        if is_meant(line):
            process.kill()
            return True
    return False


async def crawl_under_fire(home: Path, pages: int, every: int, kill: Kill) -> dict[str, Any]:
    """Crawl `pages` pages and `kill` after each `every` of them; what came of it."""
    with Site(pages=pages) as site:
        engine = Engine(Settings.at(home=home), accepts=True)
        await engine.open()
        try:
            args = {"url": f"{site.url}/js/", "scope": f"{site.url}/js/**", "max_pages": pages}
            if kill is kill_driver:  # which only this connection has
                args |= {"connection": "playwright"}
            args |= {"delay_ms": 0, "max_depth": 100, "concurrency": 4}
            task_id = (await engine.requests.start("crawl", args)).task_id
            kept = engine.settings.root / task_id / "pages.jsonl"
            kills = await _fire(engine, task_id, kept, every, kill)
            record = await engine.tasks.wait(task_id, 5_000)
            starts = engine._parts.browser.starts
        finally:
            await engine.close()
    return {"status": str(record.status), "kills": kills, "starts": starts, **_told(kept)}


async def _fire(engine: Engine, task_id: str, kept: Path, every: int, kill: Kill) -> int:
    kills = 0
    async with asyncio.timeout(LIMIT_S):
        while await _is_live(engine, task_id):
            done = kept.read_bytes().count(b"\n") if kept.exists() else 0
            if done >= every * (kills + 1):
                kills += await asyncio.to_thread(kill)
            await asyncio.sleep(0.01)
    return kills


async def _is_live(engine: Engine, task_id: str) -> bool:
    entry: Any = (await engine.tasks.get(task_id)).entry
    return bool(entry.is_live)


def _told(kept: Path) -> dict[str, Any]:
    pages = [json.loads(line) for line in kept.read_bytes().splitlines()]
    times = Counter(page["url"] for page in pages)
    return {
        "pages": len(times),
        "doubled": sum(times.values()) - len(times),
        "failed": sum("error" in page for page in pages),
    }


def _measured(pages: int, every: int, kill: Kill) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(crawl_under_fire(Path(folder), pages, every, kill))


def measure(*, short: bool) -> Figures:
    """G11: the browser every 25 of 200 pages and every 7; renderers and drivers besides."""
    runs: dict[str, tuple[int, int, Kill]] = {
        "browser_every_25": (200, 25, kill_browser),
        "browser_every_7": (200, 7, kill_browser),
        "renderer_every_10": (100, 10, kill_renderer),
        "driver_every_40": (100, 40, kill_driver),
    }
    if short:
        runs = {"browser_every_10": (30, 10, kill_browser)}
    facts: dict[str, Any] = {}
    misses: list[str] = []
    for name, (pages, every, kill) in runs.items():
        told = facts[name] = _measured(pages, every, kill)
        misses += [f"{name}: {miss}" for miss in _misses(told, pages, kill)]
    return Figures("G11", facts, misses)


def _misses(told: dict[str, Any], pages: int, kill: Kill) -> list[str]:
    found = [f"{told[name]} pages {name}" for name in ("doubled", "failed") if told[name]]
    if told["pages"] != pages or told["status"] != "COMPLETED":
        found.append(f"{told['pages']} of {pages} pages, {told['status']}")
    if not told["kills"]:
        found.append("nothing was killed")
    # The last kill may meet a browser that nobody needs any more.
    if kill is not kill_renderer and not told["kills"] <= told["starts"] <= told["kills"] + 1:
        found.append(f"{told['starts']} starts for {told['kills']} kills")
    return found
