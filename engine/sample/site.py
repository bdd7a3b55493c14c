"""Sample site: ordinary pages in trees and difficult pages, the same on every run.

`with Site(pages=50) as site:` serves it on a free port of 127.0.0.1; `python -m fixtures.site
--port 0 --pages 50` does so until it is interrupted.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from types import FrameType, TracebackType
from typing import Self

from engine.sample.command_site import command_answer
from engine.sample.oddities import odd_answer
from engine.sample.pages import TREES, page_html, page_json, path_of, shell
from engine.sample.server import HTML, Answer, Request, Server
from engine.sample.shop import shop_answer
from engine.sample.sitemaps import XML, sitemap_answer, urlset

_CACHED = (("Cache-Control", "max-age=3600"),)
_FRESH = (("Cache-Control", "no-store"),)
_BIRD = "bird.svg"
_TYPES = {"site.css": "text/css", "page.js": "text/javascript", _BIRD: "image/svg+xml"}


def _asset(name: str) -> Answer:
    body = files("engine.sample").joinpath("assets", name).read_bytes()
    return Answer(body, content_type=_TYPES[name], headers=_CACHED)


_ASSETS = {f"/assets/{name}": _asset(name) for name in _TYPES} | {"/favicon.ico": _asset(_BIRD)}
_MISSING = Answer(
    shell("Not found", "<main><h1>Not found</h1><p>There is no such note.</p></main>"), 404
)


class Site:
    """Running site; use it as a context manager, from any thread or loop.

    `url` has no slash at its end. `hits` counts requests by path (without the query), `log` has
    every one as (seconds on the monotonic clock, target). `robots` and `robots_status` may be
    changed while it runs; `robots=None` means the file of the site itself. Entries of `answers`, by
    path, override everything else.
    """

    def __init__(
        self,
        pages: int = 50,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        crawl_delay: float | None = None,
        robots: str | None = None,
        robots_status: int = 200,
    ) -> None:
        self.pages = pages
        self.crawl_delay = crawl_delay
        self.robots = robots
        self.robots_status = robots_status
        self.answers: dict[str, Answer] = {}
        self.hits: Counter[str] = Counter()
        self.log: list[tuple[float, str]] = []
        self._server = Server(self._answer, host, port)

    @property
    def url(self) -> str:
        return f"http://{self._server.host}:{self._server.port}"

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        """Start serving; raises OSError when the port is taken."""
        self._server.start()

    def stop(self) -> None:
        """Close every connection and the port."""
        self._server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _answer(self, request: Request) -> Answer:
        self.hits[request.path] += 1
        self.log.append((time.monotonic(), request.target))
        if request.path in self.answers:
            return self.answers[request.path]
        if request.path == "/robots.txt":
            return Answer(self._robots(), self.robots_status, "text/plain; charset=utf-8")
        if request.path == "/sitemap.xml":
            return Answer(self._sitemap(), content_type=XML)
        if request.path == "/busy":
            return self._busy(request)
        if request.path.startswith("/sitemaps/"):
            return sitemap_answer(request) or _MISSING
        made = self._page(request) or command_answer(request)
        made = made or shop_answer(request) or odd_answer(request)
        return _ASSETS.get(request.path) or made or _MISSING

    def _page(self, request: Request) -> Answer | None:
        path = request.path
        if path.startswith("/api/"):
            tree, number = self._place(path.removeprefix("/api"))
            body, content_type = page_json(tree, number, self.pages), "application/json"
        else:
            tree, number = self._place(path)
            body, content_type = page_html(tree, number, self.pages), HTML
        return Answer(body, content_type=content_type, headers=_FRESH) if tree else None

    def _place(self, path: str) -> tuple[str, int]:
        """Parse the tree and the page's number; the tree is empty when there is no such page."""
        tree, _, rest = path.removeprefix("/").partition("/")
        number = int(rest) if rest.isascii() and rest.isdigit() and len(rest) < 10 else 0
        tree = tree or "page"
        exists = tree in TREES and number <= self.pages and path == path_of(tree, number)
        return (tree, number) if exists else ("", 0)

    def _busy(self, request: Request) -> Answer:
        """Answer 503 with Retry-After for the first `times` requests (default 1), then a page."""
        if self.hits["/busy"] <= int(request.query.get("times", "1")):
            after = request.query.get("after", "1")
            return Answer(shell("Busy", "<p>Later.</p>"), 503, headers=(("Retry-After", after),))
        return Answer(shell("Free again", "<main><p>Here it is.</p></main>"))

    def _robots(self) -> bytes:
        if self.robots is not None:
            return self.robots.encode()
        delay = "" if self.crawl_delay is None else f"Crawl-delay: {self.crawl_delay:g}\n"
        rules = f"User-agent: *\nDisallow: /private/\n{delay}"
        return f"{rules}\nSitemap: {self.url}/sitemap.xml\n".encode()

    def _sitemap(self) -> bytes:
        return urlset(self.url + path_of("page", number) for number in range(self.pages + 1))


def stop_event() -> threading.Event:
    """Return an event that is set once this process is interrupted or terminated."""
    stopping = threading.Event()

    def leave(number: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    return stopping


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until interrupted or terminated; the first line printed is the address."""
    parser = argparse.ArgumentParser(prog="fixtures.site", description="Serve the sample site.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--pages", type=int, default=50, help="pages in each tree, beside its root")
    parser.add_argument("--crawl-delay", type=float, help="seconds, said in robots.txt")
    given = parser.parse_args(argv)
    stopping = stop_event()
    try:
        with Site(
            given.pages, host=given.host, port=given.port, crawl_delay=given.crawl_delay
        ) as site:
            sys.stdout.write(f"{site.url}\n")
            sys.stdout.flush()
            while not stopping.wait(0.5):  # a bare wait() cannot be interrupted on Windows
                pass
    except OSError as refused:
        reason = refused.strerror or refused
        parser.exit(1, f"The site cannot listen on {given.host}:{given.port}: {reason}\n")
    return 0
