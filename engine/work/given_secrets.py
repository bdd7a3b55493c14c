"""The exact values that a task was given as secrets, and taking them out of what a page says.

Gathered here for every kind: user and password of an address, the values under secret names in
its query and fragment, variables, secrets by reference, and what is typed. They live in memory
only. A page may spell them as it likes: as they are, in an address, in markup, in JSON, with
the backslashes of Markdown; user and password also as an Authorization header does.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, quote_plus, unquote_plus

from engine import redact
from engine.work.addresses import credentials_of

if TYPE_CHECKING:
    from engine.work.fetch import Credentials

_SHORT: Final = 4  # characters: shorter values are only hidden where they stand as a word
_MARKED: Final = frozenset("\\`*_{}[]()<>#+-.!|~&=:$^@\"'")  # what Markdown puts a backslash before
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_RUN = re.compile(r"[A-Za-z0-9]+")


class Hidden(NamedTuple):
    """A value, and what is put in its place; its repr shows the latter only."""

    value: str
    instead: str

    def __repr__(self) -> str:
        return f"Hidden({self.instead})"


def of_address(typed: str | None) -> list[Hidden]:
    """What an address that was given to a task holds of secrets."""
    if not typed:
        return []
    found = [value for value in redact.secret_values(typed) if len(value) >= _SHORT]
    read = [plain for value in found if (plain := unquote_plus(value)) != value]
    return [*_marked([*found, *read]), *of_credentials(credentials_of(typed))]


def of_credentials(given: Credentials | None) -> list[Hidden]:
    """The password, and both as a browser sends them. A user's name alone is no secret."""
    if given is None or not given.password:
        return []
    both = f"{given.username}:{given.password}".encode("utf-8", "replace")
    return _marked([given.password, b64encode(both).decode()])


def _marked(values: Iterable[str]) -> list[Hidden]:
    return [Hidden(value, redact.MARK) for value in values]


class Scrub:
    """Replaces values that must not be kept, wherever a page or an error repeats them.

    `key_shapes`: page content also loses strict key shapes (see `redact.content`).
    """

    def __init__(self, hidden: Iterable[tuple[str, str]], *, key_shapes: bool = True) -> None:
        """`hidden`: pairs of a value and what is put in its place."""
        forms: dict[str, str] = {}
        raw: set[str] = set()
        for value, instead in hidden:
            raw.add(value)
            for form in _spellings(value):
                forms.setdefault(form, instead)
        self._key_shapes = key_shapes
        self._signs = _signs(raw)
        # The longest first: of two values that begin alike the longer must not leave its end.
        ordered = sorted(forms, key=len, reverse=True)
        self._instead = [forms[form] for form in ordered]
        groups = (f"({_pattern(form)})" for form in ordered)
        self._pattern = re.compile("|".join(groups)) if ordered else None

    def __repr__(self) -> str:
        return f"Scrub({len(self._instead)} spellings)"  # never what it hides

    def hide(self, given: str) -> str:
        """`given` without any hidden value."""
        return self._hidden(given)[0]

    def text(self, given: str) -> str:
        """`given` without any hidden value, and without what else a secret looks like."""
        return redact.text(self.hide(given))

    def content(self, given: str) -> tuple[str, int]:
        """A page's own text by the rule of page content, and how much was taken out."""
        kept, count = self._hidden(given)
        if not self._key_shapes:
            return kept, count
        kept, shapes = redact.content(kept)
        return kept, count + shapes

    def markdown(self, given: str) -> tuple[str, int]:
        """The same for Markdown: its links lead somewhere, and addresses are judged strictly."""
        kept, count = self.content(given)
        kept, targets = redact.link_targets(kept)
        return kept, count + targets

    def published(self, given: Any) -> Any:
        """A JSON value that a page gave, by the rule of page content."""
        return redact.published(given, self.content)[0]

    def page(self, record: Mapping[str, Any], *, markdown: bool = False) -> dict[str, Any]:
        """A page's record as it may be kept; `redacted` counts what its content lost."""
        kept, count = redact.page(record, self.markdown if markdown else self.content)
        return {**kept, "redacted": count} if count else kept

    def _hidden(self, given: str) -> tuple[str, int]:
        if self._pattern is None or not (
            self._signs is None or any(sign in given for sign in self._signs)
        ):
            return given, 0
        return self._pattern.subn(self._replaced, given)

    def _replaced(self, found: re.Match[str]) -> str:
        return self._instead[(found.lastindex or 1) - 1]


def _signs(values: Iterable[str]) -> frozenset[str] | None:
    """Texts of which one stands in whatever repeats one of the values; None: there are none.

    Letters and digits of ASCII stay as they are in every spelling, so that a page without
    these need not be searched for twenty spellings.
    """
    found: set[str] = set()
    for value in values:
        runs = _RUN.findall(value)
        if not runs:
            return None
        found.add(max(runs, key=len))
    return frozenset(found)


def _spellings(value: str) -> Iterable[str]:
    """How a page may spell `value`: as it is, in an address, in markup, in JSON."""
    yield value
    stripped = value.strip()
    if not stripped:
        return
    for form in (stripped, " ".join(stripped.split())):
        yield form
        yield from _of_addresses(form)
        yield from _of_markup(form)
        for escaped in (json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1]):
            yield escaped
            yield escaped.replace("/", "\\/")
            yield _html_safe(escaped)


def _of_addresses(form: str) -> Iterable[str]:
    written = (
        quote(form, safe="", errors="replace"),
        quote(form, errors="replace"),
        quote(form, safe="!'()*~-._", errors="replace"),  # encodeURIComponent
        quote_plus(form, errors="replace"),
    )
    for one in written:
        yield one
        yield _ESCAPE.sub(lambda found: found[0].lower(), one)


def _of_markup(form: str) -> Iterable[str]:
    yield html.escape(form)
    yield html.escape(form, quote=False)
    yield form.replace("&", "&amp;").replace('"', "&quot;")  # an attribute, as browsers write it
    yield html.escape(form).replace("&#x27;", "&#39;")
    yield html.escape(form).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")


def _html_safe(escaped: str) -> str:
    """JSON inside of a script element: without the signs that would end it."""
    for sign in "<>&'":
        escaped = escaped.replace(sign, f"\\u{ord(sign):04x}")
    return escaped


def _pattern(form: str) -> str:
    if not form.strip():
        return r"(?!)"  # blanks alone are no secret, and would eat every text
    plain = "".join(_sign(sign) for sign in form)
    return plain if len(form) >= _SHORT else rf"(?<!\w){plain}(?!\w)"


def _sign(sign: str) -> str:
    return rf"\\?{re.escape(sign)}" if sign in _MARKED else re.escape(sign)
