"""Cookies from a file: Playwright's storage state, a list as browser extensions write it, or the
Netscape form (`cookies.txt`) of curl and wget."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.ledger.files import MIB
from engine.model.addresses import address_of, host_of
from engine.model.errors import InvalidArguments, Problem
from engine.profiles.profile import State

MAX_BYTES: Final = 32 * MIB
_FIELDS: Final = 7  # of a line in the Netscape form
_HTTP_ONLY: Final = "#HttpOnly_"
_SAME_SITE: Final = {"strict": "Strict", "lax": "Lax", "none": "None", "no_restriction": "None"}
_DEFAULT_SAME_SITE: Final = "Lax"
MAX_COOKIE: Final = 4_096  # characters of name and value, as in browsers
LAST_EXPIRY: Final = 253_402_300_800.0  # the year 10000
_NOT_SENT: Final = re.compile(r"[\x00-\x1f\x7f;]").search


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
    host = host_of(cookie["domain"].removeprefix("."))
    texts = (cookie["name"], cookie["value"], cookie["path"])
    if not host or not cookie["name"] or not cookie["path"].startswith("/"):
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
