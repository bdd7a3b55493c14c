"""Sample site: ordinary pages in trees, with robots.txt and a sitemap, the same on every run.

`with Site(pages=50) as site:` serves it on a free port of 127.0.0.1. Three trees have the same
pages, loaded in different ways. `/static/N` is plain HTML. `/js/N` is an empty shell whose title,
text and links a script inserts 30-80 ms after load. `/page/N`, the tree below `/`, has every third
page by script. Page N of a tree links its ten children, its neighbours and one page far away.

Its HTTP/1.1 server has only what the site needs (GET and HEAD, no request bodies), and can
misbehave on purpose. It runs on a loop in its own thread, so that a page that never answers costs
no thread and does not delay the shutdown.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from http import HTTPStatus
from importlib.resources import files
from types import TracebackType
from typing import Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from engine.model.listening import close_server

HTML = "text/html; charset=utf-8"
MAX_HEAD_BYTES = 64 * 1024
PIECES = 10  # a body that is spread over time comes in this many writes

FANOUT = 10
TREES = ("page", "static", "js")
LATE_FROM_MS, LATE_SPAN_MS = 30, 51  # a script's pages come 30-80 ms after load

_BIRDS = (
    "wren",
    "heron",
    "swift",
    "dunlin",
    "siskin",
    "plover",
    "kestrel",
    "dipper",
    "curlew",
    "linnet",
)
_PLACES = (
    "the weir",
    "the old pier",
    "the reed bed",
    "the quarry",
    "the salt marsh",
    "the orchard",
    "the mill",
)
_DOINGS = (
    "was heard before sunrise",
    "built its second nest",
    "crossed against the wind",
    "stayed all frost",
)
_SKIES = (
    "thin high cloud",
    "drizzle until noon",
    "a dry east wind",
    "first warm evening",
    "fog on the water",
)


@dataclass(frozen=True, slots=True)
class Request:
    """HTTP request: `path` is decoded, `target` is the raw one."""

    method: str
    target: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """HTTP response with deliberate faults.

    `delay_s` passes before the headers, `spread_s` over the body; `stops` hangs the response
    `before` the headers or `midway` in the body, the connection open.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    spread_s: float = 0.0
    stops: Literal["", "before", "midway"] = ""

    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {_phrase(self.status)}"]
        if self.content_type:
            lines.append(f"Content-Type: {self.content_type}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines.append(f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def title_of(number: int) -> str:
    """Title of page `number` in every tree; 0 is the tree's root."""
    return f"Field notes {number}" if number else "Field notes"


def marker(number: int) -> str:
    """Phrase that only page `number` has, and only once it is rendered."""
    return f"observation {number:06d} is complete"


def path_of(tree: str, number: int) -> str:
    if number:
        return f"/{tree}/{number}"
    return "/" if tree == "page" else f"/{tree}/"


def is_late(tree: str, number: int) -> bool:
    """Return whether a script inserts this page's content."""
    return tree == "js" or (tree == "page" and number % 3 == 2)


@lru_cache(maxsize=4096)
def paragraphs(number: int) -> tuple[str, ...]:
    """Build three paragraphs, the same on every run."""
    texts = []
    for part in range(3):
        seed = number * 31 + part * 7
        bird, place = _BIRDS[seed % 10], _PLACES[seed % 7]
        doing, sky = _DOINGS[seed % 4], _SKIES[seed % 5]
        texts.append(
            f"Note {number}.{part + 1}: {sky} over {place}. A {bird} {doing}, and a second {bird} "
            f"kept to the far side. Counted {seed % 23 + 2} in {seed % 50 + 10} minutes; "
            f"the glass stood at {980 + seed % 50}."
        )
    texts.append(f"This {marker(number)}.")
    return tuple(texts)


@lru_cache(maxsize=4096)
def numbers_from(number: int, pages: int) -> tuple[int, ...]:
    """Pages that page `number` of `pages` links, in order."""
    children = range(number * FANOUT + 1, number * FANOUT + FANOUT + 1)
    shared = (number - 1, number + 1, (number * 7 + 3) % (pages + 1)) if number else ()
    wanted = [child for child in (*children, *shared) if 0 < child <= pages and child != number]
    return tuple(dict.fromkeys(wanted))


def page_html(tree: str, number: int, pages: int) -> bytes:
    """HTML of page `number` of `tree` as sent."""
    if is_late(tree, number):
        return _late_html(tree, number)
    body = "".join(f"<p>{escape(text)}</p>" for text in paragraphs(number))
    items = "".join(
        f'<li><a href="{link["href"]}">{link["text"]}</a></li>'
        for link in _links(tree, number, pages)
    )
    bird = '<img src="/assets/bird.svg" alt="A bird" width="32" height="32">'
    main = f"<main><h1>{title_of(number)}</h1>{body}{bird}<ul>{items}</ul></main>"
    return shell(title_of(number), main, home=path_of(tree, 0))


def _late_html(tree: str, number: int) -> bytes:
    late_ms = LATE_FROM_MS + number * 17 % LATE_SPAN_MS
    place = f'<main id="page" data-api="/api{path_of(tree, number)}" data-late="{late_ms}">'
    return shell("…", f'{place}<p>Loading…</p></main><script src="/assets/page.js"></script>')


def _links(tree: str, number: int, pages: int) -> list[dict[str, str]]:
    return [
        {"href": path_of(tree, other), "text": title_of(other)}
        for other in numbers_from(number, pages)
    ]


def page_json(tree: str, number: int, pages: int) -> bytes:
    """JSON that the script of a late page fetches."""
    texts = {
        "title": title_of(number),
        "paragraphs": paragraphs(number),
        "home": path_of(tree, 0),
        "links": _links(tree, number, pages),
    }
    return json.dumps(texts).encode()


def shell(title: str, body: str, *, home: str = "/", head: str = "") -> bytes:
    """Build a whole document around `body`, which is HTML already."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="description" content="{escape(title)} of the sample site">{head}'
        '<link rel="stylesheet" href="/assets/site.css"></head>'
        f'<body><header><a href="{home}">Sample site</a></header>{body}'
        "<footer>Made for trying things out.</footer></body></html>"
    ).encode()


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


class Server:
    """Serves `answer` on `host:port` from a thread between `start` and `stop`."""

    def __init__(self, answer: Callable[[Request], Answer], host: str, port: int) -> None:
        self.answer = answer
        self.host = host
        self.port = port
        self.connections: set[_Connection] = set()
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="sample-site", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()

    def start(self) -> None:
        """Listen; `port` is the real one afterwards. Raises OSError when the address is taken."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        """Close every connection, in whatever state."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as failure:
            self._failure = failure
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        server = await self._loop.create_server(lambda: _Connection(self), self.host, self.port)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        await close_server(server)
        for connection in list(self.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # `abort` has queued each connection_lost; let them run
        await server.wait_closed()


@dataclass(slots=True)
class _Connection(asyncio.Protocol):
    """Connection of one client: requests are answered in order, one at a time."""

    server: Server
    buffer: bytearray = field(default_factory=bytearray)
    busy: bool = False
    transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        self.transport = None

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if len(self.buffer) > MAX_HEAD_BYTES and self.transport is not None:
            self.transport.abort()
        self._next()

    def _next(self) -> None:
        while not self.busy and (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end])
            del self.buffer[: end + 4]
            request = parse_request(head)
            self.busy = True
            self._answer(request, self.server.answer(request))

    def _answer(self, request: Request, answer: Answer) -> None:
        if answer.stops == "before":
            return
        if answer.delay_s:
            asyncio.get_running_loop().call_later(answer.delay_s, self._write, request, answer)
        else:
            self._write(request, answer)

    def _write(self, request: Request, answer: Answer) -> None:
        if self.transport is None:
            return
        body = b"" if request.method == "HEAD" else answer.body
        if answer.stops == "midway":
            self.transport.write(answer.head() + body[: len(body) // 2])
        elif answer.spread_s and body:
            self.transport.write(answer.head())
            self._spread(body, max(1, len(body) // PIECES), answer.spread_s / PIECES)
        else:
            self.transport.write(answer.head() + body)
            self.busy = False

    def _spread(self, body: bytes, size: int, wait_s: float) -> None:
        if self.transport is None:
            return
        self.transport.write(body[:size])
        if body[size:]:
            asyncio.get_running_loop().call_later(wait_s, self._spread, body[size:], size, wait_s)
        else:
            self._done()

    def _done(self) -> None:
        self.busy = False
        self._next()

    def __hash__(self) -> int:
        return id(self)


def parse_request(head: bytes) -> Request:
    """Parse a request's head; an invalid one becomes a request for an empty path."""
    first, *rest = head.decode("latin-1").split("\r\n")
    method, _, target = first.partition(" ")
    target = target.rpartition(" ")[0]
    headers = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Request(method, target, unquote(parts.path), query, headers)
