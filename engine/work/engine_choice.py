"""Learns which engine takes a page, where `auto` may choose: per site, by comparing both.

A page on which a script could run is taken by both engines as long as the static result of
such pages was not the browser's twice in a row. From then on only now and then, ever more
rarely. Pages are alike where their host is the same and so is what could run on them
(`Fetched.runs`). A difference sends the pages of that part of the site (the first step of
its paths) to the browser alone, which is compared again later, with back-off.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar
from urllib.parse import urlsplit

from engine.work.addresses import address_of
from engine.work.extract import extract_now
from engine.work.fetch import Fetched

_T = TypeVar("_T")
Plan = Literal["static", "browser", "both"]

ENOUGH: Final = 2  # equal pages in a row, after which pages that are alike are trusted
FIRST_PAUSE: Final = 10  # pages between two comparisons; doubled with each that is equal
LONGEST_PAUSE: Final = 80
FIRST_RETURN: Final = 5  # pages that the browser takes alone after a difference; likewise doubled
MOST: Final = 10_000  # kinds of pages, and parts of sites, that are remembered of one crawl


@dataclass(slots=True)
class _Kind:
    """Pages that are alike: equal ones in a row, and how many to take before the next look."""

    equal: int = 0
    pause: int = FIRST_PAUSE
    left: int = FIRST_PAUSE


@dataclass(slots=True)
class _Part:
    """A part of a site; below 0 the browser takes its pages, `left` more without a look."""

    score: int = 0
    pause: int = FIRST_RETURN
    left: int = FIRST_RETURN

    def learn(self, *, equal: bool) -> None:
        if equal:
            self.score = min(self.score + 1, ENOUGH)
            self.left = 0  # the next one as well: two make sure
            return
        if self.score < 0:
            self.pause = min(self.pause * 2, LONGEST_PAUSE)
        self.score = max(self.score - ENOUGH, -ENOUGH)
        self.left = self.pause


class EngineChoice:
    """What one crawl has learned. Nothing here loads a page."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._parts: dict[tuple[str, str], _Part] = {}

    def plan(self, url: str) -> Plan:
        """How to take this page, as far as its address tells; counts it."""
        host, part = _place(url)
        known = self._parts.get((host, part))
        if known is None:
            known = _Part()
            whole = self._parts.get((host, ""))
            if whole is not None and whole.score < 0:  # as all that is known of this host
                known.score = whole.score
            _remember(self._parts, (host, part), known)
        if known.score >= 0:
            return "static"
        if known.left > 0:
            known.left -= 1
            return "browser"
        return "both"

    def needs_comparing(self, fetched: Fetched) -> bool:
        """Has the browser to take it as well, after what the static engine found? Counts it."""
        if not fetched.needs_browser:
            return False
        if not fetched.runs:
            return True  # an empty shell
        kind = self._kinds.get((_place(fetched.url)[0], fetched.runs))
        if kind is None or kind.equal < ENOUGH:
            return True
        kind.left -= 1
        return kind.left < 0

    def learn(self, static: Fetched, *, equal: bool) -> None:
        """Both engines have taken this page; `static` is what came without scripts."""
        host, part = _place(static.url)
        for name in dict.fromkeys((part, "")):  # the host itself is learned of as a whole
            _remember(self._parts, (host, name), self._parts.get((host, name)) or _Part()).learn(
                equal=equal
            )
        if not static.runs:
            return
        known = self._kinds.get((host, static.runs)) or _Kind()
        kind = _remember(self._kinds, (host, static.runs), known)
        if equal:
            if kind.equal >= ENOUGH:
                kind.pause = min(kind.pause * 2, LONGEST_PAUSE)
            kind.equal += 1
        else:
            kind.equal, kind.pause = 0, FIRST_PAUSE
        kind.left = kind.pause


def is_same(static: Fetched, rendered: Fetched) -> bool:
    """Do both have the same words, and lead to the same pages?"""
    if static.status != rendered.status or static.truncated or rendered.truncated:
        return False
    one, other = extract_now(static, "text"), extract_now(rendered, "text")
    if {link.key for link in one.links} != {link.key for link in other.links}:
        return False
    return _words(one.content) == _words(other.content)


def _words(content: object) -> list[str]:
    return content.split() if isinstance(content, str) else []


def _place(url: str) -> tuple[str, str]:
    """The host, and the first step of the path below it."""
    address = address_of(url)
    origin = "" if address is None else address.origin
    steps: Iterable[str] = urlsplit(url).path.split("/")[1:-1]
    return origin, next(iter(steps), "/")


def _remember(known: dict[tuple[str, str], _T], key: tuple[str, str], value: _T) -> _T:
    if key not in known and len(known) >= MOST:
        del known[next(iter(known))]
    known[key] = value
    return value
