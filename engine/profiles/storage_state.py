"""Storage state of sites, as Playwright writes it: their cookies and stored data.

It comes from a browser, or from a file: a storage state, a list as browser extensions write it, or
the Netscape form (`cookies.txt`) of curl and wget. The tokens in it are values that no output may
repeat.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from engine.ledger.files import MIB
from engine.model import addresses, redact
from engine.model.addresses import Address, address_of, parse
from engine.model.errors import InvalidArguments, Problem
from engine.secrets.given_secrets import Hidden

State = dict[str, Any]

MAX_HIDDEN: Final = 500
LEAST_HIDDEN, MOST_HIDDEN = 12, 8_192  # characters of a value that is masked
# Values such as `theme-dark` occur in pages as well; a token has digits and letters.
_IS_A_TOKEN: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])\S+", re.DOTALL).fullmatch
LEAST_RANDOM, LEAST_VARIED = 16, 6  # characters of a token, and different ones in it
_BETWEEN: Final = re.compile(r"[^A-Za-z0-9]+")
# Parts of words and times with something between them: `iphone-15-pro`, `2026-11-27T15:30:00Z`.
_IS_A_WORD: Final = re.compile(
    r"([A-Z]?[a-z]{1,20}|[A-Z]{1,20})?[0-9]{0,4}|[0-9]{1,4}[A-Za-z]{1,3}[0-9]{0,4}"
).fullmatch
_RENEWED: Final = ("value", "expires")  # of a cookie that a site replaces
MAX_BYTES: Final = 32 * MIB
_FIELDS: Final = 7  # of a line in the Netscape form
_HTTP_ONLY: Final = "#HttpOnly_"
_SAME_SITE: Final = {"strict": "Strict", "lax": "Lax", "none": "None", "no_restriction": "None"}
_DEFAULT_SAME_SITE: Final = "Lax"
MAX_COOKIE: Final = 4_096  # characters of name and value, as in browsers
MAX_HOST: Final = 253  # characters, the DNS limit
LAST_EXPIRY: Final = 253_402_300_800.0  # the year 10000
_NOT_SENT: Final = re.compile(r"[\x00-\x1f\x7f;]").search


def is_within(host: str, site: str) -> bool:
    """Return whether `host` is this site or one of its subdomains."""
    return host == site or host.endswith(f".{site}")


def host_of(address: Address) -> str:
    """Return the host of an address, without its port."""
    found = parse(address.url)
    return "" if found is None else found.host


def of_sites(state: Mapping[str, Any], sites: Iterable[str]) -> State:
    """Return the part of a state that belongs to these sites; the rest is dropped."""
    wanted = tuple(sites)
    cookies = [one for one in state.get("cookies", ()) if is_cookie_of(one, wanted)]
    origins = [
        one
        for one in state.get("origins", ())
        if (address := address_of(str(one.get("origin", "")))) is not None
        and any(is_within(host_of(address), site) for site in wanted)
    ]
    return {"cookies": cookies, "origins": origins}


def is_cookie_of(cookie: Mapping[str, Any], sites: Iterable[str]) -> bool:
    """Return whether a browser may send this cookie to one of these sites."""
    domain = str(cookie.get("domain", ""))
    host = domain.removeprefix(".").lower()
    shared = domain.startswith(".")
    return any(is_within(host, site) or (shared and is_within(site, host)) for site in sites)


def set_cookie(line: str, host: str) -> dict[str, str]:
    """Return the cookie that a Set-Cookie line of `host` sets; for another site it is none."""
    pair, *attributes = line.split(";")
    name, _, value = pair.partition("=")
    domain = host
    for attribute in attributes:
        key, _, given = attribute.partition("=")
        site = given.strip().removeprefix(".").lower()
        if key.strip().lower() == "domain" and site and site != host:
            domain = f".{site}" if is_within(host, site) else ""
    return {"name": name.strip(), "value": value.strip().strip('"'), "domain": domain}


def has_nothing(state: Mapping[str, Any]) -> bool:
    return not state.get("cookies") and not state.get("origins")


def renewed(
    state: Mapping[str, Any], cookies: Iterable[Mapping[str, Any]], began: Mapping[str, Any]
) -> State:
    """Return the state with the newest values of its own cookies; others are not added.

    Of a browser that `began` with another state, only the cookies that changed there are taken.
    Sites replace the cookie of a session from time to time, after which the old one is refused. A
    cookie that the site has deleted keeps its old value here.
    """
    old = {_cookie_id(one): one for one in began.get("cookies", ())}
    newest = {_cookie_id(one): one for one in cookies}
    kept = []
    for cookie in state.get("cookies", ()):
        found, before = newest.get(_cookie_id(cookie)), old.get(_cookie_id(cookie), {})
        taken = {} if found is None else {name: found[name] for name in _RENEWED if name in found}
        changed = {name: value for name, value in taken.items() if before.get(name) != value}
        kept.append({**cookie, **changed})
    return {**state, "cookies": kept}


def unchanged_since(state: Mapping[str, Any], began: Mapping[str, Any]) -> State:
    """Return the part of a state whose cookies have the values of `began`."""
    old = {_cookie_id(one): one.get("value") for one in began.get("cookies", ())}
    cookies = [
        one for one in state.get("cookies", ()) if old.get(_cookie_id(one)) == one.get("value")
    ]
    return {**state, "cookies": cookies}


def _cookie_id(cookie: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what makes a cookie the same one with another value."""
    domain = str(cookie.get("domain")).removeprefix(".")
    return str(cookie.get("name")), domain, str(cookie.get("path", "/"))


def hidden_values(state: Mapping[str, Any]) -> list[Hidden]:
    """Return the values of a state that look like tokens, which no output may repeat."""
    found: dict[str, None] = {}
    for cookie in state.get("cookies", ()):
        found.update(dict.fromkeys(tokens_in(cookie.get("value"))))
    for stored in _texts([_stored(origin) for origin in state.get("origins", ())]):
        found.update(dict.fromkeys(tokens_in(stored)))
    # The longest first: a session's key is longer than a name.
    longest = sorted(found, key=len, reverse=True)[:MAX_HIDDEN]
    return [Hidden(value, redact.MARK) for value in longest]


def _stored(origin: Mapping[str, Any]) -> list[object]:
    return [origin.get("localStorage"), origin.get("indexedDB")]


def tokens_in(value: object) -> list[str]:
    """Return the tokens in a stored value, which may be JSON or percent-encoded."""
    if not isinstance(value, str):
        return []
    ways = {value, unquote(value)}
    with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
        ways.update(_texts(msgspec.json.decode(value)))
    return [one for one in ways if LEAST_HIDDEN <= len(one) <= MOST_HIDDEN and _IS_A_TOKEN(one)]


def is_random(token: str) -> bool:
    """Return whether a token is no text that a page may have for another reason."""
    plain = unquote(token)
    varied = len(plain) >= LEAST_RANDOM and len(set(plain)) >= LEAST_VARIED
    parts = _BETWEEN.split(plain)
    return varied and (len(parts) == 1 or not all(map(_IS_A_WORD, parts)))


def _texts(given: object) -> list[str]:
    """Return all texts in a JSON value."""
    waiting, found = [given], list[str]()
    while waiting and len(found) < MAX_HIDDEN:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, Mapping):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple):
            waiting.extend(one)
    return found


def read_cookie_file(file: Path) -> State:
    """Read the cookies of a file, and stored site data where it has any; for a thread.

    Raises:
        InvalidArguments: it cannot be read, or holds no cookies in a known form.
    """
    try:
        with file.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
    except OSError as error:
        raise _wrong("no_file", f"cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise _wrong("too_large", "is larger than 32 MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong("not_utf8", "is no text in UTF-8") from error
    found = _of_json(text) if text.lstrip()[:1] in ("{", "[") else _of_netscape(text)
    if not found["cookies"] and not found["origins"]:
        raise _wrong("no_cookies", "holds no cookies: neither storage state, JSON nor cookies.txt")
    return found


def cookie_hosts(state: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sites of a state, those with most cookies first; each includes its subdomains."""
    counted = Counter(str(one.get("domain", "")).lstrip(".") for one in state.get("cookies", ()))
    stored = (address_of(str(one.get("origin"))) for one in state.get("origins", ()))
    counted.update(host_of(one) for one in stored if one is not None)
    sites: Counter[str] = Counter()
    for host in sorted(filter(None, counted), key=len):
        labels = host.split(".")
        above = (".".join(labels[at:]) for at in range(len(labels)))
        site = next((one for one in above if one in sites), host)
        sites[site] += counted[host]
    return tuple(site for site, _ in sites.most_common())


def _wrong(code: str, message: str) -> InvalidArguments:
    return InvalidArguments((Problem("file", code, message),))


def _of_json(text: str) -> State:
    try:
        given = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise _wrong("not_json", f"is no valid JSON: {error}") from error
    listed = given if isinstance(given, list) else given.get("cookies")
    origins = given.get("origins") if isinstance(given, Mapping) else None
    cookies = [_cookie(one) for one in _mappings(listed)]
    kept = [one for one in map(_origin, _mappings(origins)) if one is not None]
    return {"cookies": [one for one in cookies if one], "origins": kept}


def _mappings(given: object) -> list[Mapping[str, Any]]:
    return [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []


def _origin(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the stored data of a site: local storage; databases of a file are not taken over."""
    address = address_of(given["origin"]) if isinstance(given.get("origin"), str) else None
    if address is None:
        return None
    items = [
        {"name": one["name"], "value": one["value"]}
        for one in _mappings(given.get("localStorage"))
        if isinstance(one.get("name"), str) and isinstance(one.get("value"), str)
    ]
    return {"origin": address.origin, "localStorage": items}


def _cookie(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a cookie in Playwright's form; extensions write other names for some fields."""
    name, value, domain = given.get("name"), given.get("value"), given.get("domain")
    if not (isinstance(name, str) and isinstance(value, str) and isinstance(domain, str)):
        return None
    expires = given.get("expires", given.get("expirationDate", -1))
    if given.get("hostOnly") is False and not domain.startswith("."):
        domain = f".{domain}"
    same_site = _SAME_SITE.get(str(given.get("sameSite", "")).lower(), _DEFAULT_SAME_SITE)
    secure = given.get("secure") is True
    return _usable(
        {
            "name": name,
            "value": value,
            "domain": domain.lower(),
            "path": str(given.get("path") or "/"),
            "expires": _expiry(expires),
            "httpOnly": given.get("httpOnly") is True,
            "secure": secure,
            # A browser refuses the combination.
            "sameSite": same_site if secure or same_site != "None" else _DEFAULT_SAME_SITE,
        }
    )


def _usable(cookie: dict[str, Any]) -> dict[str, Any] | None:
    """Return a cookie that browsers accept: one that they refuse would refuse all others."""
    host = addresses.host_of(cookie["domain"].removeprefix("."))
    texts = (cookie["name"], cookie["value"], cookie["path"])
    if not host or len(host) > MAX_HOST or not cookie["name"] or not cookie["path"].startswith("/"):
        return None
    if len(cookie["name"]) + len(cookie["value"]) > MAX_COOKIE or any(map(_NOT_SENT, texts)):
        return None
    return cookie


def _expiry(given: object) -> float:
    """Return the expiry in seconds since 1970, or -1 for the end of the session."""
    try:
        found = float(given) if isinstance(given, int | float | str) else -1.0
    except (ValueError, OverflowError):
        return -1
    return found if 0 < found < LAST_EXPIRY else -1


def _of_netscape(text: str) -> State:
    return {"cookies": [one for one in _lines(text) if one is not None], "origins": []}


def _lines(text: str) -> Iterator[dict[str, Any] | None]:
    for line in text.splitlines():
        http_only = line.startswith(_HTTP_ONLY)
        parts = line.removeprefix(_HTTP_ONLY).split("\t")
        if (line.startswith("#") and not http_only) or len(parts) != _FIELDS:
            continue
        domain, shared, path, secure, expires, name, value = parts
        host = domain.removeprefix(".").lower()
        yield _usable(
            {
                "name": name,
                "value": value,
                "domain": f".{host}" if shared.upper() == "TRUE" else host,
                "path": path or "/",
                "expires": _expiry(expires),
                "httpOnly": http_only,
                "secure": secure.upper() == "TRUE",
                "sameSite": _DEFAULT_SAME_SITE,
            }
        )
