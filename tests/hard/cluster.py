"""Workers and schedulers of a cluster killed again and again: every page once, none lost.

The embedded cluster runs Dask's real scheduler and workers. `again_s` is the longest time from the
kill of a scheduler to the next page of the result.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.cluster.cluster_address import ClusterNotInstalled, import_library
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.records import Units
from fixtures.site.site import Site
from tests.hard.figures import Figures, RigUnavailable, most_s
from tests.support.memory_context import MemoryContext

REPO = Path(__file__).resolve().parents[2]
AGAIN_S = 15.0


def cluster_processes(role: str = "") -> list[psutil.Process]:
    """The processes of embedded clusters of this one, or those of a role."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if "_cluster" in words and (not role or role in words):
            found.append(process)
    return found


class Fire:
    """Kills a worker after each `every` pages, and the scheduler after each `every_scheduler`."""

    def __init__(self, every: int, every_scheduler: int) -> None:
        self.every, self.every_scheduler = every, every_scheduler
        self.kills = Counter[str]()
        self.again_s = 0.0
        self._killed_at_s: float | None = None

    def on_page(self, _: dict[str, Any], units: Units) -> None:
        if self._killed_at_s is not None:
            self.again_s = max(self.again_s, time.monotonic() - self._killed_at_s)
            self._killed_at_s = None
        if units.done % self.every_scheduler == 0:
            self._kill("scheduler")
            self._killed_at_s = time.monotonic()
        elif units.done % self.every == 0:
            self._kill("worker")

    def _kill(self, role: str) -> None:
        for process in cluster_processes(role)[:1]:
            process.kill()
            self.kills[role] += 1


async def crawl_under_fire(
    home: Path, path: str, pages: int, fire: Fire, **given: Any
) -> dict[str, Any]:
    """Crawl `pages` pages of the site below `path` under `fire`; what came of it."""
    context = MemoryContext(on_page=fire.on_page)
    kind = KINDS["crawl"]
    assert kind.parse_here is not None
    tools = Tools(Settings.at(home=home), BrowserSession(os.environ.get("OC_BROWSER")))
    with Site(pages=pages) as site:
        usual = {"url": f"{site.url}{path}", "scope": f"{site.url}{path}**", "max_pages": pages}
        usual |= {"delay_ms": 0, "max_depth": 100, "concurrency": 4, "cluster": "local:2"}
        try:
            await kind.body(kind.parse_here({**usual, **given}, tools), context, tools)
        finally:
            await tools.browser.aclose()
    times = Counter(page["url"] for page in context.pages)
    return {
        "pages": len(times),
        "doubled": sum(times.values()) - len(times),
        "failed": sum("error" in page for page in context.pages),
        "kills": dict(fire.kills),
        "again_s": round(fire.again_s, 1),
        "left": len(cluster_processes()),
    }


def measure(*, short: bool) -> Figures:
    """Pages of both engines under kills of workers and of the scheduler."""
    try:
        import_library("distributed.security")
    except ClusterNotInstalled as missing:
        raise RigUnavailable(str(missing)) from missing
    runs: dict[str, tuple[str, int, Fire, dict[str, Any]]] = {
        "static": ("/", 600, Fire(50, 220), {"engine": "static", "delay_ms": 20}),
        "browser": ("/js/", 200, Fire(30, 80), {}),
    }
    if short:
        runs = {"static": ("/", 60, Fire(20, 50), {"engine": "static", "delay_ms": 20})}
    facts: dict[str, Any] = {}
    misses: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(REPO))  # the processes of the cluster run this program
        for name, (path, pages, fire, given) in runs.items():
            with tempfile.TemporaryDirectory() as home:
                told = asyncio.run(crawl_under_fire(Path(home), path, pages, fire, **given))
            facts[name] = told
            misses += [f"{name}: {miss}" for miss in _misses(told, pages, short=short)]
    return Figures("cluster", facts, misses)


def _misses(told: dict[str, Any], pages: int, *, short: bool) -> list[str]:
    found = [f"{told[key]} {key}" for key in ("doubled", "failed", "left") if told[key]]
    if told["pages"] != pages:
        found.append(f"{told['pages']} of {pages} pages")
    if not told["kills"].get("worker") or not told["kills"].get("scheduler"):
        found.append("nothing was killed")
    if told["again_s"] > most_s(AGAIN_S, short=short):
        found.append(f"the crawl went on after {told['again_s']} s")
    return found
