"""A long crawl leaves the same files, memory and processes as before."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from engine.browser.chromium.browser_options import Limits
from engine.model.config import Settings
from engine.service.engine import Engine
from tests.hard.figures import Figures

LONG, SHORT = 2_000, 100
WARM = 5  # pages that load what is loaded once
SETTLED = 200  # pages after which memory may not grow any more
MOST_GROWTH = 10 * 1024  # bytes of this process for each page
MOST_LEFT = 1.2  # of what the browser's processes held before
SLACK = 5  # descriptors and tasks
CRAWL_S = 1_800
QUIET_S = 60.0


@contextmanager
def served(pages: int) -> Iterator[str]:
    """The sample site in a process of its own, so that its memory is not counted here."""
    command = [sys.executable, "-m", "fixtures.site", "--port", "0", "--pages", str(pages)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as site:
        assert site.stdout is not None
        try:
            yield site.stdout.readline().strip()
        finally:
            site.terminate()


def tree_bytes() -> int:
    """What the browser's processes hold together, the driver left out."""
    held = 0
    for process in psutil.Process().children(recursive=True):
        try:
            line = " ".join(process.cmdline())
            if "--type=" in line or "--user-data-dir=" in line:
                held += process.memory_info().rss
        except psutil.Error:
            continue
    return held


def state(engine: Engine) -> dict[str, int]:
    """What may not grow."""
    gc.collect()
    contexts = [
        context
        for one in engine._parts.browser._running.values()
        for context in (one.browser.contexts if one.alive else ())
    ]
    return {
        "contexts": len(contexts),
        "pages": sum(len(context.pages) for context in contexts),
        "descriptors": _descriptors(),
        "tasks": len(asyncio.all_tasks()),
        "tree": tree_bytes(),
    }


def _descriptors() -> int:
    me: Any = psutil.Process()  # it knows the one or the other
    return int(me.num_handles() if sys.platform == "win32" else me.num_fds())


async def crawl(engine: Engine, url: str, pages: int) -> list[tuple[int, int]]:
    """Crawl so many pages; (pages done, bytes of this process) every now and then."""
    args = {"url": f"{url}/js/", "scope": f"{url}/js/**", "max_pages": pages, "max_depth": 100}
    task = await engine.requests.start("crawl", {**args, "delay_ms": 0, "concurrency": 4})
    kept = engine.settings.root / task.task_id / "pages.jsonl"
    done, read, seen = 0, 0, list[tuple[int, int]]()
    async with asyncio.timeout(CRAWL_S):
        while True:
            entry: Any = (await engine.tasks.get(task.task_id)).entry
            with suppress(FileNotFoundError), kept.open("rb") as file:
                file.seek(read)
                new = file.read()  # only what is new: the whole would show in our own memory
                done, read = done + new.count(b"\n"), read + len(new)
            seen.append((done, psutil.Process().memory_info().rss))
            if not entry.is_live:
                break
            await asyncio.sleep(0.5)
    assert entry.status == "COMPLETED", entry
    return seen


async def soak(home: Path, url: str, pages: int, limits: Limits) -> dict[str, Any]:
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    engine._parts.browser._recycler._limits = limits
    try:
        await crawl(engine, url, WARM)
        before = state(engine)
        began = time.monotonic()
        seen = await crawl(engine, url, pages)
        took_s = time.monotonic() - began
        after = await quiet(engine, before)
        starts = engine._parts.browser.starts
    finally:
        await engine.close()
    return {
        "pages": seen[-1][0],
        "pages_per_s": round(pages / took_s, 1),
        "browsers_started": starts,
        "python_bytes_per_page": slope(seen),
        "before": before,
        "after": after,
    }


async def quiet(engine: Engine, before: dict[str, int]) -> dict[str, int]:
    """How things are once what was left is gone; as they are after a minute otherwise."""
    until = time.monotonic() + QUIET_S
    while True:
        now = state(engine)
        if not grown(before, now) or time.monotonic() > until:
            return now
        await asyncio.sleep(0.2)


def slope(seen: list[tuple[int, int]]) -> int | None:
    """Bytes a page from page 200 on (least squares); None for a run that is shorter."""
    late = [(done, held) for done, held in seen if done >= SETTLED]
    if not late or late[-1][0] < 2 * SETTLED:
        return None
    mean_x = sum(x for x, _ in late) / len(late)
    mean_y = sum(y for _, y in late) / len(late)
    spread = sum((x - mean_x) ** 2 for x, _ in late)
    return round(sum((x - mean_x) * (y - mean_y) for x, y in late) / spread)


def grown(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """What is more than it was, as sentences."""
    found = [
        f"{name}: {before[name]} before, {after[name]} after"
        for name in ("contexts", "pages")
        if after[name] != before[name]
    ]
    found += [
        f"{name}: {before[name]} before, {after[name]} after"
        for name in ("descriptors", "tasks")
        if abs(after[name] - before[name]) > SLACK
    ]
    if after["tree"] > before["tree"] * MOST_LEFT:
        found.append(f"the browser holds {after['tree'] / before['tree']:.2f} of what it held")
    return found


def measure(*, short: bool) -> Figures:
    """G10: 2,000 pages; in the short form 100, through three browsers and two drivers."""
    pages = SHORT if short else LONG
    few = Limits(browser_pages=40, driver_pages=80, least_pages=10, look_s=0.1)
    with served(pages * 2) as url, tempfile.TemporaryDirectory() as folder:
        limits = few if short else Limits()
        facts = asyncio.run(soak(Path(folder), url, pages, limits))
    misses = grown(facts["before"], facts["after"])
    if facts["pages"] != pages:
        misses.append(f"{facts['pages']} of {pages} pages")
    growth = facts["python_bytes_per_page"]
    if growth is not None and growth > MOST_GROWTH:
        misses.append(f"this process grew by {growth} bytes a page")
    if facts["browsers_started"] < 2:
        misses.append("no browser was renewed: nothing was shown")
    return Figures("G10", facts, misses)
