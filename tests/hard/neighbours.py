"""Hostile pages and programs beside honest pages: what one does costs no other one.

Each flood stands in the middle of 24 honest pages; then 2,000 silent connections of another
program meet a crawl of 400 pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.browser.session import BrowserSession
from engine.sample.server import Answer
from tests.hard.figures import Figures, most_s
from tests.supervision.conftest import Place, browsers, crawled, until

HONEST = 24
ROUNDS = 5
SLOWER = 3.0  # times the undisturbed crawl
LIMIT_MS = 10_000  # of one page
BEHIND = "127.0.0.2"  # this machine by a spelling for which the browser asks its proxy
_LOOP = "onload = () => {{ let at = 0; for (;;) {} }}"
FLOODS = {
    "cookies": "for (let at = 0; at < 100; at += 1)"
    " document.cookie = `c${at}=${'x'.repeat(1200)}; path=/`",
    "storage": "try { for (let at = 0;; at += 1) localStorage[at] = 'x'.repeat(1e5) } catch {}",
    "memory": "kept = []; setTimeout(() => { for (;;) kept.push(new Uint8Array(8e6).fill(1)) })",
    "hash": _LOOP.format("location.hash = at += 1"),
    "history": _LOOP.format("try { history.pushState(null, '', `?${at += 1}`) } catch {}"),
    "console": _LOOP.format("console.log('x'.repeat(1000))"),
    "timers": "(function go() { for (let at = 0; at < 1000; at += 1) setTimeout(go) })()",
    "popups": _LOOP.format("open('/0')"),
}
HEADERS = tuple(("Set-Cookie", f"c{at}={'x' * 1200}; path=/; HttpOnly") for at in range(35))


class _Place(Place):
    """Refuses what a server with the common limit of 8 kB refuses."""

    def _answer(self, request: Any) -> Answer:
        too_large = len(request.headers.get("cookie", "")) > 8_190
        return Answer(b"", 431) if too_large else super()._answer(request)


async def beside(home: Path, place: Place) -> tuple[float, int, str]:
    """Seconds, honest pages that were kept, and what became of the flood."""
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    began_s = time.monotonic()
    try:
        kept = await crawled(
            session, home, place.url, concurrency=3, max_pages=50, timeout_ms=LIMIT_MS, retries=0
        )
    finally:
        took_s = time.monotonic() - began_s
        await session.aclose()
    fine = [path for path, page in kept.items() if "error" not in page and path != "/flood"]
    return took_s, len(fine) - 1, kept["/flood"].get("error", "kept")


async def strangers(home: Path, pages: int, most: int) -> int:
    """How many of `pages` are kept while `most` connections to the proxy say nothing."""
    place, paths = Place(BEHIND), [f"/{number}" for number in range(1, pages)]
    place.pages = dict.fromkeys(paths, "<p>fine</p>") | {"/": place.links(*paths)}
    place.server.start()
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    held: list[socket.socket] = []
    try:
        crawling = asyncio.create_task(
            crawled(session, home, place.url, concurrency=3, max_pages=pages, retries=0)
        )
        while not crawling.done():
            for lane in list(session.proxy._lanes)[1:] * 50 * (len(held) < most):
                one = socket.socket()
                one.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    one.connect(("127.0.0.1", lane.port))
                held.append(one)
            await asyncio.sleep(0.005)
        return sum("error" not in page for page in (await crawling).values())
    finally:
        for one in held:
            one.close()
        await session.aclose()
        place.server.stop()


def measure(*, short: bool) -> Figures:
    facts: dict[str, Any] = {}
    misses: list[str] = []
    names = ["cookies", "console"] if short else [*FLOODS, "header cookies"]
    pages, most = (40, 700) if short else (400, 2_000)
    with tempfile.TemporaryDirectory() as folder:
        place = _Place()
        honest = [f"/{number}" for number in range(HONEST)]
        place.pages = {path: f"<h1>{path}</h1>" for path in honest}
        place.pages["/"] = place.links(*honest[:8], "/flood", *honest[8:])
        place.server.start()
        place.pages["/flood"] = "<p>quiet</p>"
        quiet_s, _, _ = asyncio.run(beside(Path(folder), place))
        facts["undisturbed_s"] = round(quiet_s, 1)
        for name in names:
            for _ in range(1 if short else ROUNDS):
                place.acts.clear()
                if name in FLOODS:
                    place.pages["/flood"] = f"<p>flood</p><script>{FLOODS[name]}</script>"
                else:
                    place.acts["/flood"] = lambda: Answer(b"<p>flood</p>", headers=HEADERS)
                took_s, fine, flood = asyncio.run(beside(Path(folder), place))
                left = 0 if until(lambda: not browsers(), 5) else len(browsers())
                facts[name] = f"{facts.get(name, '')} {took_s:.1f} s, {fine}, {flood};".strip()
                if fine != HONEST or left:
                    misses.append(f"{name}: {fine} of {HONEST} honest pages, {left} processes left")
                if took_s > most_s(SLOWER * quiet_s, short=short):
                    misses.append(f"{name}: {took_s:.1f} s, {quiet_s:.1f} s undisturbed")
        place.server.stop()
        if sys.platform == "linux":
            facts["beside_strangers"] = asyncio.run(strangers(Path(folder), pages, most))
            if facts["beside_strangers"] != pages:
                misses.append(
                    f"{facts['beside_strangers']} of {pages} pages beside {most} strangers"
                )
    return Figures("one bad neighbour costs nobody else", facts, misses)
