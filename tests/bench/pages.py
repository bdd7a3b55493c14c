"""A crawl of many small static pages beside one of few: memory must not grow with the pages.

Each crawl is a program of its own (`octask start crawl`), the site another. What is judged
is the highest resident size of the large crawl over the small one's, and that its last
pages come as quickly as its first. Then the result is read and exported in every format,
and measured the same way.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from engine.export.exporter import FORMATS
from tests.bench.report import report

AIM_MB = 60.0  # what 20,000 pages may take more than 200
SLOWER = 0.7  # the last fifth of the pages against the first, in pages per second
LOOK_S = 0.02
MB = 1_000_000


class Measured(NamedTuple):
    """One program: its highest resident size in MB, its seconds, CPU seconds and output."""

    peak_mb: float
    wall_s: float
    cpu_s: float
    said: str


def measured(words: Sequence[str], place: Path) -> Measured:
    """Run `octask WORDS` to its end."""
    began = time.perf_counter()
    with Path(place, "said").open("w+b") as said:
        command = [sys.executable, "-m", "engine.cli", *words]
        program = psutil.Popen(command, stdout=said, stdin=subprocess.DEVNULL)
        peak, cpu = _watched(program)
        said.seek(0)
        assert program.wait() == 0, f"octask {words[0]} ended with {program.returncode}"
        return Measured(peak / MB, time.perf_counter() - began, cpu, said.read(200_000).decode())


def _watched(program: psutil.Popen) -> tuple[float, float]:
    peak = cpu = 0.0
    while program.poll() is None:
        try:
            peak = max(peak, _peak_bytes(program))
            cpu = sum(program.cpu_times()[:2])
        except (psutil.Error, OSError):
            break
        time.sleep(LOOK_S)  # the period of the measurement
    return peak, cpu


def _peak_bytes(program: psutil.Popen) -> float:
    """The system's own high-water mark where it keeps one: no sample can miss a peak then."""
    status = Path(f"/proc/{program.pid}/status")
    if status.exists():
        for line in status.read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    memory = program.memory_info()
    return float(getattr(memory, "peak_wset", memory.rss))


@contextmanager
def served(pages: int) -> Iterator[str]:
    """The sample site with that many pages, in a process of its own; yields its static root."""
    command = [sys.executable, "-m", "fixtures.site", "--pages", str(pages)]
    site = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert site.stdout is not None
    try:
        yield site.stdout.readline().strip() + "/static/"
    finally:
        site.terminate()
        site.communicate(timeout=10)


def crawled(pages: int, workers: int, home: Path) -> tuple[str, Measured]:
    """A crawl of exactly `pages` pages; its task id and what it took."""
    with served(pages + 10) as url:
        options = ["--max-pages", pages, "--max-depth", 100, "--delay-ms", 0]
        options += ["--engine", "static", "--concurrency", workers, "--home", home, "--json"]
        taken = measured(["start", "crawl", url, *map(str, options)], home)
    record = json.loads(taken.said)
    assert record["engine"]["units"]["done"] == pages, record
    return record["task_id"], taken


def speeds(home: Path, task_id: str) -> tuple[float, float]:
    """Pages per second of the first and of the last fifth, by the times in events.jsonl."""
    lines = Path(home, "tasks", task_id, "events.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    times = [event["ts"] for event in events if event["kind"] == "progress"]
    fifth = max(2, len(times) // 5)

    def speed(part: list[int]) -> float:
        return (len(part) - 1) / max(0.001, (part[-1] - part[0]) / 1000)

    return speed(times[:fifth]), speed(times[-fifth:])


def read_back(home: Path, task_id: str) -> list[tuple[str, Measured]]:
    """The result as `get --result` copies it, and each format of `export`."""
    place = ["--home", str(home)]
    rows = [("get --result", measured(["get", task_id, "--result", *place], home))]
    for form in FORMATS:
        out = ["--format", form, "-o", str(home / f"export.{form}")]
        rows.append((f"export {form}", measured(["export", task_id, *out, *place], home)))
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench pages")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--few", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="bench-pages-") as place:
        few_home, many_home = Path(place, "few"), Path(place, "many")
        few_home.mkdir()
        many_home.mkdir()
        few_id, few = crawled(given.few, given.workers, few_home)
        many_id, many = crawled(given.pages, given.workers, many_home)
        first, last = speeds(many_home, many_id)
        small, large = read_back(few_home, few_id), read_back(many_home, many_id)
    rows = [
        ("crawl", few, many),
        *((name, a, b) for (name, a), (_, b) in zip(small, large, strict=True)),
    ]
    return _report(given, rows, first, last)


def _report(
    given: argparse.Namespace, rows: list[tuple[str, Measured, Measured]], first: float, last: float
) -> int:
    heads = ("what", f"{given.few} MB", f"{given.pages} MB", "+MB", "wall s", "cpu s")
    table = [
        (name, few.peak_mb, many.peak_mb, many.peak_mb - few.peak_mb, many.wall_s, many.cpu_s)
        for name, few, many in rows
    ]
    grown = table[0][3]
    facts: dict[str, Any] = {
        "pages": given.pages,
        "few": given.few,
        "workers": given.workers,
        "grown_mb": grown,
        "aim_mb": AIM_MB,
        "pages_per_s": given.pages / rows[0][2].wall_s,
        "first_fifth_pages_per_s": first,
        "last_fifth_pages_per_s": last,
        "grown_mb_by": {name: round(more, 1) for name, _, _, more, _, _ in table},
        "ok": grown <= AIM_MB and last >= SLOWER * first,
    }
    report("pages", heads, table, facts)
    return 0 if facts["ok"] else 1


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[2])
    sys.exit(main())
