"""Where exact values stand in a text, however it spells them (`spellings`, `escaped_letters`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from engine.secrets.escaped_letters import readings
from engine.secrets.spellings import forms_of

# A port is no secret: behind a host, where an address goes on or ends.
_HOST_BEFORE = re.compile(r"(?:(?://|\b)(?:[\w-]+\.)+[\w-]+|\blocalhost|//[\w-]+|\]):$", re.ASCII)
_AFTER_PORT = re.compile(r"[/?#\s\"'<>)\],;\\]|\.?$")
_MOST_HOST = 300  # characters


class Span(NamedTuple):
    """A part of a text, and the number of the value that stands there."""

    begin: int
    end: int
    which: int


class Search:
    """Looks for `values`; where several begin in one place, the longest part counts."""

    def __init__(self, values: Sequence[str]) -> None:
        forms = [(at, form) for at, value in enumerate(values) for form in forms_of(value)]
        self._forms = forms
        self._ports = {at for at, value in enumerate(values) if _may_be_port(value)}

    def __bool__(self) -> bool:
        return bool(self._forms)

    def spans(self, text: str) -> list[Span]:
        """Every place of a value, in order, none within another."""
        if not self._forms:
            return []
        found = list(self._found(text))
        for reading in readings(text):
            for begin, end, which in self._found(reading.plain):
                found.append(Span(reading.place(begin), reading.place(end), which))
        return _apart(found)

    def _found(self, text: str) -> Iterator[Span]:
        for which, form in self._forms:
            # Each by itself: joined, nearly every text would need another pattern compiled.
            for found in _compiled(form.regex).finditer(text) if form.sign in text else ():
                if found.end() > found.start() and not self._is_port(text, found, which):
                    yield Span(*found.span(), which)

    def _is_port(self, text: str, found: re.Match[str], which: int) -> bool:
        if which not in self._ports or not _AFTER_PORT.match(text, found.end()):
            return False
        before = text[max(0, found.start() - _MOST_HOST) : found.start()]
        return _HOST_BEFORE.search(before) is not None


@lru_cache(maxsize=2_048)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)


def _may_be_port(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 5


def _apart(found: list[Span]) -> list[Span]:
    """Those that overlap become one."""
    kept: list[Span] = []
    for one in sorted(found, key=lambda span: (span.begin, -span.end, span.which)):
        if kept and one.begin < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, one.end))
        else:
            kept.append(one)
    return kept
