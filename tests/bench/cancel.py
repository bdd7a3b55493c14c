"""From a cancel request in another process to CANCELLED on disk, also inside a page that hangs."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.service.engine import Engine
from fixtures.site.site import Site
from tests.bench.report import report

LIMIT_S = 2.0
REPO = Path(__file__).resolve().parents[2]


def _cancel_from_outside(root: str) -> None:
    """A process of its own: cancels what it is told and measures until CANCELLED is on disk."""
    ledger = Ledger(Path(root))
    for line in sys.stdin:
        task_id = line.strip()
        began = time.monotonic()
        ledger.request_cancel(task_id, "bench")
        path = os.path.join(root, task_id, "meta.json")
        while json.loads(Path(path).read_bytes())["status"] == "RUNNING":
            if time.monotonic() - began > 60:
                break
            time.sleep(0.002)  # no event to wait for: another process changes it
        print(time.monotonic() - began, flush=True)


async def _one(
    engine: Engine, site: Site, hangs: bool, other: subprocess.Popen[str]
) -> tuple[float, bool]:
    url = site.url + ("/hang" if hangs else "/js/1")
    args = {"url": url, "delay_ms": 0, "max_pages": 1_000, "max_depth": 50, "respect_robots": False}
    before = site.hits["/hang"]
    task_id = (await engine.requests.start("crawl", args)).task_id
    pages = engine.settings.root / task_id / "pages.jsonl"
    async with asyncio.timeout(60):
        while not (site.hits["/hang"] > before if hangs else pages.exists()):
            await asyncio.sleep(0.01)
    took = await asyncio.to_thread(_ask, other, task_id)
    await engine.tasks.join(task_id)
    return took, await asyncio.to_thread(_all_kept, engine.settings.root / task_id)


def _ask(other: subprocess.Popen[str], task_id: str) -> float:
    asks, answers = other.stdin, other.stdout
    assert asks is not None
    assert answers is not None
    print(task_id, file=asks, flush=True)
    return float(answers.readline())


def _all_kept(folder: Path) -> bool:
    """Is every finished page in the partial result, and the state CANCELLED?"""
    if json.loads((folder / "meta.json").read_bytes())["status"] != "CANCELLED":
        return False
    kept = folder / "pages.jsonl"
    if not kept.exists():
        return True
    pages = [json.loads(line) for line in kept.read_bytes().splitlines()]
    result: dict[str, Any] = json.loads((folder / "result.json").read_bytes())
    return bool(result["pages"] == pages and result["summary"]["total_pages"] == len(pages))


async def rounds(tries: int) -> tuple[list[float], list[float], int]:
    with tempfile.TemporaryDirectory() as home, Site(pages=500) as site:
        settings = Settings.at(home=Path(home))
        engine = Engine(settings, accepts=True)
        await engine.open()
        await engine.warm()
        command = [sys.executable, "-m", "tests.bench.cancel", "--work", str(settings.root)]
        other = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPO
        )
        try:
            took: tuple[list[float], list[float]] = ([], [])
            kept = 0
            for number in range(tries):
                seconds, whole = await _one(engine, site, bool(number % 2), other)
                took[number % 2].append(seconds)
                kept += whole
        finally:
            await engine.close()
            await asyncio.to_thread(other.communicate)  # its input ends, and so does it
        return *took, kept


def main(argv: list[str]) -> None:
    if argv[:1] == ["--work"]:
        _cancel_from_outside(argv[1])
        return
    parser = argparse.ArgumentParser(prog="bench cancel", description=__doc__)
    parser.add_argument("--tries", type=int, default=50)
    tries = parser.parse_args(argv).tries
    loading, hanging, kept = asyncio.run(rounds(tries))
    rows = [
        (name, len(values), statistics.median(values), max(values))
        for name, values in (("while pages load", loading), ("inside a page that hangs", hanging))
    ]
    worst = max(loading + hanging)
    report(
        "cancel",
        ("case", "tries", "median s", "longest s"),
        rows,
        {"tries": tries, "longest_s": worst, "limit_s": LIMIT_S, "all_pages_kept": kept},
    )


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
