"""Difficult pages of the sample site: one path per fault that a crawl meets on the web.

All are linked from `/odd/`, and none from the ordinary trees.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from html import escape

from engine.sample.pages import shell
from engine.sample.server import Answer, Request

USER, PASSWORD = "ada", "s3cret"  # for /auth
FILLER = (
    "The quick grey heron waits in the shallow water and does not move until the light is gone. "
    * 4
)

HOSTILE = (
    '=HYPERLINK("http://127.0.0.1:9/","open")',
    "+1+1",
    "@SUM(A1:A9)",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "<b>bold</b><img src=x onerror=alert(1)>",
    "\u202egnp.exe \u2066hidden\u2069",
    "{curly} %s %(name)s ${HOME} `id`",
    "'; DROP TABLE tasks; --",
)


def _number(request: Request, name: str, default: int) -> int:
    given = request.query.get(name, "")
    return int(given) if given.isascii() and given.isdigit() else default


def _page(title: str, body: str) -> Answer:
    """Build a page with enough text to count as one."""
    return Answer(shell(title, f"<main><h1>{escape(title)}</h1>{body}<p>{FILLER}</p></main>"))


def redirect(location: str, status: int = 302) -> Answer:
    return Answer(b"", status, "", (("Location", location),))


def _slow(request: Request) -> Answer:
    return replace(
        _page("Slow", "<p>It came late.</p>"), delay_s=_number(request, "ms", 500) / 1000
    )


def _slow_body(request: Request) -> Answer:
    return replace(
        _page("Slow body", "<p>It came in pieces.</p>"), spread_s=_number(request, "ms", 500) / 1000
    )


def _redirect_to(request: Request) -> Answer:
    return redirect(request.query.get("url", "/static/"), _number(request, "code", 302))


def _hidden(request: Request) -> Answer:
    return _page(
        "Hidden",
        "<p>seen by everyone</p><p hidden>hidden by attribute</p>"
        "<p style='display:none'>hidden by style</p>"
        "<template><p>inside a template</p></template>"
        '<script type=\'application/json\'>{"data": "not text"}</script>'
        "<style>.gone{display:none}</style><p class='gone'>hidden by class</p>"
        "<noscript><p>inside noscript</p></noscript>",
    )


def _links(request: Request) -> Answer:
    count = _number(request, "n", 5_000)
    return _page(
        "Links", "".join(f'<a href="/odd/trap/{number}">{number}</a> ' for number in range(count))
    )


def _anchors(hrefs: Iterable[str]) -> str:
    return "".join(f'<a href="{href}">x</a> ' for href in hrefs)


_SCHEMES = """mailto:a@b.example tel:+1 javascript:alert(1) ftp://b.example/ file:///etc/passwd
data:text/html,x blob:null/1 view-source:http://x/ chrome://settings/ http:// http://[::1
http://a:99999/ /static/1"""

_SPELLINGS = """/static/1 /static/1#top /static/1#end /odd/../static/1 /static/./1 HTTP://{upper}/static/1
//{host}/static/1 http://x:y@{host}/static/1 /odd/query?b=2&a=1 /odd/query?a=1&b=2"""


def _schemes(request: Request) -> Answer:
    return _page("Schemes", _anchors(_SCHEMES.split()))


def _duplicates(request: Request) -> Answer:
    """Build many spellings of two addresses."""
    host = request.headers.get("host", "")
    spelt = _SPELLINGS.format(host=host, upper=host.upper()).split()
    return _page("Duplicates", _anchors([*spelt, " /static/1 "]))


def _auth(request: Request) -> Answer:
    wanted = "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    if request.headers.get("authorization") == wanted:
        return _page("Members", '<p>You are let in.</p><a href="/auth/deep">deeper</a>')
    asking = (("WWW-Authenticate", 'Basic realm="notes"'),)
    return Answer(shell("No entry", "<p>Who are you?</p>"), 401, headers=asking)


@lru_cache(maxsize=2)
def _huge(megabytes: int) -> bytes:
    block = f"<p>{FILLER}</p>" * 16
    return shell("Huge", block * (megabytes * 1024 * 1024 // len(block) + 1))


@lru_cache(maxsize=2)
def _bomb(megabytes: int) -> bytes:
    return gzip.compress(shell("Bomb", "<p>" + "a" * (megabytes * 1024 * 1024) + "</p>"), mtime=0)


def _charset(request: Request) -> Answer:
    """`?how=header` declares the charset in the header, `meta` in the document; both
    windows-1252."""
    by_header = request.query.get("how", "header") == "header"
    head = "" if by_header else '<meta charset="windows-1252">'
    title, text = "Gr\u00fc\u00dfe \u2013 5 \u20ac", "na\u00efve caf\u00e9"
    page = f"<!doctype html><html><head>{head}<title>{title}</title></head><body><p>{text}</p>"
    content_type = "text/html; charset=windows-1252" if by_header else "text/html"
    return Answer(page.encode("cp1252"), content_type=content_type)


_FILES: dict[str, tuple[str, bytes]] = {
    "/files/doc.pdf": ("application/pdf", b"%PDF-1.4\n%%EOF\n"),
    "/files/image.png": ("image/png", b"\x89PNG\r\n\x1a\n" + bytes(32)),
    "/files/data.json": ("application/json", b'{"birds": 3}'),
    "/files/notes.txt": ("text/plain; charset=utf-8", "plain notes, caf\u00e9".encode()),
}
_GZIP = (("Content-Encoding", "gzip"),)
_AS_FILE = (("Content-Disposition", 'attachment; filename="../../evil.zip"'),)
_DOWNLOAD = Answer(b"PK\x05\x06" + bytes(18), content_type="application/zip", headers=_AS_FILE)

_EVER = (
    "<script>setInterval(() => document.body.appendChild(document.createElement('i')), 20)</script>"
)
_POPUPS = "<script>for (let i = 0; i < 20; i++) window.open('/static/' + i)</script>"
_ALERTS = (
    "<script>alert('one'); confirm('two'); prompt('three');"
    "addEventListener('beforeunload', e => e.preventDefault())</script>"
)
_LATE = (
    "<p id='late'></p><script>setTimeout(() => "
    "{{ late.outerHTML = '<p class=\"here\">late words</p>' }}, {ms})</script>"
)

Maker = Callable[[Request], Answer]
PAGES: Mapping[str, Maker] = {
    "/slow": _slow,
    "/slow-body": _slow_body,
    "/hang": lambda request: Answer(stops="before"),
    "/hang-body": lambda request: replace(
        _page("Half", "<p>The first half.</p>" * 40), stops="midway"
    ),
    "/loop": lambda request: redirect("/loop/again"),
    "/loop/again": lambda request: redirect("/loop"),
    "/redirect/to": _redirect_to,
    "/redirect/nowhere": lambda request: Answer(b"", 302, ""),
    "/hidden": _hidden,
    "/links": _links,
    "/schemes": _schemes,
    "/duplicates": _duplicates,
    "/auth": _auth,
    "/auth/deep": _auth,
    "/huge": lambda request: Answer(_huge(_number(request, "mb", 20))),
    "/bomb": lambda request: Answer(_bomb(_number(request, "mb", 100)), headers=_GZIP),
    "/charset": _charset,
    "/empty": lambda request: Answer(b""),
    "/short": lambda request: Answer(shell("Short", "<p>A few words.</p>")),
    "/no-content": lambda request: Answer(b"", 204, ""),
    "/files/archive.zip": lambda request: _DOWNLOAD,
    "/dialogs": lambda request: _page("Dialogs", _ALERTS),
    "/popup": lambda request: _page("Popups", _POPUPS),
    "/ever": lambda request: _page("Never still", _EVER),
    "/late": lambda request: _page("Late", _LATE.format(ms=_number(request, "ms", 400))),
    "/busy-script": lambda request: _page("Busy", "<script>while (true) {}</script>"),
    "/handler": lambda request: _page("Handler", "<button onclick='x()'>press</button>"),
    "/data-script": lambda request: _page("Data", "<script type='application/ld+json'>{}</script>"),
    "/script-link": lambda request: _page("Script link", "<a href='JavaScript:void(0)'>press</a>"),
    "/iframe": lambda request: _page("Frame", "<iframe src='/static/1'></iframe>"),
    "/unicode": lambda request: _page(
        "Grüße 日本語 🐦",
        "<p>Zażółć gęślą jaźń · 鳥が鳴く · 🐦\u200d⬛</p><a href='/static/1?q=日本'>鳥</a>",
    ),
    "/rtl": lambda request: _page("دفتر الملاحظات", "<p dir='rtl'>رأيت مالك الحزين عند السد.</p>"),
    "/hostile": lambda request: _page(
        HOSTILE[4], "".join(f"<p>{escape(text)}</p>" for text in HOSTILE)
    ),
    "/odd/query": lambda request: _page("Query", "<p>The order of keys does not count.</p>"),
    "/meta-refresh": lambda request: _page(
        "Moved", "<meta http-equiv='refresh' content='0; url=/static/2'>"
    ),
    "/private/secret": lambda request: _page("Private", "<p>robots.txt asks not to come here.</p>"),
    "/base": lambda request: Answer(
        shell("Base", "<a href='3'>three</a>", head="<base href='/static/'>")
    ),
}


def odd_answer(request: Request) -> Answer | None:
    """Answer a difficult path; None for an ordinary one."""
    maker = PAGES.get(request.path)
    if maker is not None:
        return maker(request)
    if request.path in _FILES:
        content_type, body = _FILES[request.path]
        return Answer(body, content_type=content_type)
    first, _, rest = request.path.removeprefix("/").partition("/")
    if first == "redirect" and rest.isascii() and rest.isdigit():
        return redirect(f"/redirect/{int(rest) - 1}" if int(rest) > 1 else "/static/1")
    if first == "status" and rest.isascii() and rest.isdigit() and 200 <= int(rest) <= 599:
        return replace(_page(f"Status {rest}", "<p>As asked for.</p>"), status=int(rest))
    if request.path == "/odd/":
        paths = [*PAGES, *_FILES, "/redirect/3", "/redirect/40", "/status/404", "/status/500"]
        items = "".join(f'<li><a href="{path}">{path}</a></li>' for path in paths)
        return _page("Odd pages", f"<ul>{items}</ul>")
    if request.path.startswith("/odd/trap/"):
        return _page("Trap", "<p>One of many.</p>")
    return None
