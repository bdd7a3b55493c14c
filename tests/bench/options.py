"""What an option costs a page: the same crawl without it and with it, in turn.

Each side is a process of its own, as in `crawl`. CPU is user + system of the side's whole process
tree, from the ready browser to the last page. `images` loads what `archive` loads, without an
archive. `proxy` goes through microsocks, whose own CPU is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.bench.crawl import SIDE_LIMIT_S, engine_side
from tests.bench.report import report
from tests.bench.sides import Race

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "headers": {"headers": ["X-Audit: yes"]},
    "device": {"device": "iPhone 13", "locale": "de-DE", "timezone": "Europe/Berlin"},
    "profile": {},
    "proxy": {},
    "images": {"block_resources": False},
    "archive": {"archive": "warc", "block_resources": False},
}


async def crawl_with(option: str, url: str, pages: int) -> dict[str, float]:
    """Crawl with one option and measure; `url` is the root of the pages."""
    from engine.profiles.profile import Profile

    given = dict(OPTIONS[option])
    if option == "profile":
        kept = Profile(name="bench", url=url, sites=("127.0.0.1",), created_at=1, signed_in_at=1)
        cookie = {"name": "session", "value": "a" * 32, "domain": "127.0.0.1", "path": "/"}
        given["profile"] = kept, {"cookies": [cookie], "origins": []}
    if option == "proxy":
        given["proxy"] = f"socks5://127.0.0.1:{os.environ['BENCH_PROXY_PORT']}"
    return await engine_side(url, pages, given)


@contextmanager
def socks_proxy() -> Iterator[None]:
    """Run microsocks on a free port, whose number the sides find in the environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ["BENCH_PROXY_PORT"] = port
    program = subprocess.Popen(
        ["microsocks", "-i", "127.0.0.1", "-p", port], stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        program.terminate()
        program.wait()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench options", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=sorted(OPTIONS), default=list(OPTIONS))
    parser.add_argument("--side", choices=sorted(OPTIONS), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.side:
        print(json.dumps(asyncio.run(crawl_with(given.side, given.url, given.pages))))
        return 0
    sides = [one for one in given.only if one != "proxy" or shutil.which("microsocks")]
    serve = [sys.executable, "-m", "fixtures.site", "--port", "0", "--pages", str(given.pages * 2)]
    with socks_proxy() if "proxy" in sides else open(os.devnull):
        race = Race("options", sides, SIDE_LIMIT_S)
        measured = race.run(serve, given.rounds, given.pages, "/js")
    keys = ("pages_s", "cpu_ms", "own_ms", "whole")
    middle = {
        side: {key: statistics.median(told[key] for told in runs) for key in keys}
        for side, runs in measured.items()
    }
    rows = [(side, *(middle[side][key] for key in keys)) for side in sides]
    facts = {f"cpu_ms_{side}": middle[side]["cpu_ms"] for side in sides}
    heads = ("option", "pages/s", "CPU ms/page", "of it Python", "whole pages")
    report("options", heads, rows, facts | {"rounds": given.rounds, "pages": given.pages})
    return 0
