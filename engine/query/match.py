"""A query as one test: which tasks match, now.

The parts that must all hold are asked one after another over what is left, plain words
first: 100,000 tasks are a matter of milliseconds.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

from engine.query.errors import UnknownField
from engine.query.fields import FIELDS, Test
from engine.query.parse import parse
from engine.query.subject import Subject, subject
from engine.query.syntax import And, Node, Not, Or, Term, Text, written
from engine.query.values import glob, has_glob
from engine.query.words import Searched
from engine.records import TaskView

S = TypeVar("S", bound=Searched)


@dataclass(frozen=True, slots=True)
class Filter:
    """A query that was understood. `text` is how it is written plainly; empty: it lets all pass.

    `parts` are what must all hold, each written plainly; `conditions` those that are no mere
    words. `ages` says that time alone may
    change who matches, `counts` that mere progress may.
    """

    text: str
    words: tuple[str, ...] = ()
    tests: tuple[Test, ...] = ()
    parts: tuple[str, ...] = ()
    conditions: frozenset[str] = frozenset()
    ages: bool = False
    counts: bool = False

    @classmethod
    def of(cls, text: str) -> Filter:
        """Understand what a person typed.

        Raises:
            QueryError: with the position of the mistake and what would be right.
        """
        node = parse(text)
        parts = node.parts if isinstance(node, And) else (node,)
        words = [each for each in parts if isinstance(each, Text) and _is_word(each)]
        rest = [each for each in parts if each not in words]
        folded = tuple(word.value.casefold() for word in words)
        tests = tuple(map(_test, rest))
        asked = [FIELDS[key] for key in _keys(node)]  # all known: their tests are made
        return cls(
            written(node),
            folded,
            tests,
            tuple(map(written, parts)),
            frozenset(map(written, rest)),
            any(field.ages for field in asked),
            any(field.counts for field in asked),
        )

    def passes(self, one: Subject, now_ms: float) -> bool:
        """Does this task match at this time (ms since 1970)?"""
        if self.words:
            text = one.haystack
            if not all(word in text for word in self.words):
                return False
        return all(test(one, now_ms) for test in self.tests)

    def shows(self, view: TaskView, now_ms: float) -> bool:
        """As `passes`, for a task that was not asked before."""
        return self.passes(subject(view), now_ms)

    def keep(self, found: Iterable[S], now_ms: float, ask: Callable[[S], Subject]) -> list[S]:
        """Those that match, in their order. `ask` makes one of them ready to be asked."""
        kept = list(found)
        for word in self.words:
            kept = [one for one in kept if word in one.haystack]
        for test in self.tests:
            kept = [one for one in kept if test(ask(one), now_ms)]
        return kept

    def narrows(self, wider: Filter) -> bool:
        """Does everything that passes this pass `wider`, at the same time and beyond doubt?"""
        return self.conditions >= wider.conditions and all(
            any(word in longer for longer in self.words) for word in wider.words
        )


def _keys(node: Node) -> Iterator[str]:
    if isinstance(node, Term):
        yield node.key
    elif isinstance(node, Not):
        yield from _keys(node.part)
    elif isinstance(node, (And, Or)):
        for part in node.parts:
            yield from _keys(part)


def _is_word(node: Text) -> bool:
    return not has_glob(node.value, node.quoted)


def _test(node: Node) -> Test:
    if isinstance(node, Text):
        return _text(node)
    if isinstance(node, Term):
        return _term(node)
    if isinstance(node, Not):
        inner = _test(node.part)
        return lambda one, now_ms: not inner(one, now_ms)
    # Pair by pair: a chain of `and` costs half of what all() over a generator does.
    return reduce(_both if isinstance(node, And) else _either, map(_test, node.parts))


def _both(first: Test, second: Test) -> Test:
    return lambda one, now_ms: first(one, now_ms) and second(one, now_ms)


def _either(first: Test, second: Test) -> Test:
    return lambda one, now_ms: first(one, now_ms) or second(one, now_ms)


def _text(node: Text) -> Test:
    if not _is_word(node):
        found = glob(node.value).search  # within one of the texts: `.` stops at a line's end
        return lambda one, _: found(one.haystack) is not None
    word = node.value.casefold()
    return lambda one, _: word in one.haystack


def _term(term: Term) -> Test:
    field = FIELDS.get(term.key)
    if field is None:
        near = _near(term.key)
        hint = f"Try {near}:" if near else f"Known: {', '.join(FIELDS)}."
        raise UnknownField(term.at, given=term.key, hint=hint, near=near)
    return field.make(term)


def _near(key: str) -> str:
    """The field that was meant, if one is like it."""
    begun = [name for name in FIELDS if name.startswith(key)]
    return next(iter(begun or difflib.get_close_matches(key, FIELDS, 1)), "")
