"""`concurrency: auto` against a fixed number of pages at once, on sites with different limits.

`latency`: each page takes 500 ms, whatever the number. `cpu`: pages that this machine is busy with
(a script that computes; with the static engine the pages of the sample site). `limit`: each page
takes 200 ms, and more than six at once are refused with 429 and `Retry-After: 1`. The sides are
crawls of the engine, each in a process of its own, in turn; the site runs in another one. Judged is
the median of pages per second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import threading
import time
import urllib.request

from engine.sample.site import Answer, Request, Server
from tests.bench.crawl import engine_side
from tests.bench.report import report
from tests.bench.sides import Race

SIDES = ("2", "4", "8", "auto")
SITES = ("latency", "cpu", "limit")
SIDE_LIMIT_S = 600
LATENCY_S, LIMITED_S, ALLOWED = 0.5, 0.2, 6
WORK = "<script>let sum = 0; for (let at = 0; at < 8e6; at++) sum += Math.sqrt(at) % 7;</script>"


class SlowSite:
    """A page with `pages` links to others; each takes `delay_s`, and `allowed` of them at once.

    `work` is a script of each page.
    """

    def __init__(self, pages: int, delay_s: float, allowed: int = 1_000, work: str = "") -> None:
        links = "".join(f'<a href="/page/{number}">Page {number}</a> ' for number in range(pages))
        self._body = f"<title>List</title><p>{links}</p>".encode()
        self._page = f"<title>Page</title><p>One page.</p>{work}".encode()
        self._delay_s, self._allowed = delay_s, allowed
        self._ends: list[float] = []
        self.refused = 0

    def answer(self, request: Request) -> Answer:
        if request.path == "/refused":
            return Answer(str(self.refused).encode())
        now_s = time.monotonic()
        self._ends = [end_s for end_s in self._ends if end_s > now_s]
        if len(self._ends) >= self._allowed:
            self.refused += 1
            return Answer(b"too many", 429, headers=(("Retry-After", "1"),))
        self._ends.append(now_s + self._delay_s)
        body = self._body if request.path == "/" else self._page
        return Answer(body, delay_s=self._delay_s)


def serve(site: str, pages: int) -> None:
    """Serve a slow site until the process is ended."""
    made = {
        "latency": SlowSite(pages, LATENCY_S),
        "limit": SlowSite(pages, LIMITED_S, ALLOWED),
        "cpu": SlowSite(pages, 0.0, work=WORK),
    }
    server = Server(made[site].answer, "127.0.0.1", 0)
    server.start()
    print(f"http://127.0.0.1:{server.port}", flush=True)
    threading.Event().wait()


def refused(url: str) -> int:
    with urllib.request.urlopen(f"{url}/refused") as answer:
        return int(answer.read())


async def side_of(url: str, pages: int, engine: str, side: str, site: str) -> dict[str, float]:
    """Crawl with this number of pages at once."""
    before = refused(url) if site != "cpu" else 0
    at_once = side if side == "auto" else int(side)
    options = {"engine": engine, "concurrency": at_once, "respect_robots": False}
    told = await engine_side(url, pages, options)
    told["refused"] = refused(url) - before if site != "cpu" else 0
    return told


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench concurrency", description=__doc__)
    parser.add_argument("--site", choices=SITES, default="latency")
    parser.add_argument("--engine", choices=("browser", "static"), default="static")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.serve:
        serve(given.site, given.pages)
    elif given.side:
        engine, site, at_once = given.side.split("-")
        told = asyncio.run(side_of(given.url, given.pages, engine, at_once, site))
        print(json.dumps(told))
    else:
        _race(given)
    return 0


def _race(given: argparse.Namespace) -> None:
    names = [f"{given.engine}-{given.site}-{side}" for side in SIDES]
    words = [sys.executable, "-m"]
    if (given.site, given.engine) == ("cpu", "static"):
        words += ["fixtures.site", "--port", "0", "--pages", str(given.pages * 2)]
        path = "/static"
    else:
        words += ["tests.bench", "concurrency", "--serve", "--site", given.site]
        words += ["--pages", str(given.pages * 2)]
        path = ""
    measured = Race("concurrency", names, SIDE_LIMIT_S).run(words, given.rounds, given.pages, path)
    middle = {
        side: [
            statistics.median(told[key] for told in measured[name])
            for key in ("pages_s", "cpu_ms", "refused")
        ]
        for side, name in zip(SIDES, names, strict=True)
    }
    best = max(pages_s for side, (pages_s, *_) in middle.items() if side != "auto")
    facts = {
        "site": given.site,
        "engine": given.engine,
        "rounds": given.rounds,
        "pages": given.pages,
        "auto_of_best_fixed": middle["auto"][0] / best,
        "auto_of_4": middle["auto"][0] / middle["4"][0],
    }
    heads = ("at once", "pages/s", "CPU ms/page", "refused")
    report("concurrency", heads, [(side, *told) for side, told in middle.items()], facts)
