"""A crawl by the engine, with its real ledger, against a bare Playwright loop on the same browser.

The bare loop does the least that gives the same: it loads each page in one of four tabs that it
uses again, waits by the same rule, takes title, visible markup and links with the same script,
turns the markup into markdown and appends a line to a file. It leaves images and fonts out too,
and has Playwright's flags for the rest. `loop` and `pipe` know no rule, only the text by which a
page of this site is complete: one through Playwright, the other over the browser's pipe, where each
page pushes its result. `playwright` is the engine with that connection. Each side is a process of
its own, in turn; the site runs in a third. CPU is user + system of a side's whole process tree,
from the ready browser to the last page.
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
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from engine.browser.page.extraction_options import extraction_options, script, taking_script
from engine.pages.fetch import PageOptions
from tests.bench.report import report
from tests.bench.sides import Race

CONCURRENCY = 4
CPU_TARGET, PACE_TARGET = 1.10, 0.92
SIDES = ("engine", "bare")
ALL_SIDES = (*SIDES, "playwright", "loop", "pipe")
AGAINST_LOOP, AGAINST_PIPE = (1.3, 0.80), (0.85, None)  # the engine's pages/s and CPU a page
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


async def engine_side(
    url: str, pages: int, options: Mapping[str, Any] | None = None
) -> dict[str, float]:
    """Crawl with these arguments beside those of every side, and measure.

    Of `profile` the value is a profile with its state, which the ledger gets first.
    """
    from engine.profiles.profile_store import ProfileStore

    more = dict(options or {})
    from engine.model.config import Settings
    from engine.service.engine import Engine

    with tempfile.TemporaryDirectory() as home:
        if "profile" in more:
            more["profile"] = ProfileStore(Path(home)).save(*more["profile"]).name
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
                **more,
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
        ask = extraction_options(30_000, PageOptions(), "bench", cut_off=False)
        self.ask = {**ask, "reportsIdle": False}  # only the engine opens further tabs
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self.seen: set[str] = set()
        self.add(self.scope)

    def keep(self, taken: dict[str, Any]) -> None:
        """Store a page and follow its links."""
        from html_to_markdown import convert

        taken["content"] = convert(taken.pop("html")).content
        with self.kept.open("a") as out:
            out.write(json.dumps(taken) + "\n")
        for link in (taken["links"] or "").split("\n"):
            self.add(link)
        self.queue.task_done()

    def add(self, link: str) -> None:
        address = link.partition("#")[0]
        new = address not in self.seen and len(self.seen) < self.pages
        if new and address.startswith(self.scope):
            self.seen.add(address)
            self.queue.put_nowait(address)

    async def load(
        self,
        tabs: list[Any],
        clock: Clock,
        work: Callable[[Any], Coroutine[Any, Any, None]] | None = None,
    ) -> dict[str, float]:
        """Load all pages, one at a time in each tab; a tab that fails ends the side."""
        async with asyncio.TaskGroup() as workers:
            working = [workers.create_task((work or self.work)(tab)) for tab in tabs]
            await self.queue.join()
            kept = [json.loads(line) for line in self.kept.read_text().splitlines()]
            assert len(kept) == self.pages, "a side that loads less is no reference"
            told = clock.told(kept)
            for one in working:
                one.cancel()
        return told

    async def work(self, page: Any) -> None:
        while True:
            address = await self.queue.get()
            response = await page.goto(address, wait_until="load")
            taken = await page.evaluate(self.script, self.ask)
            taken["status"] = response.status
            self.keep(taken)


class Loop(Bare):
    """The same without a rule: a page is complete when the text of this site says so."""

    async def work(self, page: Any) -> None:
        while True:
            address = await self.queue.get()
            await page.goto(address, wait_until="commit")
            self.keep(await page.evaluate(f"({COMPLETE})()"))


COMPLETE = """() => new Promise((resolve) => {
  const look = () => {
    if (!/observation \\d{6} is complete/.test(document.body?.textContent ?? '')) return;
    dom.disconnect();
    resolve({ title: document.title, text: document.body.innerText,
      html: document.documentElement.outerHTML,
      links: [...document.links].map((link) => link.href).join('\\n') });
  };
  const dom = new MutationObserver(look);
  dom.observe(document, { subtree: true, childList: true, characterData: true });
  look();
})"""


async def pipe_side(url: str, pages: int) -> dict[str, float]:
    """Load the pages over the browser's pipe: one command and one event for each."""
    from engine.browser.chromium.launch import FLAGS, LEAN_FLAGS
    from engine.browser.chromium.locate import locate
    from engine.browser.direct.devtools_connection import Session
    from engine.browser.direct.direct_browser import DirectBrowser

    async def work(session: Session) -> None:
        pushed: asyncio.Queue[str] = asyncio.Queue()
        session.on("Runtime.bindingCalled", lambda event: pushed.put_nowait(event["payload"]))
        await session.send("Page.enable")
        await session.send("Runtime.enable")
        await session.send("Runtime.addBinding", {"name": "push"})
        pushes = f"({COMPLETE})().then((taken) => push(JSON.stringify(taken)))"
        source = f"if (window === top && /^http/.test(location)) {pushes}"
        await session.send("Page.addScriptToEvaluateOnNewDocument", {"source": source})
        while True:
            address = await bare.queue.get()
            session.begin("Page.navigate", {"url": address})
            bare.keep(json.loads(await pushed.get()))

    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(url, pages, Path(folder) / "pages.jsonl")
        program = locate(os.environ.get("OC_BROWSER")).path
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await DirectBrowser.launch(program, ["--headless", *sandbox, *FLAGS, *LEAN_FLAGS])
        try:
            await browser.root.send(
                "Target.setAutoAttach",
                {"autoAttach": False, "waitForDebuggerOnStart": False, "flatten": True},
            )
            clock = Clock()
            tabs = []
            for _ in range(CONCURRENCY):
                made = await browser.root.send("Target.createTarget", {"url": "about:blank"})
                told = {"targetId": made["targetId"], "flatten": True}
                session_id = (await browser.root.send("Target.attachToTarget", told))["sessionId"]
                tabs.append(browser.connection.session(session_id))
            return await bare.load(tabs, clock, work)
        finally:
            await browser.close()


async def bare_side(url: str, pages: int, kind: type[Bare] = Bare) -> dict[str, float]:
    from playwright.async_api import async_playwright

    from engine.browser.chromium.launch import LEAN_FLAGS
    from engine.browser.chromium.locate import locate

    with tempfile.TemporaryDirectory() as folder:
        bare = kind(url, pages, Path(folder) / "pages.jsonl")
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
            told = await bare.load(tabs, clock)
            await browser.close()
            return told


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench crawl", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument(
        "--tree", choices=("js", "static"), default="js", help="pages by script, or whole at load"
    )
    parser.add_argument("--side", choices=ALL_SIDES, help=argparse.SUPPRESS)
    parser.add_argument(
        "--sides", nargs="+", choices=ALL_SIDES, default=SIDES, help="what takes part in the race"
    )
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.side:
        sides: dict[str, Callable[..., Any]] = {
            "engine": partial(engine_side, options={"connection": "auto"}),
            "bare": bare_side,
            "playwright": partial(engine_side, options={"connection": "playwright"}),
            "loop": partial(bare_side, kind=Loop),
            "pipe": pipe_side,
        }
        print(json.dumps(asyncio.run(sides[given.side](given.url, given.pages))))
        return 0
    serve = [sys.executable, "-m", "fixtures.site", "--port", "0", "--pages", str(given.pages * 2)]
    race = Race("crawl", given.sides, SIDE_LIMIT_S)
    measured = race.run(serve, given.rounds, given.pages, f"/{given.tree}")
    _tell(measured, given)
    return 0


def _against(side: str, measured: dict[str, list[dict[str, float]]]) -> Iterator[tuple[str, float]]:
    """Yield the engine's figures in parts of those of `side`: of medians, and of each round."""
    if side == "engine" or "engine" not in measured:
        return
    pairs = list(zip(measured["engine"], measured[side], strict=True))
    for name, key in (("pace", "pages_s"), ("cpu", "cpu_ms")):
        ours, theirs = ([told[key] for told in part] for part in zip(*pairs, strict=True))
        yield f"{name}_against_{side}", statistics.median(ours) / statistics.median(theirs)
        ratios = [one[key] / other[key] for one, other in pairs]
        yield f"{name}_against_{side}_of_rounds", statistics.median(ratios)


def _tell(measured: dict[str, list[dict[str, float]]], given: argparse.Namespace) -> None:
    def middle(side: str, key: str) -> float:
        return statistics.median(told[key] for told in measured[side])

    keys = ("pages_s", "cpu_ms", "own_ms", "whole")
    rows = [(side, *(middle(side, key) for key in keys)) for side in measured]
    facts = {
        "tree": given.tree,
        "rounds": given.rounds,
        "pages": given.pages,
        **{name: value for side in given.sides for name, value in _against(side, measured)},
        "targets": {"bare": (PACE_TARGET, CPU_TARGET), "loop": AGAINST_LOOP, "pipe": AGAINST_PIPE},
        "pages_without_late_content": sum(
            told["pages"] - told["whole"] for side in measured for told in measured[side]
        ),
    }
    heads = ("side", "pages/s", "CPU ms/page", "of it Python", "whole pages")
    report("crawl", heads, rows, facts)
