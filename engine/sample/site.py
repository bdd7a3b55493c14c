"""Sample site: ordinary pages in trees, with robots.txt and a sitemap, the same on every run.

`with Site(pages=50) as site:` serves it on a free port of 127.0.0.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from types import TracebackType
from typing import Self

from engine.sample.pages import TREES, page_html, page_json, path_of, shell
from engine.sample.server import HTML, Answer, Request, Server

XML = "application/xml"
SITEMAP_SCHEMA = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
XML_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


def urlset(places: Iterable[str]) -> bytes:
    """Build a sitemap of these addresses, all changed on the same day."""
    entries = "".join(
        f"<url><loc>{escape(place)}</loc><lastmod>2026-01-01</lastmod></url>" for place in places
    )
    return f"{XML_HEAD}<urlset {SITEMAP_SCHEMA}>{entries}</urlset>".encode()


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

    `url` has no slash at its end.
    """

    def __init__(self, pages: int = 50, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.pages = pages
        self._server = Server(self.answer, host, port)

    @property
    def url(self) -> str:
        return f"http://{self._server.host}:{self._server.port}"

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

    def answer(self, request: Request) -> Answer:
        """Answer one request; 404 where there is no such page."""
        if request.path == "/robots.txt":
            rules = f"User-agent: *\nDisallow: /private/\n\nSitemap: {self.url}/sitemap.xml\n"
            return Answer(rules.encode(), content_type="text/plain; charset=utf-8")
        if request.path == "/sitemap.xml":
            places = (self.url + path_of("page", number) for number in range(self.pages + 1))
            return Answer(urlset(places), content_type=XML)
        return _ASSETS.get(request.path) or self._page(request) or _MISSING

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
