"""A ledger of 10,000 tasks: first rows, all rows, and CPU against a bare scandir + open + read."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median as middle

from engine.ledger.reader import LedgerReader
from engine.ledger.watch import Watch
from engine.service.feed import Feed
from tests.bench.report import report
from tests.support.task_folders import write_meta

BEAT_S = 0.005


def fill(root: Path, tasks: int) -> None:
    """Tasks as a user's ledger holds them: nearly all of them ended, long ago."""
    for number in range(tasks):
        folder = write_meta(
            root,
            number,
            "COMPLETED" if number % 10 else "FAILED",
            created_at=1_700_000_000_000 + number,
            started_at=1_700_000_000_500 + number,
            ended_at=1_700_000_060_000 + number,
            args_summary={"url": f"https://example.org/{number}", "max_pages": 20},
            task_nonce=f"1:{number}:abcdef",
            engine={"host": "here", "runner": f"{number:016x}", "units": {"done": 20, "total": 20}},
        )
        # A scan compares each record that was written within the last minute.
        os.utime(folder / "meta.json", (1_700_000_060,) * 2)


Cost = tuple[float, float]  # wall and CPU seconds


def bare(root: Path, *, stat: bool = False) -> Cost:
    """Every meta.json read without looking into it; with `stat`, each also asked for its age."""
    wall, cpu = time.perf_counter(), time.process_time()
    held = os.open(root, os.O_RDONLY)
    for entry in os.scandir(held):
        name = f"{entry.name}/meta.json"
        if stat:
            os.stat(name, dir_fd=held, follow_symlinks=False)
        fd = os.open(name, os.O_RDONLY, dir_fd=held)
        os.read(fd, 65_536)
        os.close(fd)
    os.close(held)
    return time.perf_counter() - wall, time.process_time() - cpu


def listed(root: Path) -> Cost:
    """What `octask list` does for the whole ledger."""
    wall, cpu = time.perf_counter(), time.process_time()
    LedgerReader(root).list(limit=None)
    return time.perf_counter() - wall, time.process_time() - cpu


async def fed(root: Path, first_s: list[float], stalls: list[float] | None = None) -> Cost:
    """What a window does: in parts, off the loop, and without collecting garbage meanwhile
    (`gui.startup.session`)."""
    gc.disable()
    wall, cpu = time.perf_counter(), time.process_time()
    feed = Feed(LedgerReader(root), Watch(root), ours=lambda _: False)
    longest, first = [0.0], 0.0
    beating = asyncio.create_task(_heart(longest)) if stalls is not None else None
    async for batch in feed.batches():
        first = first or time.perf_counter() - wall
        if batch.complete:
            break
    cost = time.perf_counter() - wall, time.process_time() - cpu
    gc.enable()
    first_s.append(first)
    if stalls is not None and beating is not None:
        beating.cancel()
        await asyncio.wait({beating})
        stalls.append(longest[0])
    await feed.close()
    return cost


async def _heart(longest: list[float]) -> None:
    while True:
        begin = time.perf_counter()
        await asyncio.sleep(BEAT_S)
        longest[0] = max(longest[0], time.perf_counter() - begin - BEAT_S)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench listing", description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        fill(root, given.tasks)
        asyncio.run(fed(root, []))  # the first one also imports
        ways: dict[str, Callable[[], Cost]] = {
            "bare scandir + open + read": lambda: bare(root),
            "the same + stat": lambda: bare(root, stat=True),
            "Ledger.list, all": lambda: listed(root),
            "feed, until complete": lambda: asyncio.run(fed(root, first_s)),
        }
        first_s: list[float] = []
        stalls: list[float] = []
        costs: dict[str, list[Cost]] = {name: [] for name in ways}
        for _ in range(given.rounds):
            for name, way in ways.items():
                costs[name].append(way())
            asyncio.run(fed(root, [], stalls))
    tell(given.tasks, costs, middle(first_s), max(stalls))


def tell(tasks: int, costs: dict[str, list[Cost]], first_s: float, stall_s: float) -> None:
    """Medians; each ratio is taken inside its round."""
    floors = next(iter(costs.values()))
    rows: list[tuple[str, str, float, float, float]] = []
    for name, found in costs.items():
        ratio = middle(one[1] / floor[1] for one, floor in zip(found, floors, strict=True))
        first = f"{first_s:.3f}" if name.startswith("feed") else ""
        walls, cpus = zip(*found, strict=True)
        rows.append((name, first, middle(walls), middle(cpus) * 1000, ratio))
    every, listed_x, stat_x = rows[3], rows[2][4], rows[1][4]
    facts = {"tasks": tasks, "first_rows_s": first_s, "all_rows_s": every[2]}
    facts |= {"list_cpu_ratio": listed_x, "feed_cpu_ratio": every[4]}
    facts |= {"feed_cpu_ratio_to_stat_too": every[4] / stat_x, "longest_stall_ms": stall_s * 1000}
    report("listing", ("what", "first rows s", "all rows s", "CPU ms", "x bare"), rows, facts)
