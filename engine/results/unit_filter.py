"""Filter of the units of a task: words, and terms such as `words:<100`, `-description:*`.

The grammar is that of the task filter (`engine/query/parse.py`) with the fields of `UNIT_FIELDS`. A
word is searched in the name, title, reason, status, H1 and description. `field:*` means any value
and `field:""` none; a comparison is false for a unit without the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from engine.model.errors import QueryError
from engine.query.fields import (
    Compared,
    Pattern,
    compare,
    contains,
    equals,
    glob,
    has_glob,
    number,
    one_of,
    refuse,
    span,
    starts_with,
    without_comparison,
)
from engine.query.match import combined, field_of
from engine.query.parse import EVERYTHING, Term, Text, parse
from engine.results.units import NO_FACTS, PageFacts, Unit, UnitState, unit_of

UnitTest = Callable[[Unit, str], bool]  # gets the unit and its text for words
_CLASS = re.compile(r"[1-5]xx", re.IGNORECASE)  # of HTTP statuses
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,3})?)(b|kb|mb|gb)?", re.IGNORECASE)
_SIZES: Final = {"": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class UnitField:
    """Field of the filter: builder of its test, and an example of its values."""

    make: Callable[[Term], UnitTest]
    example: str


def facts_of(unit: Unit) -> PageFacts:
    """Return the facts of a unit; empty ones where it has none."""
    return unit.facts or NO_FACTS


def _numeric(
    value: Callable[[Unit], float | None],
    example: str,
    read: Callable[[Term, str], Compared] = number,
) -> UnitField:
    """Field of a number that may be unknown."""

    def make(term: Term) -> UnitTest:
        if (wanted := _presence(term)) is not None:
            return lambda unit, _: (value(unit) is not None) is wanted
        compared = read(term, example)
        return lambda unit, _: (found := value(unit)) is not None and compared(found)

    return UnitField(make, example)


def _textual(
    value: Callable[[Unit], str], example: str, read: Callable[[Term], Pattern] = contains
) -> UnitField:
    """Field of a text that may be empty."""

    def make(term: Term) -> UnitTest:
        if (wanted := _presence(term)) is not None:
            return lambda unit, _: bool(value(unit)) is wanted
        matches = read(without_comparison(term, example))
        return lambda unit, _: matches(value(unit).casefold())

    return UnitField(make, example)


def _presence(term: Term) -> bool | None:
    """Return what `field:*` (any value) and `field:""` (none) require; None for other values."""
    if term.comparison:
        return None
    if term.quoted:
        return None if term.value else False
    return True if term.value.strip("*") == "" else None


def _size(term: Term, example: str) -> Compared:
    """Parse a number of bytes with an optional unit and comparison, `>100kB`."""
    found = _SIZE.fullmatch(term.value.replace(",", ""))
    if term.quoted or found is None:
        refuse(term, example)
    return compare(term.comparison, float(found[1]) * _SIZES[(found[2] or "").lower()])


def _language(term: Term) -> Pattern:
    """Match a language with all its regions: `de` is also `de-AT`."""
    if has_glob(term.value, term.quoted):
        return equals(term)
    wanted = term.value.casefold()
    return lambda text: text == wanted or text.startswith(f"{wanted}-")


def _status(term: Term) -> UnitTest:
    if not (term.comparison or term.quoted) and _CLASS.fullmatch(term.value):
        wanted = term.value.lower()
        return lambda unit, _: unit.answer == wanted
    return _CODE.make(term)


def _state(term: Term) -> UnitTest:
    wanted = one_of(term, UnitState)
    return lambda unit, _: unit.state == wanted


_CODE: Final = _numeric(lambda unit: unit.code, "404")
UNIT_FIELDS: Final[Mapping[str, UnitField]] = {
    "status": UnitField(_status, "404"),
    "state": UnitField(_state, "failed"),
    "url": _textual(lambda unit: unit.name, "/docs/"),
    "title": _textual(lambda unit: unit.title, "shop"),
    "error": _textual(lambda unit: unit.reason, "timeout"),
    "depth": _numeric(lambda unit: unit.depth, ">2"),
    "response": _numeric(lambda unit: unit.response_ms, ">500ms", span),
    "render": _numeric(lambda unit: unit.render_ms, ">2s", span),
    "size": _numeric(lambda unit: unit.size_bytes, ">100kB", _size),
    "transferred": _numeric(lambda unit: unit.transferred_bytes, ">1MB", _size),
    "redirects": _numeric(lambda unit: unit.redirects, ">0"),
    "links": _numeric(lambda unit: unit.links_found, ">100"),
    "links_internal": _numeric(lambda unit: facts_of(unit).links_internal, "0"),
    "links_external": _numeric(lambda unit: facts_of(unit).links_external, ">20"),
    "links_nofollow": _numeric(lambda unit: facts_of(unit).links_nofollow, ">0"),
    "words": _numeric(lambda unit: facts_of(unit).words, "<100"),
    "h1": _textual(lambda unit: facts_of(unit).h1, "welcome"),
    "h1_count": _numeric(lambda unit: facts_of(unit).h1_count, "0"),
    "description": _textual(lambda unit: facts_of(unit).description, "shop"),
    "canonical": _textual(lambda unit: facts_of(unit).canonical, "/docs/"),
    "robots": _textual(lambda unit: facts_of(unit).robots, "noindex"),
    "language": _textual(lambda unit: facts_of(unit).language, "de", _language),
    "content_type": _textual(lambda unit: facts_of(unit).content_type, "html"),
    "charset": _textual(lambda unit: facts_of(unit).charset, "utf-8", equals),
    "images": _numeric(lambda unit: facts_of(unit).images, ">50"),
    "images_without_alt": _numeric(lambda unit: facts_of(unit).images_without_alt, ">0"),
    "structured_data": _textual(lambda unit: facts_of(unit).structured_data, "product"),
    "content_hash": _textual(lambda unit: facts_of(unit).content_hash, "3fa1c0", starts_with),
    "consent": _textual(lambda unit: " ".join(unit.consent).strip(), "failed"),
    "worker": _textual(lambda unit: unit.worker, "rack-7"),
    "fields": _textual(lambda unit: unit.fields, "red"),
    "attempts": _numeric(lambda unit: unit.attempts or None, ">1"),
    "redacted": _numeric(lambda unit: unit.redacted, ">0"),
    "links_over": _numeric(lambda unit: unit.links_over, ">0"),
}
# All that an auditor may try: an unknown one is a mistake, and no word.
_NUMBERED: Final = frozenset(f"h{level}{end}" for level in range(1, 7) for end in ("", "_count"))


@dataclass(frozen=True, slots=True)
class UnitFilter:
    """Filter for units with one of `kinds` (none: all) that match `text`.

    `by_answer` compares `Unit.answer` instead of the state. With a `mistake` the text filters
    nothing.
    """

    kinds: frozenset[str] = frozenset()
    text: str = ""
    by_answer: bool = False
    mistake: QueryError | None = field(default=None, compare=False)
    _test: UnitTest | None = field(default=None, compare=False)
    _has_words: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, kinds: frozenset[str], text: str, *, by_answer: bool = False) -> UnitFilter:
        """Build a filter from user input: words and terms, ignoring case."""
        words: list[str] = []

        def leaf(node: Text | Term) -> UnitTest:
            node = _as_text(node)
            if isinstance(node, Text):
                words.append(node.value)
                return _word(node)
            return field_of(node, UNIT_FIELDS).make(node)

        try:
            node = parse(text, _NUMBERED)
            test = None if node == EVERYTHING else combined(node, leaf)
        except QueryError as mistake:
            return cls(kinds, text, by_answer, mistake)
        return cls(kinds, text, by_answer, None, test, bool(words))

    @property
    def matches_all(self) -> bool:
        return not self.kinds and self._test is None

    def passes(self, unit: Unit) -> bool:
        """Return whether this unit matches."""
        if self.kinds and (unit.answer if self.by_answer else unit.state) not in self.kinds:
            return False
        if self._test is None:
            return True
        return self._test(unit, _searched(unit) if self._has_words else "")

    def wants(self, row: Mapping[str, Any]) -> bool:
        """Do as `passes`, for the unit record itself."""
        return self.passes(unit_of(row, 0))


def _as_text(node: Text | Term) -> Text | Term:
    """Return as a word what only looks like a term: `net::ERR_FAILED`, `localhost:8080`."""
    if isinstance(node, Text) or not (node.value.startswith(":") or node.key == "localhost"):
        return node
    return Text(f"{node.key}:{node.comparison}{node.value}", node.quoted, node.at)


def _word(node: Text) -> UnitTest:
    if has_glob(node.value, node.quoted):
        found = glob(node.value).search
        return lambda _, text: found(text) is not None
    word = node.value.casefold()
    return lambda _, text: word in text


def _searched(unit: Unit) -> str:
    """Return the text of a unit in which words are searched."""
    facts = facts_of(unit)
    told = (unit.name, unit.title, unit.reason, str(unit.code or ""), unit.remark_words)
    return "\n".join((*told, *unit.earlier, facts.h1, facts.description)).casefold()
