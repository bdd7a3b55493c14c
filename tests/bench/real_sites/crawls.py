"""Tasks of the engine in another process: their results, and the CPU time of the process tree."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.crawl import cpu_s

LIMIT_S = 540
Job = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Kept:
    """What a task left. `cpu_s` is of Python and the browser, from the ready browser to its end."""

    status: str
    cpu_s: float
    pages: list[dict[str, Any]]
    result: dict[str, Any]
    dom: str

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = self.result.get("summary", {})
        return found


def crawl(url: str, **args: Any) -> Job:
    """A crawl from `url` with the program's defaults, but for its delay, its depth and `args`."""
    return "crawl", {"url": url, "delay_ms": 0, "output_format": "text", "max_depth": 100, **args}


def run(jobs: Sequence[Job]) -> list[Kept]:
    """Run the jobs as `run_in` does, their ledger in a folder that goes then."""
    with tempfile.TemporaryDirectory() as home:
        told = run_in(Path(home), jobs)
        return [_kept(Path(home, "tasks", one["task_id"]), one) for one in told]


def run_in(home: Path, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Run the jobs one after another in one new process, and return what it tells of each.

    Raises:
        SystemExit: the process failed, for example because an argument is not known.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.real_sites.crawls", str(home)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-1_000:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def _kept(folder: Path, told: Mapping[str, Any]) -> Kept:
    pages, result, dom = (
        place.read_text("utf-8") if place.exists() else ""
        for place in (folder / "pages.jsonl", folder / "result.json", folder / "artifacts/dom.html")
    )
    lines = [json.loads(line) for line in pages.splitlines()]
    return Kept(told["status"], told["cpu_s"], lines, json.loads(result or "{}"), dom)


async def _run(home: Path, jobs: Sequence[Job]) -> None:
    from engine.model.config import Settings
    from engine.service.engine import Engine

    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    try:
        if any(args.get("engine") != "static" for _, args in jobs):
            await engine.warm()
        for kind, args in jobs:
            before = cpu_s()
            started = await engine.requests.start(kind, args)
            ended = await engine.tasks.wait(started.task_id, LIMIT_S * 1_000)
            told = {"task_id": started.task_id, "status": ended.status, "cpu_s": cpu_s() - before}
            print(json.dumps(told), flush=True)
    finally:
        await engine.close()


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), json.load(sys.stdin)))
