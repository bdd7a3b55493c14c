"""Sample site: ordinary pages in trees, difficult pages and sitemaps, the same on every run.

`with Site(pages=50) as site:` serves it on a free port of 127.0.0.1; `python -m fixtures.site
--port 0 --pages 50` does so until it is interrupted. Only `/sitemaps/index.xml` links to the bad
sitemaps, so that no other crawl meets them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape
from importlib.resources import files
from types import FrameType, TracebackType
from typing import Final, Self

from engine.sample.oddities import odd_answer
from engine.sample.pages import TREES, page_html, page_json, path_of, shell, shop_answer
from engine.sample.server import HTML, Answer, Request, Server

LOGIN: Final = ("user@example.com", "password123")  # the login of the example
_ARTICLES: Final = ("Artificial Intelligence", "Grey heron", "Rain gauge")


def _page(title: str, body: str) -> Answer:
    return Answer(shell(title, f"<main>{body}</main>"))


# The server reads no bodies, so the page checks the login itself; no input gets into an address.
_LOGIN = f"""<h1>Log in</h1><form id="login-form">
<p><label>Email <input id="email" type="email"></label></p>
<p><label>Password <input id="password" type="password"></label></p>
<p><button id="login-btn" type="submit">Log in</button></p></form><p id="wrong" hidden></p>
<script>
const form = document.querySelector('#login-form');
form.addEventListener('submit', (event) => {{
  event.preventDefault();
  const given = [form.email.value, form.password.value];
  const known = {json.dumps(LOGIN)};
  if (given[0] === known[0] && given[1] === known[1]) {{
    sessionStorage.setItem('who', given[0]);
    setTimeout(() => location.assign('/dashboard'), 50);
  }} else {{
    const wrong = document.querySelector('#wrong');
    wrong.hidden = false;
    wrong.textContent = 'Unknown email or password';
  }}
}});
</script>"""

_DASHBOARD = """<h1>Dashboard</h1><div id="place">Nobody is logged in.</div><script>
const who = sessionStorage.getItem('who');
if (who) setTimeout(() => {
  const box = document.createElement('div');
  box.className = 'dashboard';
  box.textContent = 'Welcome back, ' + who;
  document.querySelector('#place').replaceWith(box);
}, 60);
</script>"""

_PRODUCT = """<h1>Shop</h1><div id="late">Loading…</div><script>
setTimeout(() => {
  document.querySelector('#late').outerHTML = `<div class="product-details">
  <h2 class="product-title">Tin whistle in D</h2><p class="product-price">€ 12.50</p>
  <img class="product-image" src="/assets/bird.svg" alt="The whistle" width="160" height="120">
  <select id="colour"><option value="b">Brass</option><option value="n">Nickel</option></select>
  <p id="hint">Hold the pointer here</p></div>`;
  const hint = document.querySelector('#hint');
  hint.addEventListener('mouseenter', () => { hint.textContent = 'In stock'; });
}, 60);
</script>"""

_WIKI = """<h1>Encyclopaedia</h1><form action="/wiki/search">
<input id="searchInput" name="search" type="search" placeholder="Search"></form>"""


def _search(request: Request) -> Answer:
    words = request.query.get("search", "")
    title = next((name for name in _ARTICLES if name.lower() == words.lower()), "")
    if not title:
        return _page("Nothing found", f'<h1 id="noresult">Nothing for {escape(words)}</h1>')
    text = "".join(f"<p>Paragraph {number} about it.</p>" for number in range(1, 81))
    return _page(title, f'<h1 id="firstHeading">{escape(title)}</h1>{text}')


def _health(request: Request) -> Answer:
    health = {"status": "ok", "requestId": request.headers.get("x-request-id", "")}
    return Answer(json.dumps(health).encode(), content_type="application/json")


COMMAND_PAGES: Final[Mapping[str, Callable[[Request], Answer]]] = {
    "/login": lambda request: _page("Log in", _LOGIN),
    "/dashboard": lambda request: _page("Dashboard", _DASHBOARD),
    "/product/123": lambda request: _page("Tin whistle in D", _PRODUCT),
    "/wiki": lambda request: _page("Encyclopaedia", _WIKI),
    "/wiki/search": lambda request: replace(_search(request), delay_s=0.05),
    "/health": _health,
}


def command_answer(request: Request) -> Answer | None:
    """Answer a path of these pages; None for any other."""
    maker = COMMAND_PAGES.get(request.path)
    return maker(request) if maker is not None else None


XML = "application/xml"
ELSEWHERE = "http://elsewhere.example/page"
_SCHEMA = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
_BOMB = (
    '<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY x SYSTEM "file:///etc/passwd">]>'
    "<urlset><url><loc>http://127.0.0.1/&c;&x;</loc></url></urlset>"
)


def urlset(places: Iterable[str]) -> bytes:
    """Build a sitemap of these addresses, all changed on the same day."""
    entries = "".join(
        f"<url><loc>{escape(place)}</loc><lastmod>2026-01-01</lastmod></url>" for place in places
    )
    return f"{_HEAD}<urlset {_SCHEMA}>{entries}</urlset>".encode()


def index(places: Iterable[str]) -> bytes:
    """Build a sitemap of sitemaps."""
    entries = "".join(f"<sitemap><loc>{escape(place)}</loc></sitemap>" for place in places)
    return f"{_HEAD}<sitemapindex {_SCHEMA}>{entries}</sitemapindex>".encode()


def _site(request: Request) -> str:
    return "http://" + request.headers.get("host", "")


def _index(request: Request) -> Answer:
    """Build the index of all; also itself, which must not be read twice, and a foreign file."""
    site = _site(request) + "/sitemaps/"
    names = ("index.xml", "nested.xml", "list.txt", "feed.xml", "missing.xml", "page.html")
    places = [site + name for name in names] + ["http://elsewhere.example/sitemap.xml"]
    return Answer(index(places), content_type=XML)


def _nested(request: Request) -> Answer:
    site = _site(request) + "/sitemaps/"
    return Answer(index([site + "packed.xml.gz", site + "index.xml"]), content_type=XML)


def _packed(request: Request) -> Answer:
    """Build a gzipped sitemap with two spellings of one page and two pages of another site."""
    site = _site(request)
    places = [f"{site}/static/1", f"{site}/static/1#again", f"{site}/static/2", ELSEWHERE]
    body = gzip.compress(urlset([*places, ELSEWHERE + "?2"]), mtime=0)
    return Answer(body, content_type="application/gzip")


def _list(request: Request) -> Answer:
    site = _site(request)
    text = f"{site}/static/3\r\n\r\n{site}/static/4\n{site}/private/secret\n"
    return Answer(text.encode(), content_type="text/plain; charset=utf-8")


def _feed(request: Request) -> Answer:
    item = f"<item><link>{_site(request)}/static/5</link></item>"
    feed = (
        f"{_HEAD}<rss version='2.0'><channel><link>{_site(request)}/</link>{item}</channel></rss>"
    )
    return Answer(feed.encode(), content_type="application/rss+xml")


@lru_cache(maxsize=1)
def _packed_bomb() -> bytes:
    return gzip.compress(b"<urlset>" + b" " * (200 * 1024 * 1024) + b"</urlset>", mtime=0)


def _endless(request: Request) -> Answer:
    """Build an index that names two more of its sort, endlessly."""
    number = int(request.query.get("n", "0") or 0)
    more = (f"{_site(request)}/sitemaps/endless.xml?n={2 * number + more}" for more in (1, 2))
    return Answer(index(more), content_type=XML)


def _many(request: Request) -> Answer:
    """Build a sitemap with more pages than allowed."""
    site = _site(request)
    return Answer(urlset(f"{site}/static/{n}" for n in range(1, 60_001)), content_type=XML)


def _odd_bytes(request: Request) -> Answer:
    """Build a sitemap with invalid UTF-8 in one entry and a lone & in a later one, sent as HTML."""
    site = _site(request).encode()
    first = b"<url><loc>" + site + b"/static/1</loc></url>"
    broken = b"<url><loc>" + site + b"/\xff\xfe</loc></url>"
    alone = b"<url><loc>" + site + b"/static/2?a=1&b=2</loc></url>"
    return Answer(b"<urlset>" + first + broken + alone + first + b"</urlset>", content_type=HTML)


PAGES: Mapping[str, Callable[[Request], Answer]] = {
    "/sitemaps/index.xml": _index,
    "/sitemaps/nested.xml": _nested,
    "/sitemaps/packed.xml.gz": _packed,
    "/sitemaps/list.txt": _list,
    "/sitemaps/feed.xml": _feed,
    "/sitemaps/page.html": lambda request: Answer(b"<!doctype html><html><body>No.</body></html>"),
    "/sitemaps/entities.xml": lambda request: Answer(_BOMB.encode(), content_type=XML),
    "/sitemaps/bomb.xml.gz": lambda request: Answer(
        _packed_bomb(), content_type="application/gzip"
    ),
    "/sitemaps/endless.xml": _endless,
    "/sitemaps/many.xml": _many,
    "/sitemaps/odd-bytes.xml": _odd_bytes,
    "/sitemaps/empty.xml": lambda request: Answer(urlset(()), content_type=XML),
}


def sitemap_answer(request: Request) -> Answer | None:
    """Answer the sitemap at this path; None when there is none."""
    maker = PAGES.get(request.path)
    return maker(request) if maker is not None else None


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
