"""URL parser as in browsers and Node, the only one in the program.

Every address that is opened, checked or compared is parsed here, so that no two parts of the
program read one text as two places. Source: url.spec.whatwg.org; the parser is Ada.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ada_url import join_url, parse_url

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
