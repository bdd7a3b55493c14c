"""Crawls on an embedded cluster: pages per second with 1, 2 and 4 workers, and the CPU of a page.

The site answers after 500 ms, in a process of its own; each worker loads K pages at once. Linear is
what K pages at once give without a cluster, for each worker. Time and CPU (of the engine, and of
all its processes) are taken from the first pages to the last ones, so that the start of the
processes is not part of them. A round of all sides is repeated; judged are medians.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from engine.browser.chromium.browser_session import BrowserSession
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from tests.bench.report import report
from tests.support.memory_context import MemoryContext

SIDES = ("none", "local:1", "local:2", "local:4")
REPO = Path(__file__).resolve().parents[2]


class Mark(NamedTuple):
    """A moment of a crawl: seconds, pages, and CPU seconds of the engine and of all processes."""

    at_s: float
    pages: int
    own_s: float
    all_s: float


def cpu_s() -> tuple[float, float]:
    """CPU seconds of this process, and of all its processes, the site excepted."""
    own = psutil.Process()
    spent = sum(own.cpu_times()[:2])
    below = 0.0
    for process in own.children(recursive=True):
        try:
            if "concurrency" not in process.cmdline():
                below += sum(process.cpu_times()[:2])
        except psutil.Error:
            continue
    return spent, spent + below


async def side(url: str, pages: int, each: int, cluster: str, engine: str) -> dict[str, float]:
    """Crawl `pages` pages, and return pages/s and CPU ms/page."""
    marks: list[Mark] = []
    workers = int(cluster.partition(":")[2] or 1)
    warm = 1 + 2 * workers * each

    def on_page(page: dict[str, Any], _: object) -> None:
        if len(context.pages) in (warm, pages - workers * each):
            marks.append(Mark(time.monotonic(), len(context.pages), *cpu_s()))

    context = MemoryContext(on_page=on_page)
    kind = KINDS["crawl"]
    assert kind.parse_here is not None
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(Settings.at(home=Path(folder)), BrowserSession(os.environ.get("OC_BROWSER")))
        given = {"url": url, "engine": engine, "delay_ms": 0, "concurrency": each}
        given |= {"max_pages": pages, "cluster": cluster, "respect_robots": False}
        try:
            await kind.body(kind.parse_here(given, tools), context, tools)
        finally:
            await tools.browser.aclose()
    failed = [page for page in context.pages if "error" in page]
    assert len(context.pages) == pages, len(context.pages)
    assert not failed, failed[:1]
    first, last = marks
    number = last.pages - first.pages
    return {
        "pages_s": number / (last.at_s - first.at_s),
        "own_ms": 1_000 * (last.own_s - first.own_s) / number,
        "all_ms": 1_000 * (last.all_s - first.all_s) / number,
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench cluster", description=__doc__)
    parser.add_argument("--engine", choices=("browser", "static"), default="static")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--each", type=int, default=4, help="pages of one worker at once")
    parser.add_argument("--seconds", type=int, default=15, help="about, of one crawl")
    given = parser.parse_args(argv)
    os.environ["PYTHONPATH"] = str(REPO)
    most = 2 * given.each * 4 * given.seconds
    words = ["tests.bench", "concurrency", "--serve", "--site", "latency", "--pages", str(most)]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in SIDES}
    with subprocess.Popen(
        [sys.executable, "-m", *words], cwd=REPO, stdout=subprocess.PIPE, text=True
    ) as site:
        try:
            assert site.stdout is not None
            url = site.stdout.readline().strip()
            for _ in range(given.rounds):
                for name in SIDES:
                    workers = int(name.partition(":")[2] or 1)
                    pages = 2 * given.each * workers * given.seconds
                    told = asyncio.run(side(url, pages, given.each, name, given.engine))
                    found[name].append(told)
        finally:
            site.kill()
    middle = {
        name: {key: statistics.median(told[key] for told in tolds) for key in tolds[0]}
        for name, tolds in found.items()
    }
    linear = middle["none"]["pages_s"]
    rows = [
        (
            *(name, told["pages_s"], told["pages_s"] / linear / int(name.partition(":")[2] or 1)),
            *(told["own_ms"], told["all_ms"]),
        )
        for name, told in middle.items()
    ]
    heads = ("cluster", "pages/s", "of linear", "engine CPU ms/page", "all CPU ms/page")
    facts = {"engine": given.engine, "rounds": given.rounds, "each": given.each}
    report("cluster", heads, rows, facts)
    return 0
