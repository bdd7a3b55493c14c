"""Arguments of every kind that opens pages: what it shows of itself, and headers for its sites.

A header may name the environment variable that holds its value: `Authorization: Bearer env:TOKEN`.
Only such a reference is stored (see `model.redact`); values exist in memory.
"""

from __future__ import annotations

import difflib
import re
import zoneinfo
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from engine.browser.chromium.browser_options import BrowserLook
from engine.browser.chromium.devices import Device, device_named, names_near
from engine.egress.own_headers import own_headers
from engine.kinds.arguments import (
    Argument,
    FormField,
    Table,
    entries,
    optional,
    text,
    web_addresses,
)
from engine.kinds.context import missing_secret
from engine.model import redact
from engine.model.addresses import Credentials
from engine.model.errors import Problem
from engine.secrets.given_secrets import Hidden, of_credentials

Engine = Literal["browser", "static", "auto"]
MOST_HEADERS: Final = 50
_NAMES_A_SECRET: Final = re.compile(r"auth|cookie|key|pass|secret|session|token", re.I).search
_IS_A_TOKEN: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[\w.~+/=-]{12,}").fullmatch
MOST_NAME: Final = 200  # characters of a header's name
MOST_VALUE: Final = 4_096
MOST_AGENT: Final = 512
LEAST_PX, MOST_PX = 100, 8_000
NEEDS_BROWSER: Final = "needs the browser engine"
_FORM: Final = 'must have the form "Name: value"'
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]+")
_SIZE: Final = re.compile(r"\s*(\d{1,5})\s*[xX×]\s*(\d{1,5})\s*")
_LOCALE: Final = re.compile(r"([A-Za-z]{2,3})(?:-([A-Za-z]{4}))?(?:-([A-Za-z]{2}|\d{3}))?")
# Set by the engines or by the connection itself; another value breaks the request.
_BY_ENGINE: Final = frozenset(
    {"accept-charset", "accept-encoding", "connection", "content-encoding", "content-length"}
    | {"content-type", "cookie", "cookie2", "date", "expect", "host", "keep-alive", "origin"}
    | {"referer", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade", "via"}
    | {"access-control-request-headers", "access-control-request-method"}
)
_OWN_ARGUMENT: Final = {"user-agent": "user_agent", "accept-language": "locale"}
_ENGINE_PREFIXES: Final = ("sec-", "proxy-")


def user_agent(given: object) -> str:
    """Read a user agent: printable ASCII on one line."""
    found = text(given)
    if not _PRINTABLE.fullmatch(found):
        raise ValueError("must be printable ASCII on one line")
    if len(found) > MOST_AGENT:
        raise ValueError(f"must not be longer than {MOST_AGENT} characters")
    return found


def device(given: object) -> Device:
    """Read the name of a known device."""
    name = text(given)
    found = device_named(name[:200])
    if found is None:
        near = ", ".join(names_near(name[:200]))
        raise ValueError(f"is no known device; near are {near}" if near else "is no known device")
    return found


def viewport(given: object) -> tuple[int, int]:
    """Read a size in CSS pixels, such as `390x844`."""
    found = _SIZE.fullmatch(text(given))
    if found is None:
        raise ValueError("must be a width and a height, such as 390x844")
    width, height = int(found[1]), int(found[2])
    if not (LEAST_PX <= width <= MOST_PX and LEAST_PX <= height <= MOST_PX):
        raise ValueError(f"must be between {LEAST_PX} and {MOST_PX:,} each")
    return width, height


def locale(given: object) -> str:
    """Read a language with its region, such as `de-DE`."""
    found = _LOCALE.fullmatch(text(given).replace("_", "-"))
    if found is None:
        raise ValueError("must be a language, such as de or de-DE")
    language, script, region = found.groups()
    parts = [language.lower(), (script or "").title(), (region or "").upper()]
    return "-".join(part for part in parts if part)


def timezone(given: object) -> str:
    """Read the name of a time zone, such as `Europe/Berlin`."""
    name = text(given)
    known = zoneinfo.available_timezones() - {"localtime", "Factory"}  # browsers know neither
    if name in known:
        return name
    level = {one.casefold(): one for one in known}
    if name.casefold() in level:
        return level[name.casefold()]
    ends = {one.rpartition("/")[2].casefold(): one for one in sorted(known)}
    near = difflib.get_close_matches(name.casefold()[:64], [*level, *ends], n=1)
    if near:
        raise ValueError(f"is no time zone; did you mean {(level | ends)[near[0]]}?")
    raise ValueError("is no time zone; give a name such as Europe/Berlin")


class Referenced(str):
    """A header whose value came from a variable: it is a secret, whatever it looks like."""


def headers(given: object) -> tuple[tuple[str, str], ...]:
    """Read a list of headers, each `Name: value`; a message never has the value."""
    found = [_header(one) for one in entries(given)]
    if len(found) > MOST_HEADERS:
        raise ValueError(f"must not have more than {MOST_HEADERS} entries")
    names = [name.lower() for name, _ in found]
    twice = next((name for name, _ in found if names.count(name.lower()) > 1), None)
    if twice is not None:
        raise ValueError(f"must not have {twice} twice")
    return tuple(found)


def _header(given: object) -> tuple[str, str]:
    name, colon, value = (given if isinstance(given, str) else "").partition(":")
    name, value = name.strip(" \t"), value.strip()
    if not colon or not _NAME.fullmatch(name) or len(name) > MOST_NAME:
        raise ValueError(_FORM)
    level = name.lower()
    if level in _BY_ENGINE or level.startswith(_ENGINE_PREFIXES):
        raise ValueError(f"must not have the header {name}, which the engine sets")
    if level in _OWN_ARGUMENT:
        raise ValueError(f"must have {_OWN_ARGUMENT[level]} instead of the header {name}")
    if not value:
        raise ValueError(f"must have a value for {name}")
    if not _PRINTABLE.fullmatch(value):
        raise ValueError(f"must have printable ASCII on one line as the value of {name}")
    if len(value) > MOST_VALUE:
        raise ValueError(f"must not have more than {MOST_VALUE:,} characters in {name}")
    return name, Referenced(value) if isinstance(given, Referenced) else value


LOOK: Final[Table] = {
    "device": Argument(
        optional(device),
        FormField(
            "Device",
            "identity",
            editor="line",
            shade="iPhone 15, Pixel 7, iPad Mini",
            hint="Its size, user agent and touch input, as far as Chromium can imitate them.",
        ),
        help="Device, such as iPhone 15 or Pixel 7: its size, user agent and touch.",
    ),
    "viewport": Argument(
        optional(viewport),
        FormField("Viewport", "identity", editor="line", shade="390x844"),
        help="Viewport, such as 390x844.",
    ),
    "user_agent": Argument(
        optional(user_agent),
        FormField("User agent", "identity", editor="line", shade="that of the device or engine"),
        help="User agent (default: that of the device or engine).",
    ),
    "locale": Argument(
        optional(locale),
        FormField("Locale", "identity", editor="line", shade="de-DE"),
        help="Locale, such as de-DE.",
    ),
    "timezone": Argument(
        optional(timezone),
        FormField("Time zone", "identity", editor="line", shade="Europe/Berlin"),
        help="Time zone, such as Europe/Berlin.",
    ),
    "headers": Argument(
        headers,
        FormField(
            "HTTP headers",
            "identity",
            editor="lines",
            shade="Authorization: Bearer env:TOKEN",
            hint="One per line: Name: value, or Name: env:VARIABLE. Sent to the origin of the"
            " address only; not stored.",
        ),
        help="HTTP header for the origin of URL only: Name: value, or Name: env:VARIABLE.",
        option="repeated",
    ),
    # Set by a retry, whose pages may be of other sites; with `field`, schemas do not offer it.
    "header_origins": Argument(web_addresses, field="header_origins"),
}


SHOWN: Final = ("device", "viewport", "user_agent", "locale", "timezone")  # without headers


def look_problems(fields: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of `fields` that concern several arguments."""
    found: list[Problem] = []
    if fields.get("engine") == "static":
        names = [name for name in ("viewport", "timezone") if fields.get(name) is not None]
        found += [Problem(name, "not_together", NEEDS_BROWSER) for name in names]
    sent = {name.lower() for name, _ in fields.get("headers") or ()}
    if "authorization" in sent and fields.get("username") is not None:
        why = "does not go with username and password"
        found.append(Problem("headers", "not_together", why))
    return found


def look_given(fields: Mapping[str, Any], reason: str) -> list[Problem]:
    """Return a problem with this reason for each of these arguments that is given."""
    return [Problem(name, "not_together", reason) for name in LOOK if fields.get(name)]


def look_from(
    fields: dict[str, Any], starts: Iterable[str]
) -> tuple[BrowserLook, tuple[Hidden, ...]]:
    """Remove these arguments from `fields`; return the look and the secrets in its headers.

    `starts` are the start addresses: the headers are for their origins. A value that is a part of
    one of them is no secret, and would hide the address.
    """
    given = {name: fields.pop(name) for name in LOOK if name in fields}
    pairs, starts = given.pop("headers", ()), tuple(starts)
    origins = given.pop("header_origins", None)
    origins = starts if origins is None else origins
    look = BrowserLook(**given, headers=own_headers(pairs, origins))
    hidden = [one for name, value in pairs for one in _hidden(name, value)]
    return look, tuple(one for one in hidden if not any(one.value in url for url in starts))


def _hidden(name: str, value: str) -> list[Hidden]:
    """Return the secrets in a header: its value, a token behind its scheme, and a password.

    A value such as `1` or `staging` is part of many texts, and would be masked in all of them.
    """
    is_named = redact.is_secret_key(name) or _NAMES_A_SECRET(name)
    if not (isinstance(value, Referenced) or is_named or _IS_A_TOKEN(value)):
        return []
    scheme, blank, token = value.partition(" ")
    found = [value, token.strip()] if blank and name.lower().endswith("authorization") else [value]
    hidden = [Hidden(one, redact.MARK) for one in found if one]
    return hidden + (_of_basic(token) if scheme.lower() == "basic" else [])


def _of_basic(token: str) -> list[Hidden]:
    try:
        user, _, password = b64decode(token.strip(), validate=True).decode().partition(":")
    except ValueError:
        return []
    return of_credentials(Credentials("", user, password))


def resolved_headers(
    given: object, environ: Mapping[str, str] | None, problems: list[Problem]
) -> object:
    """Replace each `env:NAME` in headers by its value; without `environ` by nothing secret."""
    if not isinstance(given, list | tuple):
        return given
    return [_resolved(at, one, environ, problems) for at, one in enumerate(given)]


def _resolved(
    at: int, given: object, environ: Mapping[str, str] | None, problems: list[Problem]
) -> object:
    found = redact.HEADER_REFERENCE.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        return given
    variable = found["variable"]
    if environ is None:
        return f"{found['lead']}x"
    value = environ.get(variable, "").strip()
    if not value:
        message = missing_secret(environ, variable)
        problems.append(Problem(f"headers[{at}]", "missing_secret", message))
    return Referenced(found["lead"] + (value or "x"))


def literal_secrets(given: object) -> list[Problem]:
    """Return a problem for each header whose name tells of a secret that is written out.

    Other users of the machine can read a command line.
    """
    found: list[Problem] = []
    for at, one in enumerate(given if isinstance(given, list | tuple) else ()):
        name = one.partition(":")[0].strip(" \t") if isinstance(one, str) else ""
        if not _NAME.fullmatch(name):
            continue  # a part of the value may stand before the colon; `headers` refuses the form
        if redact.is_secret_key(name) and not redact.HEADER_REFERENCE.fullmatch(str(one)):
            why = f"give the value of {name} as env:NAME, the variable that holds it"
            found.append(Problem(f"headers[{at}]", "literal_secret", why))
    return found
