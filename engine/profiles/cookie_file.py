"""Cookies from a file: Playwright's storage state, a list as browser extensions write it, or the
Netscape form (`cookies.txt`) of curl and wget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.ledger.files import MIB
from engine.model.errors import InvalidArguments, Problem
from engine.profiles.profile import State

MAX_BYTES: Final = 32 * MIB
_FIELDS: Final = 7  # of a line in the Netscape form
_HTTP_ONLY: Final = "#HttpOnly_"
_SAME_SITE: Final = {"strict": "Strict", "lax": "Lax", "none": "None", "no_restriction": "None"}
_DEFAULT_SAME_SITE: Final = "Lax"


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
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _wrong("not_json", f"is no valid JSON: {error}") from error
    listed = given if isinstance(given, list) else given.get("cookies")
    origins = given.get("origins") if isinstance(given, Mapping) else None
    cookies = [_cookie(one) for one in listed or () if isinstance(one, Mapping)]
    kept = [one for one in origins or () if isinstance(one, Mapping) and "origin" in one]
    return {"cookies": [one for one in cookies if one], "origins": kept}


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
    return {
        "name": name,
        "value": value,
        "domain": domain.lower(),
        "path": str(given.get("path") or "/"),
        "expires": float(expires) if isinstance(expires, int | float) and expires > 0 else -1,
        "httpOnly": given.get("httpOnly") is True,
        "secure": secure,
        # A browser refuses the combination.
        "sameSite": same_site if secure or same_site != "None" else _DEFAULT_SAME_SITE,
    }


def _of_netscape(text: str) -> State:
    return {"cookies": list(_lines(text)), "origins": []}


def _lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        http_only = line.startswith(_HTTP_ONLY)
        parts = line.removeprefix(_HTTP_ONLY).split("\t")
        if (line.startswith("#") and not http_only) or len(parts) != _FIELDS:
            continue
        domain, shared, path, secure, expires, name, value = parts
        host = domain.removeprefix(".").lower()
        yield {
            "name": name,
            "value": value,
            "domain": f".{host}" if shared.upper() == "TRUE" else host,
            "path": path or "/",
            "expires": float(expires) if expires.isdigit() and int(expires) else -1,
            "httpOnly": http_only,
            "secure": secure.upper() == "TRUE",
            "sameSite": _DEFAULT_SAME_SITE,
        }
