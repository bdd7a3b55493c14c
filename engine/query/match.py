"""A query as one test: which tasks match, now.

The parts that must all hold are asked one after another over what is left, plain words
first: 100,000 tasks are a matter of milliseconds.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from engine.query.errors import UnknownField
from engine.query.fields import FIELDS, Test
from engine.query.parse import parse
from engine.query.subject import Subject, subject
from engine.query.syntax import And, Node, Not, Term, Text, written
from engine.query.values import glob, has_glob
from engine.records import TaskView


@dataclass(frozen=True, slots=True)
class Filter:
    """A query that was understood. `text` is how it is written plainly; empty: it lets all pass."""

    text: str
    words: tuple[str, ...] = ()
    tests: tuple[Test, ...] = ()

    @classmethod
    def of(cls, text: str) -> Filter:
        """Understand what a person typed.

        Raises:
            QueryError: with the position of the mistake and what would be right.
        """
        node = parse(text)
        parts = node.parts if isinstance(node, And) else (node,)
        words = [each for each in parts if isinstance(each, Text) and _is_word(each)]
        tests = [_test(each) for each in parts if each not in words]
        folded = tuple(word.value.casefold() for word in words)
        return cls(written(node), folded, tuple(tests))

    def passes(self, one: Subject, now_ms: float) -> bool:
        """Does this task match at this time (ms since 1970)?"""
        return all(word in one.haystack for word in self.words) and all(
            test(one, now_ms) for test in self.tests
        )

    def shows(self, view: TaskView, now_ms: float) -> bool:
        """As `passes`, for a task that was not folded before."""
        return self.passes(subject(view), now_ms)

    def keep(self, subjects: Sequence[Subject], now_ms: float) -> list[Subject]:
        """Those that match, in their order."""
        found = list(subjects)
        for word in self.words:
            found = [one for one in found if word in one.haystack]
        for test in self.tests:
            found = [one for one in found if test(one, now_ms)]
        return found


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
        raise UnknownField(term.at, given=term.key, hint=_hint(term.key))
    return field.make(term)


def _hint(key: str) -> str:
    """The field that was meant, else all there are."""
    begun = [name for name in FIELDS if name.startswith(key)]
    near = begun or difflib.get_close_matches(key, FIELDS, 1)
    return f"Try {near[0]}:" if near else f"Known: {', '.join(FIELDS)}."
