"""A crawl by the engine, with its real ledger, against a bare Playwright loop on the same browser.

The bare loop does the least that gives the same: it loads each page in one of four tabs that it
uses again, waits by the same rule, takes title, visible markup and links with the same script,
turns the markup into markdown and appends a line to a file. It leaves images and fonts out too,
and has Playwright's flags for the rest. Each side is a process of its own,
in turn; the site runs in a third. CPU is user + system of a side's whole process tree, from the
ready browser to the last page.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from engine.browser.page.extraction_options import (
    MAX_STORED_CHARS,
    REQUEST_MS,
    script,
    taking_script,
)
from tests.bench.report import report
from tests.bench.sides import Race

CONCURRENCY = 4
CPU_TARGET, PACE_TARGET = 1.10, 0.92
SIDES = ("engine", "bare")
MARK = re.compile(r"observation \d{6} is complete")
SIDE_LIMIT_S = 300


def cpu_s() -> float:
    """User + system seconds of this process and all below it, those that ended included."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class Clock:
    """What passes between the ready browser and the last page."""

    def __init__(self) -> None:
        self.began, self.cpu, self.own = time.perf_counter(), cpu_s(), time.process_time()

    def told(self, pages: list[dict[str, Any]]) -> dict[str, float]:
        seconds, cpu = time.perf_counter() - self.began, cpu_s() - self.cpu
        whole = sum(bool(MARK.search(page["content"] or "")) for page in pages)
        count = len(pages)
        return {
            "pages": count,
            "whole": whole,
            "pages_s": count / seconds,
            "cpu_ms": cpu / count * 1000,
            "own_ms": (time.process_time() - self.own) / count * 1000,
        }


async def engine_side(url: str, pages: int) -> dict[str, float]:
    from engine.model.config import Settings
    from engine.service.engine import Engine

    with tempfile.TemporaryDirectory() as home:
        engine = Engine(Settings.at(home=Path(home)), accepts=True)
        await engine.open()
        try:
            await engine.warm()
            clock = Clock()
            args = {
                "url": f"{url}/",
                "scope": f"{url}/**",
                "max_pages": pages,
                "max_depth": 100,
                "delay_ms": 0,
                "concurrency": CONCURRENCY,
            }
            task = await engine.requests.start("crawl", args)
            ended = await engine.tasks.wait(task.task_id, SIDE_LIMIT_S * 1000)
            kept = (Path(home) / "tasks" / task.task_id / "pages.jsonl").read_bytes()
            assert ended.status == "COMPLETED", ended
            return clock.told([json.loads(line) for line in kept.splitlines()])
        finally:
            await engine.close()


class Bare:
    """The loop that the engine is measured against."""

    def __init__(self, url: str, pages: int, kept: Path) -> None:
        self.scope, self.pages, self.kept = f"{url}/", pages, kept
        self.script = taking_script()
        self.ask: dict[str, Any] = {
            "limitMs": 30_000,
            "settleMs": 100,
            "requestMs": REQUEST_MS,
            "held": [],
            "waitFor": None,
            "maxLinks": 20_000,
            "maxLinkChars": 4 * 1024 * 1024,
        }
        self.ask |= {
            "pending": "bench",
            "maxText": 1 << 20,
            "maxHtml": 4 << 20,
            "maxTexts": 100_000,
            "maxStored": MAX_STORED_CHARS,
            "refusals": [],
            "maxElements": 50_000,
            "cutOff": False,
        }
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self.seen: set[str] = set()
        self.add(self.scope)

    def add(self, link: str) -> None:
        address = link.partition("#")[0]
        new = address not in self.seen and len(self.seen) < self.pages
        if new and address.startswith(self.scope):
            self.seen.add(address)
            self.queue.put_nowait(address)

    async def work(self, page: Any) -> None:
        from html_to_markdown import convert

        while True:
            address = await self.queue.get()
            response = await page.goto(address, wait_until="load")
            taken = await page.evaluate(self.script, self.ask)
            taken["content"] = convert(taken.pop("html")).content
            taken["status"] = response.status
            with self.kept.open("a") as out:
                out.write(json.dumps(taken) + "\n")
            for link in (taken["links"] or "").split("\n"):
                self.add(link)
            self.queue.task_done()


async def bare_side(url: str, pages: int) -> dict[str, float]:
    from playwright.async_api import async_playwright

    from engine.browser.chromium.launch import LEAN_FLAGS
    from engine.browser.chromium.locate import locate

    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(url, pages, Path(folder) / "pages.jsonl")
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=locate(os.environ.get("OC_BROWSER")).path,
                args=["--disable-gpu", "--disable-quic", *LEAN_FLAGS],
                chromium_sandbox=os.geteuid() != 0,
            )
            clock = Clock()
            context = await browser.new_context()
            await context.add_init_script(f"{script('pending')}('bench');")
            tabs = [await context.new_page() for _ in range(CONCURRENCY)]
            workers = [asyncio.create_task(bare.work(tab)) for tab in tabs]
            await bare.queue.join()
            kept = bare.kept.read_text().splitlines()
            assert len(kept) == pages, "a side that loads less is no reference"
            told = clock.told([json.loads(line) for line in kept])
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await browser.close()
            return told


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench crawl", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument(
        "--tree", choices=("js", "static"), default="js", help="pages by script, or whole at load"
    )
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.side:
        side: Callable[..., Any] = engine_side if given.side == "engine" else bare_side
        print(json.dumps(asyncio.run(side(given.url, given.pages))))
        return 0
    serve = [sys.executable, "-m", "fixtures.site", "--port", "0", "--pages", str(given.pages * 2)]
    race = Race("crawl", SIDES, SIDE_LIMIT_S)
    measured = race.run(serve, given.rounds, given.pages, f"/{given.tree}")
    _tell(measured, given)
    return 0


def _tell(measured: dict[str, list[dict[str, float]]], given: argparse.Namespace) -> None:
    def middle(side: str, key: str) -> float:
        return statistics.median(told[key] for told in measured[side])

    keys = ("pages_s", "cpu_ms", "own_ms", "whole")
    rows = [(side, *(middle(side, key) for key in keys)) for side in SIDES]
    pairs = list(zip(measured["engine"], measured["bare"], strict=True))
    facts = {
        "tree": given.tree,
        "rounds": given.rounds,
        "pages": given.pages,
        "cpu_ratio": middle("engine", "cpu_ms") / middle("bare", "cpu_ms"),
        "pace_ratio": middle("engine", "pages_s") / middle("bare", "pages_s"),
        "cpu_ratio_of_rounds": statistics.median(a["cpu_ms"] / b["cpu_ms"] for a, b in pairs),
        "pace_ratio_of_rounds": statistics.median(a["pages_s"] / b["pages_s"] for a, b in pairs),
        "cpu_target": CPU_TARGET,
        "pace_target": PACE_TARGET,
        "pages_without_late_content": sum(
            told["pages"] - told["whole"] for side in SIDES for told in measured[side]
        ),
    }
    heads = ("side", "pages/s", "CPU ms/page", "of it Python", "whole pages")
    report("crawl", heads, rows, facts)
