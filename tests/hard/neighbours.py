"""Hostile pages and programs beside honest pages: none affects another.

Each flood stands in the middle of 24 honest pages, which take what pages of a documentation
take: 20 kB of text, a style sheet, a script that asks for more and writes it, and a server
that answers after 150 ms. Two times count: when the last honest page was kept, and when the
crawl ended, for which the flood's own limit is added. Then 2,000 silent connections of another
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
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from engine.browser.chromium.browser_session import BrowserSession
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.records import Units
from engine.sample.site import Answer, Request
from tests.hard.figures import Figures, most_s
from tests.supervision.conftest import Place, browsers, crawled, until
from tests.support.memory_context import MemoryContext

HONEST = 24
ROUNDS = 5
SLOWER = 3.0  # times the undisturbed crawl
LIMIT_MS = 10_000  # of one page
SERVER_S = 0.15  # before each answer of an honest page
WORDS = 3_000  # of an honest page
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
    "print": _LOOP.format("print()"),
    "database": "const asked = indexedDB.open('fill');"
    " asked.onupgradeneeded = () => asked.result.createObjectStore('all');"
    " asked.onsuccess = function go() {"
    " const change = asked.result.transaction('all', 'readwrite');"
    " change.objectStore('all').put(new Uint8Array(8e6), Math.random());"
    " change.oncomplete = change.onabort = go }",
    "writing": _LOOP.format("document.write('<p>' + 'x'.repeat(1000))"),
    "title": _LOOP.format("document.title = at++ + 'x'.repeat(1e6)"),
    "broadcast": "const far = [new BroadcastChannel('a'), new BroadcastChannel('a')];"
    + _LOOP.format("far[0].postMessage('x'.repeat(1e5))"),
    "frames": "onload = () => { for (let at = 0; at < 1e5; at += 1)"
    " document.body.append(document.createElement('iframe')) }",
    "loop": "for (;;);",
    "connections": "for (let at = 0; at < 50; at += 1)"
    " fetch(`/never?${at}`, { keepalive: true }).catch(() => 0)",
}
QUIET, BY_HEADERS, STRANGERS = "undisturbed", "headers", "strangers"
ALL = [*FLOODS, BY_HEADERS]
HEADERS = tuple(("Set-Cookie", f"c{at}={'x' * 1200}; path=/; HttpOnly") for at in range(35))
_STYLE = "".join(f".part-{at} {{ margin: {at}px; color: #123 }}\n" for at in range(400))
_SCRIPT = """fetch("/more.json").then((answer) => answer.json()).then((rows) => {
  const list = document.querySelector("#more");
  for (const row of rows) list.append(`${row} `);
});"""
_PARTS = '<link rel="stylesheet" href="/style.css"><script defer src="/script.js"></script>'
_ROWS = "[" + ", ".join(f'"row {at} of what the script wrote"' for at in range(50)) + "]"


class _Place(Place):
    """Honest pages of realistic weight; refuses what a server with a limit of 8 kB refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.honest = [f"/{number}" for number in range(HONEST)]
        for path in self.honest:
            text = "".join(
                f'<h2 class="part-{part}">Part {part} of {path}</h2><p>{"words " * 100}</p>'
                for part in range(WORDS // 100)
            )
            self.pages[path] = f'{_PARTS}<h1>{path}</h1><p id="more"></p>{text}'
        self.pages["/"] = self.links(*self.honest[:8], "/flood", *self.honest[8:])
        self._files = {
            "/style.css": (_STYLE, "text/css"),
            "/script.js": (_SCRIPT, "text/javascript"),
            "/more.json": (_ROWS, "application/json"),
        }

    def flood(self, script: str) -> None:
        self.acts.clear()
        self.pages["/flood"] = f"<p>flood</p><script>{script}</script>"

    def flood_by_headers(self) -> None:
        self.acts["/flood"] = lambda: Answer(b"<p>flood</p>", headers=HEADERS)

    def _answer(self, request: Request) -> Answer:
        if len(request.headers.get("cookie", "")) > 8_190:
            return Answer(b"", 431)
        if request.path == "/never":
            return Answer(stops="before")
        if request.path in self._files:
            body, kind = self._files[request.path]
            return Answer(body.encode(), content_type=kind, delay_s=SERVER_S)
        answer = super()._answer(request)
        return replace(answer, delay_s=SERVER_S) if request.path in self.honest else answer


class Crawled(NamedTuple):
    """Seconds to the last honest page and to the end, honest pages that are whole, what became
    of the flood, and processes that were left behind."""

    honest_s: float
    whole_s: float
    honest: int
    flood: str
    left: int = 0


async def beside(home: Path, place: _Place) -> Crawled:
    """Crawl the place once, in a browser of its own that runs already."""
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    await session.warm()
    began_s, kept_s = time.monotonic(), 0.0
    kept: dict[str, dict[str, Any]] = {}

    def on_page(page: dict[str, Any], _: Units) -> None:
        nonlocal kept_s
        path = page["url"].removeprefix(place.url)
        assert path not in kept, "a page stands there twice"
        kept[path] = page
        if path in place.honest:
            kept_s = time.monotonic() - began_s

    asked = {"url": place.url, "delay_ms": 0, "respect_robots": False, "concurrency": 3}
    asked |= {"max_pages": 50, "timeout_ms": LIMIT_MS, "retries": 0}
    kind, settings = KINDS["crawl"], Settings(home=home, root=home / "tasks")
    try:
        await kind.body(kind.parse(asked), MemoryContext(on_page=on_page), Tools(settings, session))
    finally:
        whole_s = time.monotonic() - began_s
        await session.aclose()
    fine = [path for path in place.honest if _is_whole(kept.get(path, {}))]
    return Crawled(kept_s, whole_s, len(fine), kept["/flood"].get("error", "kept"))


def _is_whole(page: dict[str, Any]) -> bool:
    """Is it there with what its script wrote?"""
    return "error" not in page and "row 49 of" in str(page.get("content"))


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
            for lane in list(session.proxy._listeners)[1:] * 50 * (len(held) < most):
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


def measure(*, short: bool, only: Sequence[str] = (), rounds: int = 0) -> Figures:
    """`only`: floods by name, or `strangers` for the silent connections."""
    facts: dict[str, Any] = {}
    misses: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        place = _Place()
        place.server.start()
        try:
            names = _chosen(only) if only else ["cookies"] if short else ALL
            rounds = rounds or (1 if short else ROUNDS)
            _measure_floods(Path(folder), place, facts, misses, names, rounds, short=short)
        finally:
            place.server.stop()
        if sys.platform == "linux" and (STRANGERS in only or not only):
            pages, most = (40, 700) if short else (400, 2_000)
            facts["beside_strangers"] = asyncio.run(strangers(Path(folder), pages, most))
            if facts["beside_strangers"] != pages:
                misses.append(
                    f"{facts['beside_strangers']} of {pages} pages beside {most} strangers"
                )
    return Figures("one bad neighbour costs nobody else", facts, misses)


def _chosen(only: Sequence[str]) -> list[str]:
    unknown = set(only) - {*ALL, STRANGERS}
    if unknown:
        raise SystemExit(f"Parts of neighbours are: {', '.join([*ALL, STRANGERS])}")
    return [name for name in ALL if name in only]


def _measure_floods(
    home: Path,
    place: _Place,
    facts: dict[str, Any],
    misses: list[str],
    names: Sequence[str],
    rounds: int,
    *,
    short: bool,
) -> None:
    """Every flood in each round, beside the undisturbed crawls of the same round."""
    for _ in range(rounds if names else 0):
        quiet_s = _crawled(home, place, QUIET, facts).honest_s
        for name in names:
            found = _crawled(home, place, name, facts)
            misses += _missed(name, found, quiet_s, short=short)


def _crawled(home: Path, place: _Place, name: str, facts: dict[str, Any]) -> Crawled:
    place.flood(FLOODS.get(name, "0"))
    if name == BY_HEADERS:
        place.flood_by_headers()
    found = asyncio.run(beside(home, place))
    left = 0 if until(lambda: not browsers(), 5) else len(browsers())
    found = found._replace(left=left)
    told = f"{found.honest_s:.1f} and {found.whole_s:.1f} s, {found.honest}, {found.flood};"
    facts[name] = f"{facts.get(name, '')} {told}".strip()
    print(f"{name}: {told} load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    return found


def _missed(name: str, found: Crawled, quiet_s: float, *, short: bool) -> list[str]:
    misses = []
    if found.honest != HONEST or found.left:
        misses.append(f"{name}: {found.honest} of {HONEST} pages, {found.left} processes left")
    if found.honest_s > most_s(SLOWER * quiet_s, short=short):
        misses.append(f"{name}: honest pages {found.honest_s:.1f} s, undisturbed {quiet_s:.1f} s")
    if found.whole_s > most_s(SLOWER * quiet_s, short=short) + LIMIT_MS / 1_000:
        misses.append(f"{name}: in all {found.whole_s:.1f} s, undisturbed {quiet_s:.1f} s")
    return misses
