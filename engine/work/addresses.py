"""One spelling for one page: how a URL is cleaned, told apart from others, and matched by globs.

An `Address` has two faces: `url` is what gets opened (as written, but without credentials,
percent-encoded, dot segments resolved), `key` is what is compared (the same without fragment,
and with the query's keys in order). A slash at the end counts.

Behind `#` stands a place in a page, or a page of its own: applications that route by fragment
begin it with `#/` or `#!`, which is called a route here. Servers never see either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from engine.browser.addresses import canonical_host
from engine.work.fetch import Credentials

MAX_URL_CHARS = 8_192  # longer ones are traps; servers refuse them as well
_PARTS = re.compile(r"(?i:(https?)):/*([^/?#\\]+)([^?#]*)(\?[^#]*)?(#.*)?", re.S)
_WITH_SCHEME = re.compile(r"(?i:(https?)):([/\\]*)")
_SLASHES = "/\\"  # browsers read one for the other
_PORTS = {"http": "80", "https": "443"}
_TRIMMED = "".join(map(chr, range(33)))  # control characters and the space, as browsers trim
_DROPPED = re.compile(r"[\t\n\r]")
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9_~.\-]*)*/?")
_PATH_SAFE = "/%:@!$&'()*+,;=~-._[]|^"
_QUERY_SAFE = _PATH_SAFE + "?`{}\\"
_FRAGMENT_SAFE = _PATH_SAFE + "?{}\\#"
# One alone is where the application begins, which it shows without any as well.
_PLAIN_LINK = re.compile(
    r"(?P<up>(?:\.\./)*+)(?P<path>(?:[A-Za-z0-9_~-][A-Za-z0-9_~.\-]*+/)*+(?:[A-Za-z0-9_~-][A-Za-z0-9_~.\-]*+)?+)"
    r"(?P<place>#.*)?+",
    re.DOTALL,
)
_PLAIN_BASE = re.compile(r"(https?://[^/?#]+)((?:/[A-Za-z0-9_~-][A-Za-z0-9_~.\-]*+)*+/?+)")
_ROUTE = re.compile(r"#(?!!?/?(?:#|$))[!/][^#]*")

Fragments = Literal["ignore", "routes"]


class Address(NamedTuple):
    """A web address: open `url`, compare `key`; `origin` is scheme, host and port."""

    url: str
    key: str
    origin: str

    @property
    def asked(self) -> str:
        """What a server is asked for, and robots.txt and globs are: `url` without fragment."""
        return self.url.partition("#")[0]

    @property
    def route(self) -> str:
        """The route in the fragment, without a place in it: `#/a` of `#/a#top`; else nothing."""
        at = self.url.find("#")
        found = (
            _ROUTE.match(self.url, at) if at >= 0 and self.url[at + 1 : at + 2] in "!/" else None
        )
        return "" if found is None else found[0]

    @property
    def own(self) -> Address:
        """With a key of its own for its route."""
        route = self.route
        return self._replace(key=self.key.partition("#")[0] + route) if route else self

    def page(self, fragments: Fragments) -> Address:
        """The page that a link to this address is taken for."""
        if "#" not in self.url:
            return self
        route = self.route if fragments == "routes" else ""
        key = self.key.partition("#")[0] + route if route else self.key
        return Address(self.asked + route, key, self.origin)  # `_replace` takes four times as long


@lru_cache(maxsize=65_536)  # shared links come back on every page
def address_of(text: str) -> Address | None:
    """The address that a browser would open for `text`; None when it is not http(s)."""
    text = _DROPPED.sub("", text.strip(_TRIMMED))
    found = _PARTS.match(text) if len(text) <= MAX_URL_CHARS else None
    if found is None:
        return None
    scheme, authority, path, query, fragment = found.groups("")
    origin = _origin(scheme.lower(), authority)
    if origin is None:
        return None
    front = origin + _clean_path(path)
    query = _encoded(query, _QUERY_SAFE)
    url = front + query
    key = front + _ordered(query) if "&" in query else url
    if len(fragment) > 1:
        url += _encoded(fragment, _FRAGMENT_SAFE)
    return Address(url, key, origin)


def link_address(base: str, href: str) -> Address | None:
    """Where a link leads from the page at `base`; None when that is not http(s)."""
    href = href.strip(_TRIMMED)
    if href.startswith(("http://", "https://")):
        return address_of(href)
    if href.startswith("/") and href[1:2] not in {"/", "\\"}:  # 10 times as quick as urljoin
        end = base.find("/", 8)
        return address_of((base if end < 0 else base[:end]) + href)
    href = _DROPPED.sub("", href)
    if (plain := _PLAIN_LINK.fullmatch(href)) and (folders := _folders(base)):
        return address_of(_below(base, folders, plain))
    if found := _WITH_SCHEME.match(href):
        if len(found[2]) > 1 or not base.startswith(f"{found[1].lower()}:"):
            return address_of(f"{found[1]}://{href[found.end() :]}")
        href = href[found.end(1) + 1 :]  # of the base's own scheme, and so a relative one
    if len(href) - len(href.lstrip(_SLASHES)) > 1:
        return address_of(f"{base.partition(':')[0]}://{href.lstrip(_SLASHES)}")
    path = re.split(r"[?#]", href, maxsplit=1)[0]
    href = path.replace("\\", "/") + href[len(path) :]
    try:
        return address_of(urljoin(base, href))
    except ValueError:  # an unclosed [ in the host
        return None


@lru_cache(maxsize=64)
def _folders(base: str) -> tuple[str, ...]:
    """The folders of the page at `base`, the outermost first; none where that takes `urljoin`."""
    found = _PLAIN_BASE.fullmatch(base)
    if found is None:
        return ()
    path = found[2] or "/"
    ends = [at for at, sign in enumerate(path) if sign == "/"]
    return tuple(found[1] + path[: at + 1] for at in ends)


def _below(base: str, folders: Sequence[str], link: re.Match[str]) -> str:
    """Where a plain relative link leads from a plain address, 20 times as quick as `urljoin`."""
    up, path, place = link.groups("")
    if not up and not path:
        return base + place
    levels = len(up) // len("../")
    return folders[max(0, len(folders) - 1 - levels)] + path + place


def credentials_of(text: str) -> Credentials | None:
    """User and password that stand in a typed URL, if any."""
    address, found = address_of(text), _PARTS.match(_DROPPED.sub("", text.strip(_TRIMMED)))
    if address is None or found is None or "@" not in found[2]:
        return None
    user, _, password = found[2].rpartition("@")[0].partition(":")
    return Credentials(address.origin, unquote(user), unquote(password))


def same_site(start: Address, landed: Address) -> bool:
    """Is it one site: the same origin, or only https added, or `www.` added or dropped?"""
    if start.origin == landed.origin:
        return True
    first, then = urlsplit(start.origin), urlsplit(landed.origin)
    if first.port or then.port:
        return False
    if then.scheme == "http" and first.scheme == "https":
        return False
    return first.netloc.removeprefix("www.") == then.netloc.removeprefix("www.")


def is_blank_in_front(text: str) -> bool:
    """Does whitespace stand inside a typed URL's scheme, credentials or host?

    Browsers overlook it there, so that the text shows another address than they open.
    """
    found = _PARTS.match(text.strip(_TRIMMED))
    return found is None or re.search(r"\s", found[2]) is not None


@lru_cache(maxsize=1_024)
def _origin(scheme: str, authority: str) -> str | None:
    host, port = authority.rpartition("@")[2], ""
    if found := re.search(r":([0-9]*)$", host):
        host, port = host[: found.start()], found[1].lstrip("0")
    if len(port) > 5 or (port and int(port) > 65_535):
        return None
    try:
        host = canonical_host(host)
    except ValueError:
        return None
    return f"{scheme}://{host}" + (f":{port}" if port and port != _PORTS[scheme] else "")


def _clean_path(path: str) -> str:
    if _PLAIN_PATH.fullmatch(path):
        return path or "/"
    kept: list[str] = []
    parts = (
        path.replace("\\", "/").lstrip("/") if path.startswith("\\") else path.replace("\\", "/")
    )
    segments = parts.split("/")[1:] if parts.startswith("/") else parts.split("/")
    for segment in segments:
        plain = segment.lower().replace("%2e", ".")
        if plain == "..":
            del kept[-1:]
        elif plain != ".":
            kept.append(segment)
    if plain in {".", ".."}:
        kept.append("")
    return _encoded("/" + "/".join(kept), _PATH_SAFE)


def _encoded(text: str, safe: str) -> str:
    return quote(text, safe=safe, errors="replace") if text else text


def _ordered(query: str) -> str:
    """The query with its keys in order; values of one key keep theirs, which may matter."""
    pairs = sorted(query[1:].split("&"), key=lambda pair: pair.partition("=")[0])
    return "?" + "&".join(pairs)


def glob_matcher(globs: Iterable[str]) -> Callable[[Address], bool]:
    """A test whether any of `globs` fits an address.

    `**` stands for anything, `*` for anything without a slash, `?` for one such character. A
    glob that begins with a slash is held against path and query, any other against the URL.
    """
    of_path: list[str] = []
    of_url: list[str] = []
    for glob in globs:
        (of_path if glob.startswith("/") else of_url).append(_pattern(glob))
    path = re.compile("|".join(of_path) or r"(?!)", re.DOTALL)
    url = re.compile("|".join(of_url) or r"(?!)", re.DOTALL)

    def matches(address: Address) -> bool:
        asked = address.asked
        if url.fullmatch(asked):
            return True
        return bool(of_path) and path.fullmatch(asked[len(address.origin) :]) is not None

    return matches


def _pattern(glob: str) -> str:
    """`glob` as a regular expression whose time does not explode.

    The leftmost fit of what stands between two wildcards leaves the most for the rest, so
    every piece but the last may be atomic.
    """
    first, *rest = re.split(r"\*{2,}", glob)
    if not rest:
        return _chunk(first, last=True)
    middle = "".join(f"(?>.*?{_chunk(chunk)})" for chunk in rest[:-1])
    return f"{_chunk(first)}{middle}.*{_chunk(rest[-1], last=True)}"


def _chunk(text: str, *, last: bool = False) -> str:
    first, *rest = (re.escape(piece).replace(r"\?", "[^/]") for piece in text.split("*"))
    if not rest:
        return first
    middle = "".join(f"(?>[^/]*?{piece})" for piece in rest[:-1])
    return f"{first}{middle}[^/]*{rest[-1]}" if last else f"{first}{middle}(?>[^/]*?{rest[-1]})"
