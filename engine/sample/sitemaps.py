"""Sitemaps of the sample site besides `/sitemap.xml`: an index with every file type, and bad ones.

Only `/sitemaps/index.xml` links to them, so that no other crawl meets them.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from html import escape

from engine.sample.server import HTML, Answer, Request

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
