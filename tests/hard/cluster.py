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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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


Due = Callable[[int], str]
"""Returns the role of the process to kill after so many pages; empty: none."""


def by_pages(every: int, every_scheduler: int) -> Due:
    """A worker after each `every` pages, and the scheduler after each `every_scheduler`."""
    return lambda done: (
        "scheduler" if done % every_scheduler == 0 else "worker" if done % every == 0 else ""
    )


def by_seconds(every_s: float) -> Due:
    """One worker each `every_s` seconds."""
    killed_s = time.monotonic()

    def due(_: int) -> str:
        nonlocal killed_s
        if time.monotonic() - killed_s < every_s:
            return ""
        killed_s = time.monotonic()
        return "worker"

    return due


class Fire:
    """Kills the processes that `due` names."""

    def __init__(self, due: Due) -> None:
        self._due = due
        self.kills = Counter[str]()
        self.again_s = 0.0
        self._killed_at_s: float | None = None

    def on_page(self, _: dict[str, Any], units: Units) -> None:
        if self._killed_at_s is not None:
            self.again_s = max(self.again_s, time.monotonic() - self._killed_at_s)
            self._killed_at_s = None
        if role := self._due(units.done):
            self._kill(role)
            if role == "scheduler":
                self._killed_at_s = time.monotonic()

    def _kill(self, role: str) -> None:
        for process in cluster_processes(role)[:1]:
            process.kill()
            self.kills[role] += 1


class Run(NamedTuple):
    """A crawl of `pages` pages below `path`, with what is killed and further arguments."""

    path: str
    pages: int
    due: Due
    given: dict[str, Any]


async def crawl_under_fire(home: Path, run: Run) -> dict[str, Any]:
    """Crawl a site under fire; what came of it."""
    fire = Fire(run.due)
    context = MemoryContext(on_page=fire.on_page)
    kind = KINDS["crawl"]
    assert kind.parse_here is not None
    tools = Tools(Settings.at(home=home), BrowserSession(os.environ.get("OC_BROWSER")))
    with Site(pages=run.pages + run.pages // 5) as site:  # links do not lead to all of its pages
        start = f"{site.url}{run.path}"
        usual = {"url": start, "scope": f"{start}**", "max_pages": run.pages}
        usual |= {"delay_ms": 0, "max_depth": 100, "concurrency": 4, "cluster": "local:2"}
        began_s = time.monotonic()
        try:
            await kind.body(kind.parse_here({**usual, **run.given}, tools), context, tools)
        finally:
            await tools.browser.aclose()
        lasted_s = time.monotonic() - began_s
    times = Counter(page["url"] for page in context.pages)
    return {
        "pages": len(times),
        "doubled": sum(times.values()) - len(times),
        "failed": sum("error" in page for page in context.pages),
        "displaced": _displaced([page["depth"] for page in context.pages]),
        "kills": dict(fire.kills),
        "again_s": round(fire.again_s, 1),
        "lasted_s": round(lasted_s),
        "left": len(cluster_processes()),
    }


def _displaced(depths: list[int]) -> int:
    """Return by how many places a page came too late for the breadth-first order, at most."""
    order = sorted(range(len(depths)), key=lambda at: depths[at])
    return max((at - place for place, at in enumerate(order)), default=0)


def measure(*, short: bool) -> Figures:
    """Pages of both engines under kills of workers and of the scheduler."""
    try:
        import_library("distributed.security")
    except ClusterNotInstalled as missing:
        raise RigUnavailable(str(missing)) from missing
    static: dict[str, Any] = {"engine": "static", "delay_ms": 20}
    four = {"cluster": "local:4"}
    runs = {
        "static": Run("/static/", 600, by_pages(50, 220), static),
        "browser": Run("/js/", 200, by_pages(30, 80), {}),
        "static, long": Run("/static/", 10_000, by_seconds(10.0), {"engine": "static", **four}),
        "browser, long": Run("/js/", 600, by_seconds(30.0), four),
    }
    if short:
        runs = {"static": Run("/static/", 60, by_pages(20, 50), static)}
    facts: dict[str, Any] = {}
    misses: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(REPO))  # the processes of the cluster run this program
        for name, run in runs.items():
            with tempfile.TemporaryDirectory() as home:
                told = asyncio.run(crawl_under_fire(Path(home), run))
            facts[name] = told
            misses += [f"{name}: {miss}" for miss in _misses(told, run, short=short)]
    return Figures("cluster", facts, misses)


def _misses(told: dict[str, Any], run: Run, *, short: bool) -> list[str]:
    found = [f"{told[key]} {key}" for key in ("doubled", "failed", "left") if told[key]]
    if told["pages"] != run.pages:
        found.append(f"{told['pages']} of {run.pages} pages")
    if not told["kills"].get("worker"):
        found.append("nothing was killed")
    if told["again_s"] > most_s(AGAIN_S, short=short):
        found.append(f"the crawl went on after {told['again_s']} s")
    return found
