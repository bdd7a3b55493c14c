"""A ledger of 10,000 tasks: first rows, all rows, and CPU against a bare scandir + open + read."""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from engine.feed import Feed
from engine.store.look import LedgerLook
from engine.store.watch import Watch
from tests.bench.report import report
from tests.watch.folders import write_meta

BEAT_S = 0.005


def fill(root: Path, tasks: int) -> None:
    """Tasks as a user's ledger holds them: nearly all of them ended."""
    for number in range(tasks):
        write_meta(
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


def bare(root: Path) -> tuple[float, float]:
    """Wall and CPU seconds of reading every meta.json without looking into it."""
    wall, cpu = time.perf_counter(), time.process_time()
    held = os.open(root, os.O_RDONLY)
    for entry in os.scandir(held):
        fd = os.open(f"{entry.name}/meta.json", os.O_RDONLY, dir_fd=held)
        os.read(fd, 65_536)
        os.close(fd)
    os.close(held)
    return time.perf_counter() - wall, time.process_time() - cpu


async def ours(root: Path) -> tuple[float, float, float, float]:
    """Wall seconds to the first rows and to all, CPU seconds, the loop's longest stall."""
    wall, cpu = time.perf_counter(), time.process_time()
    feed = Feed(LedgerLook(root), Watch(root), ours=lambda _: False)
    first, longest = 0.0, [0.0]
    beating = asyncio.create_task(_heart(longest))
    async for batch in feed.batches():
        first = first or time.perf_counter() - wall
        if batch.complete:
            break
    took, spent = time.perf_counter() - wall, time.process_time() - cpu
    beating.cancel()
    await asyncio.wait({beating})
    await feed.close()
    return first, took, spent, longest[0]


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
        asyncio.run(ours(root))  # the first one also imports
        bare_s, our_s = [], []
        for _ in range(given.rounds):
            bare_s.append(bare(root))
            our_s.append(asyncio.run(ours(root)))
    middle = statistics.median
    floor_wall, floor_cpu = (middle(column) for column in zip(*bare_s, strict=True))
    first, every, cpu, stall = (middle(column) for column in zip(*our_s, strict=True))
    ratio = middle(mine[2] / floor[1] for mine, floor in zip(our_s, bare_s, strict=True))
    rows = [
        ("bare scandir + open + read", "", floor_wall, floor_cpu * 1000, 1.0, ""),
        ("feed, until complete", first, every, cpu * 1000, ratio, stall * 1000),
    ]
    facts = {"tasks": given.tasks, "first_rows_s": first, "all_rows_s": every}
    facts |= {"cpu_ms": cpu * 1000, "cpu_ratio": ratio, "longest_stall_ms": stall * 1000}
    heads = ("what", "first rows s", "all rows s", "CPU ms", "x bare", "loop stall ms")
    report("listing", heads, rows, facts)
