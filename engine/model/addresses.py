"""Parse, normalise and compare addresses, and match them by globs; the only URL parser.

Every address that is opened, checked or compared is parsed here, so that no two parts of the
program read one text as two places. Source: url.spec.whatwg.org; the parser is Ada.

An `Address` has two forms: `url` is opened (as a browser normalises it, without credentials), `key`
is compared (without fragment and empty query, the query's keys sorted). A trailing slash is
significant.

A fragment names a position in a page, or a page of its own: applications that route by fragment
begin it with `#/` or `#!`, called a route here. Servers never receive a fragment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Final, Literal, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from ada_url import join_url, parse_url

_TOKEN: Final = re.compile(r"\*\*|\*|\{[^{}]*\}|\\.|.", re.DOTALL)
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


class Glob:
    """One compiled pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        spelled = spelled_glob(pattern)
        parts = (_expression(found[0]) for found in _TOKEN.finditer(spelled))
        self._expression = re.compile("".join(parts), re.DOTALL)

    def matches(self, url: str) -> bool:
        """Return whether the whole address matches."""
        whole = _ORIGIN.sub("", url, count=1) if self.pattern.startswith("/") else url
        return self._expression.fullmatch(whole) is not None


def _expression(token: str) -> str:
    if token == "**":
        return ".*"
    if token == "*":
        return "[^/]*"
    if token.startswith("{") and token.endswith("}") and len(token) > 1:
        return "(?:" + "|".join(map(re.escape, token[1:-1].split(","))) + ")"
    return re.escape(token[1:] if token.startswith("\\") and len(token) > 1 else token)


class Credentials(msgspec.Struct, frozen=True):
    """User and password of a start URL, for HTTP authentication at `origin` only."""

    origin: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.origin})"


PORTS: Final = {"http": 80, "https": 443}  # schemes that can be opened, with default ports
_HREF: Final = ("href",)
# Parts of a normalised address; no part can contain the next part's delimiter.
_PARTS = re.compile(
    r"([a-z][a-z0-9+.-]*):"
    r"(?://(?:([^/?#@:]*)(?::([^/?#@]*))?@)?(\[[^\]]*\]|[^/?#:]*)(?::([0-9]+))?)?"
    r"([^?#]*)(\?[^#]*)?(#.*)?",
    re.DOTALL,
)
_TRIMMED: Final = "".join(map(chr, range(33)))  # control characters and the space, as browsers trim
_DROPPED = re.compile(r"[\t\n\r]")  # at any position
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FRONT = re.compile(r"[^:]*:[\s/\\]*[^/\\?#]*")
_NOT_IN_HOST = re.compile(r"[\x00-\x20/\\?#@]")


class Url(NamedTuple):
    """Address in normalised spelling, with its parts.

    `port` is None where it is the scheme's default. `query` and `fragment` include `?` and `#`.
    """

    href: str
    scheme: str
    user: str
    password: str
    host: str
    port: int | None
    path: str
    query: str
    fragment: str

    @property
    def is_web(self) -> bool:
        """Whether the scheme is http or https."""
        return self.scheme in PORTS

    @property
    def place(self) -> str:
        """The host, with the port unless it is the scheme's default."""
        return self.host if self.port is None else f"{self.host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.place}"

    @property
    def without_user(self) -> str:
        """`href` without user and password."""
        if not (self.user or self.password):
            return self.href
        return self.origin + self.path + self.query + self.fragment


def href_of(text: str, base: str | None = None) -> str | None:
    """Return the address that a browser opens for `text` on the page at `base`, or None."""
    try:
        return parse_url(text, _HREF)["href"] if base is None else join_url(base, text)
    except ValueError:
        whole = text if text.isascii() else _without_lone_surrogates(text)
        return None if whole == text else href_of(whole, base)


def parse(text: str, base: str | None = None) -> Url | None:
    """Parse as `href_of`, and return the parts."""
    href = href_of(text, base)
    found = None if href is None else _PARTS.fullmatch(href)
    if href is None or found is None:
        return None
    scheme, user, password, host, port, path, query, fragment = found.groups("")
    number = int(port) if port else None
    return Url(href, scheme, user, password, host, number, path, query, fragment)


def host_of(text: str) -> str | None:
    """Return the host as a browser reads it in `text`, a host alone; None for other texts."""
    if _NOT_IN_HOST.search(text) or (":" in text and not text.startswith("[")):
        return None
    found = parse(f"http://{text}/")
    return found.host if found is not None and found.port is None else None


def site_of(text: str) -> str:
    """Return the last two labels of the host, as `settle.js` compares sites; "" without a host."""
    found = parse(text)
    return "" if found is None else ".".join(found.host.split(".")[-2:])


def scheme_of(text: str) -> str:
    """Return the scheme of a typed text; "" where it has none."""
    found = _SCHEME.match(_DROPPED.sub("", text.strip(_TRIMMED)))
    return "" if found is None else found[1].lower()


def front_of(text: str) -> str:
    """Return the part of a typed text before its path: scheme, user, host and port, unchanged."""
    found = _FRONT.match(text.strip(_TRIMMED))
    return "" if found is None else found[0]


def _without_lone_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


MAX_URL_CHARS = 8_192  # longer ones are crawler traps, which servers refuse as well
_MAX_TYPED_CHARS = 8 * MAX_URL_CHARS  # longer texts (images as `data:`) are not parsed
_REMEMBERED_CHARS = 512  # longer links are not cached
_WEB = ("http://", "https://")
_UP_TO_FILE = re.compile(r"https?://[^/]+/(?:[^?#]*/)?")
_GLOB_FRONT = re.compile(r"https?://[^/*?#@\\]+(?=/|$)", re.IGNORECASE)
_WILD_FRONT = re.compile(r"(https?|\*+)://([^/?#@\\{}:\[]*)(?::([0-9]+)(?=[/?]|$))?", re.IGNORECASE)
_NEVER_ENCODED = "%/:@!$&()*+,;=~-._[]\\#"  # in an address; other characters may be
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ROUTE = re.compile(r"#(?!!?/?(?:#|$))[!/][^#]*")

Fragments = Literal["ignore", "routes"]


class Address(NamedTuple):
    """Web address: open `url`, compare `key`; `origin` is scheme, host and port."""

    url: str
    key: str
    origin: str

    @property
    def asked(self) -> str:
        """The `url` without fragment, as sent to servers and matched by robots.txt and globs."""
        return self.url.partition("#")[0]

    @property
    def place(self) -> str:
        """Host and port, without the scheme's default port."""
        return self.origin.partition("://")[2]

    @property
    def path(self) -> str:
        """The path, without query."""
        return self.asked[len(self.origin) :].partition("?")[0]

    @property
    def route(self) -> str:
        """The route in the fragment without an anchor: `#/a` of `#/a#top`; else ""."""
        at = self.url.find("#")
        found = (
            _ROUTE.match(self.url, at) if at >= 0 and self.url[at + 1 : at + 2] in "!/" else None
        )
        return "" if found is None else found[0]

    @property
    def own(self) -> Address:
        """The address with its route in the key."""
        route = self.route
        return self._replace(key=self.key.partition("#")[0] + route) if route else self

    def page(self, fragments: Fragments) -> Address:
        """Return the page that a link to this address denotes."""
        if "#" not in self.url:
            return self
        route = self.route if fragments == "routes" else ""
        key = self.key.partition("#")[0] + route if route else self.key
        return Address(self.asked + route, key, self.origin)  # `_replace` takes four times as long


def address_of(text: str) -> Address | None:
    """Return the address that a browser would open for `text`; None unless http(s)."""
    return _read(text) if len(text) > _REMEMBERED_CHARS else _remembered(text)


def link_address(base: str, href: str) -> Address | None:
    """Resolve a link on the page at `base`; None unless http(s)."""
    if len(href) > _REMEMBERED_CHARS:
        return _read(href, base)
    if href.startswith(_WEB):
        return _remembered(href)
    first = href[:1]
    if first == "/" or (first > "#" and first != "?" and ":" not in href):
        return _remembered(href, _folder(base))  # equal for all pages of a folder
    return _read(href, base)


def in_charset(href: str, charset: str) -> str:
    """Encode a link's query as a page in `charset` does.

    Source: the URL standard, percent-encode after encoding.
    """
    if href.isascii() or not charset or charset.startswith("utf"):
        return href
    asked, sign, fragment = href.partition("#")
    front, mark, query = asked.partition("?")
    return front + mark + _NOT_ASCII.sub(partial(_sent_in, charset), query) + sign + fragment


def _sent_in(charset: str, found: re.Match[str]) -> str:
    try:
        return _percent(found[0].encode(charset))
    except UnicodeEncodeError:
        return "".join(_one_sent_in(charset, sign) for sign in found[0])


def _one_sent_in(charset: str, sign: str) -> str:
    try:
        return _percent(sign.encode(charset))
    except UnicodeEncodeError:
        return f"%26%23{ord(sign)}%3B"


def _percent(data: bytes) -> str:
    """Percent-encode bytes that the parser would not encode, or would misread as characters."""
    return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in data)


@lru_cache(maxsize=64)
def _folder(base: str) -> str:
    """Return the base of links with a path: `base` without file and query."""
    found = _UP_TO_FILE.match(href_of(base) or "")
    return base if found is None else found[0]


def _read(text: str, base: str | None = None) -> Address | None:
    href = None if len(text) > _MAX_TYPED_CHARS else href_of(text, base)
    if href is None or not href.startswith(_WEB) or len(href) > MAX_URL_CHARS:
        return None
    end = href.index("/", len("http://h"))
    if (user := href.find("@", 0, end)) >= 0:
        href = href[: href.index("/")] + "//" + href[user + 1 :]
        end = href.index("/", len("http://h"))
    asked, sign, fragment = href.partition("#")
    front, mark, query = asked.partition("?")
    if "|" in front:  # the standard keeps it, but Chromium encodes it for servers
        front = front.replace("|", "%7C")
    if query:
        key = f"{front}?{_ordered(query)}" if "&" in query else front + mark + query
    else:
        key = front
    return Address(front + mark + query + sign + fragment, key, href[:end])


_remembered = lru_cache(maxsize=65_536)(_read)  # many pages share the same links


def credentials_of(text: str) -> Credentials | None:
    """Return user and password of a typed URL, or None."""
    found = parse(text) if "@" in text else None
    if found is None or not found.is_web or not (found.user or found.password):
        return None
    return Credentials(found.origin, unquote(found.user), unquote(found.password))


def same_site(start: Address, landed: Address) -> bool:
    """Return whether both are one site: same origin, https added, or `www.` added or dropped."""
    return start.origin == landed.origin or _is_same_site(start.origin, landed.origin)


@lru_cache(maxsize=1_024)
def _is_same_site(start: str, landed: str) -> bool:
    first, then = parse(start), parse(landed)
    if first is None or then is None or first.port is not None or then.port is not None:
        return False
    if then.scheme == "http" and first.scheme == "https":
        return False
    return first.host.removeprefix("www.") == then.host.removeprefix("www.")


def is_blank_in_front(text: str) -> bool:
    """Return whether whitespace occurs in a typed URL's scheme, credentials or host.

    Browsers ignore it there, so that the text shows another address than they open.
    """
    return re.search(r"\s", front_of(text)) is not None


def _ordered(query: str) -> str:
    """Sort the query by key; values of one key keep their order, which may be significant."""
    return "&".join(sorted(query.split("&"), key=lambda pair: pair.partition("=")[0]))


def glob_matcher(globs: Iterable[str]) -> Callable[[Address], bool]:
    """Build a test whether any of `globs` matches an address.

    `**` matches anything, `*` anything without a slash, `?` one such character. A glob that begins
    with a slash is matched against path and query, any other against the URL.
    """
    of_path: list[str] = []
    of_url: list[str] = []
    for glob in globs:
        (of_path if glob.startswith("/") else of_url).append(_pattern(spelled_glob(glob)))
    path = re.compile("|".join(of_path) or r"(?!)", re.DOTALL)
    url = re.compile("|".join(of_url) or r"(?!)", re.DOTALL)

    def matches(address: Address) -> bool:
        asked = address.asked
        if url.fullmatch(asked):
            return True
        return bool(of_path) and path.fullmatch(asked[len(address.origin) :]) is not None

    return matches


def spelled_glob(glob: str) -> str:
    """Normalise scheme and host of `glob`, except labels with a wildcard."""
    found = _GLOB_FRONT.match(glob)
    spelled = None if found is None else parse(found[0])
    if found is None or spelled is None:
        return _with_wild_host(glob)
    if spelled.user or spelled.password:
        return glob
    return spelled.origin + glob[found.end() :]


def _with_wild_host(glob: str) -> str:
    found = _WILD_FRONT.match(glob)
    if found is None:
        return glob
    scheme, labels, port = found[1].lower(), found[2].split("."), found[3]
    host = ".".join(map(_spelled_label, labels))
    is_usual = port is None or (scheme in PORTS and int(port) == PORTS[scheme])
    return f"{scheme}://{host}{'' if is_usual else f':{port}'}{glob[found.end() :]}"


def _spelled_label(label: str) -> str:
    """Normalise one label of a host; a wildcard in an international label matches no address."""
    if label.isascii() or "*" in label:
        return label.lower()
    host = host_of(f"{label}.x")  # a number alone would be parsed as an address
    return label if host is None else host.removesuffix(".x")


def _pattern(glob: str) -> str:
    """Convert `glob` to a regular expression without exponential backtracking.

    The leftmost match of a piece between two wildcards leaves the most for the rest, so every piece
    but the last may be atomic.
    """
    first, *rest = re.split(r"\*{2,}", glob)
    if not rest:
        return _chunk(first, last=True)
    middle = "".join(f"(?>.*?{_chunk(chunk)})" for chunk in rest[:-1])
    return f"{_chunk(first)}{middle}.*{_chunk(rest[-1], last=True)}"


def _piece(text: str) -> str:
    """Match a piece without `*`; encodable characters match plain or encoded."""
    return "".join(map(_sign, text))


def _sign(sign: str) -> str:
    if sign == "?":
        return "[^/]"
    encoded = quote(sign, safe=_NEVER_ENCODED, errors="replace")
    return re.escape(sign) if encoded == sign else f"(?:{re.escape(sign)}|{encoded})"


def _chunk(text: str, *, last: bool = False) -> str:
    first, *rest = map(_piece, text.split("*"))
    if not rest:
        return first
    middle = "".join(f"(?>[^/]*?{piece})" for piece in rest[:-1])
    return f"{first}{middle}[^/]*{rest[-1]}" if last else f"{first}{middle}(?>[^/]*?{rest[-1]})"


_SERVICE: Final = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?/?", re.ASCII)


class ServiceAddress(NamedTuple):
    """The address of a server of the operator's own protocol, such as a scheduler."""

    scheme: Literal["tcp", "tls"]
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def service_address(text: str, default_port: int) -> ServiceAddress | None:
    """Read tcp://HOST:PORT or tls://HOST:PORT; None if it is neither."""
    found = _SERVICE.fullmatch(text)
    port = int(found[3] or default_port) if found else 0
    if found is None or not 0 < port <= 65_535:
        return None
    return ServiceAddress("tls" if found[1] == "tls" else "tcp", found[2].strip("[]"), port)
