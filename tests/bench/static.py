"""`engine static` on static pages against a bare aiohttp + selectolax loop that keeps the same.

Both walk the same site from its root with the same number of workers, resolve and level the
links, convert to the same Markdown and append the same line to a file. The rounds alternate;
what is judged is the median of pages per second. The site runs in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urldefrag, urljoin, urlsplit

import aiohttp
import msgspec
from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
from selectolax.lexbor import LexborHTMLParser

from engine.egress.egress_policy import Policy
from engine.kinds.crawl.crawl import crawl
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.model.records import Units
from engine.pages.static_engine import open_static
from tests.support.memory_context import MemoryContext

AIM = 0.7


async def bare(url: str, pages: int, workers: int, out: IO[bytes]) -> int:
    """The loop a programmer would write for this site alone."""
    options = ConversionOptions(
        extract_metadata=False, preprocessing=PreprocessingOptions(enabled=False)
    )
    queue: asyncio.Queue[str] = asyncio.Queue()
    queue.put_nowait(url)
    seen, origin, kept = {url}, urlsplit(url).netloc, 0

    async def work(session: aiohttp.ClientSession) -> None:
        nonlocal kept
        while kept < pages:
            at = await queue.get()
            async with session.get(at) as response:
                html = await response.text()
            tree = LexborHTMLParser(html)
            for anchor in tree.css("a[href]"):
                link = urldefrag(urljoin(at, anchor.attributes["href"] or ""))[0]
                if link not in seen and urlsplit(link).netloc == origin:
                    seen.add(link)
                    queue.put_nowait(link)
            title = tree.css_first("title")
            if kept >= pages:
                break
            kept += 1
            page = {
                "url": at,
                "status": response.status,
                "title": title.text() if title else "",
                "content": convert(html, options).content,
                "bytes": len(html),
            }
            out.write(msgspec.json.encode(page) + b"\n")

    async with aiohttp.ClientSession() as session:
        tasks = [asyncio.create_task(work(session)) for _ in range(workers)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return kept


async def ours(url: str, pages: int, workers: int, out: IO[bytes]) -> int:
    given = {"url": url, "max_pages": pages, "max_depth": 100, "concurrency": workers}
    args = parse_crawl({**given, "delay_ms": 0, "engine": "static"})

    @asynccontextmanager
    async def open_fetcher(engine, asked):
        async with open_static(Policy.for_start(args.url)) as fetcher:
            yield fetcher

    def keep(page: dict[str, Any], units: Units) -> None:
        out.write(msgspec.json.encode(page) + b"\n")

    ctx = MemoryContext(on_page=keep)
    outcome = await crawl(args, ctx, open_fetcher)
    return outcome.succeeded


def measured(walk, url: str, pages: int, workers: int) -> tuple[float, float]:
    """Pages per second, and CPU milliseconds of this process per page."""
    gc.collect()
    with tempfile.TemporaryDirectory() as place, Path(place, "pages.jsonl").open("ab") as out:
        wall, cpu = time.perf_counter(), time.process_time()
        kept = asyncio.run(walk(url, pages, workers, out))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert kept == pages, f"{walk.__name__} kept {kept} of {pages}"
    return pages / wall, cpu / pages * 1_000


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench static")
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args(argv)
    command = [sys.executable, "-m", "fixtures.site", "--pages", str(given.pages + 10)]
    site = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert site.stdout is not None
    try:
        url = site.stdout.readline().strip() + "/static/"
        rows = _rounds(url, given.pages, given.rounds, given.workers)
    finally:
        site.terminate()
        site.communicate(timeout=10)
    return _report(rows, given.pages)


def _rounds(url: str, pages: int, rounds: int, workers: int) -> list[tuple[float, ...]]:
    for walk in (bare, ours):  # imports and caches are not what is measured
        measured(walk, url, min(pages, 50), workers)
    rows: list[tuple[float, ...]] = []
    print(
        f"{'round':>5} {'bare p/s':>9} {'ours p/s':>9} {'ratio':>6} {'bare cpu':>9} {'ours cpu':>9}"
    )
    for number in range(1, rounds + 1):
        reference, own = (measured(walk, url, pages, workers) for walk in (bare, ours))
        rows.append((*reference, *own))
        print(
            f"{number:>5} {reference[0]:>9.0f} {own[0]:>9.0f} {own[0] / reference[0]:>6.2f}"
            f" {reference[1]:>9.2f} {own[1]:>9.2f}"
        )
    return rows


def _report(rows: list[tuple[float, ...]], pages: int) -> int:
    bare_speed, bare_cpu, own_speed, own_cpu = map(statistics.median, zip(*rows, strict=True))
    ratio = statistics.median(row[2] / row[0] for row in rows)
    told = {
        "bench": "static",
        "pages": pages,
        "rounds": len(rows),
        "bare_pages_per_s": round(bare_speed, 1),
        "ours_pages_per_s": round(own_speed, 1),
        "ratio": round(ratio, 3),
        "bare_cpu_ms": round(bare_cpu, 3),
        "ours_cpu_ms": round(own_cpu, 3),
        "aim": AIM,
        "ok": ratio >= AIM,
    }
    print(json.dumps(told))
    return 0 if ratio >= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
