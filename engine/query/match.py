"""Compiled query: a test for which tasks match now.

Conditions that must all hold are tested one after another on the remaining tasks, plain words
first: 100,000 tasks take milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress
from operator import attrgetter
from typing import Protocol, TypeVar

from engine.model.records import TaskView
from engine.query.errors import QueryError
from engine.query.fields import FIELDS, SINCE, TOOK_KEYS, Compared, Test, glob, has_glob, span
from engine.query.mistakes import Searchable, others, test_of
from engine.query.parse import And, Node, Not, Or, Term, Text, parse, written
from engine.query.subject import CUT, Seen, Subject, subject, took_all


class Listed(Searchable, Seen, Protocol):
    """Row of a list; `about` is equal for all rows of one state, kind, host and budget.

    It may change only together with these.
    """

    @property
    def about(self) -> Hashable: ...


S = TypeVar("S", bound=Listed)


@dataclass(frozen=True, slots=True)
class Filter:
    """Parsed query. `text` is its normal form; an empty one matches all tasks.

    `parts` are the conditions that must all hold, each in normal form; `conditions` are those that
    are no mere words. With `ages` the result may change with time alone, with `counts` with
    progress alone.
    """

    text: str
    words: tuple[str, ...] = ()
    tests: tuple[Test, ...] = ()
    alike: tuple[Test, ...] = ()
    since: tuple[tuple[str, Compared], ...] = ()
    took: tuple[Compared, ...] = ()
    hints: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    conditions: frozenset[str] = frozenset()
    ages: bool = False
    counts: bool = False

    @classmethod
    def of(cls, text: str) -> Filter:
        """Parse user input.

        Raises:
            QueryError: with the position of the mistake and a suggestion; `also` has the
                other mistakes.
        """
        try:
            return cls._parsed(text)
        except QueryError as first:
            first.also = others(text, first)
            raise

    @classmethod
    def _parsed(cls, text: str) -> Filter:
        node = parse(text)
        parts = node.parts if isinstance(node, And) else (node,)
        words = [each for each in parts if isinstance(each, Text) and _is_word(each)]
        rest = [each for each in parts if each not in words]
        made = [(each, _test(each)) for each in rest]
        offer_all = [FIELDS[key] for key in _keys(node)]  # all are known: their tests were built
        since = [each for each in rest if isinstance(each, Term) and each.key in SINCE]
        took = [each for each in rest if isinstance(each, Term) and each.key in TOOK_KEYS]
        aside = [*since, *took]
        return cls(
            text=written(node),
            words=tuple(word.value.casefold() for word in words),
            tests=tuple(test for each, test in made if not _is_alike(each) and each not in aside),
            alike=tuple(test for each, test in made if _is_alike(each)),
            since=tuple((SINCE[each.key], span(each, "")) for each in since),
            took=tuple(span(each, "") for each in took),
            hints=tuple(map(_hint, filter(_is_in_haystack, rest))),
            parts=tuple(written(And((each,))) for each in parts),  # an OR gets brackets
            conditions=frozenset(map(written, rest)),
            ages=any(field.ages for field in offer_all),
            counts=any(field.counts for field in offer_all),
        )

    def passes(self, one: Subject, now_ms: float) -> bool:
        """Return whether this task matches at this time (ms since 1970)."""
        if self.words:
            text = one.haystack
            if not all(word in text for word in self.words):
                return False
        if not all(compared(now_ms - getattr(one, name)) for name, compared in self.since):
            return False
        if self.took and not all(compared(one.took_ms(now_ms)) for compared in self.took):
            return False
        return all(test(one, now_ms) for test in (*self.alike, *self.tests))

    def shows(self, view: TaskView, now_ms: float) -> bool:
        """Do as `passes`, for a task's view."""
        return self.passes(subject(view), now_ms)

    def keep(
        self,
        found: Iterable[S],
        now_ms: float,
        ask: Callable[[S], Subject],
        took: Sequence[float] | None = None,
    ) -> list[S]:
        """Return the matching rows, in their order.

        `ask` builds the subject of a row; `took` has the current `Subject.took_ms` of each row,
        where known. Conditions on `about` are tested once for each of its values, times are
        compared in bulk, and only the remaining rows are tested one by one.
        """
        kept = list(found if took is None else self._long_enough(found, took))
        for word in self.words:
            kept = [one for one in kept if word in one.haystack]
        if self.alike:
            some = {one.about: one for one in kept}
            good = {about for about, one in some.items() if self._matches_about(ask(one), now_ms)}
            kept = [one for one in kept if one.about in good]
        for name, compared in self.since:
            moments = list(map(attrgetter(name), kept))
            kept = [
                one
                for one, at in zip(kept, moments, strict=True)
                if at is not None and compared(now_ms - at)
            ]
        for hint in self.hints:  # a long text is cut off in the haystack
            kept = [one for one in kept if hint in one.haystack or len(one.haystack) > CUT]
        for compared in self.took if took is None else ():
            kept = list(compress(kept, map(compared, took_all(kept, now_ms))))
        for test in self.tests:
            kept = [one for one in kept if test(ask(one), now_ms)]
        return kept

    def _long_enough(self, found: Iterable[S], took: Iterable[float]) -> Iterable[S]:
        for compared in self.took:
            passed = list(map(compared, took))
            found, took = compress(found, passed), compress(took, passed)
        return found

    def _matches_about(self, one: Subject, now_ms: float) -> bool:
        return all(test(one, now_ms) for test in self.alike)

    def narrows(self, wider: Filter) -> bool:
        """Return whether every match of this filter surely matches `wider` at the same time."""
        return self.conditions >= wider.conditions and all(
            any(word in longer for longer in self.words) for word in wider.words
        )


def _is_alike(node: Node) -> bool:
    """Return whether it depends only on fields that tasks of one `about` share."""
    if isinstance(node, Text):
        return False
    return all(FIELDS[key].alike for key in _keys(node)) and not any(_texts(node))


def _is_in_haystack(node: Node) -> bool:
    return isinstance(node, Term) and FIELDS[node.key].in_haystack


def _hint(node: Node) -> str:
    """Text that every match contains: the whole value, or its longest piece."""
    if not isinstance(node, Term):
        return ""
    value = node.value.casefold()
    return max(value.split("*"), key=len) if has_glob(node.value, node.quoted) else value


def _texts(node: Node) -> Iterator[Text]:
    if isinstance(node, Text):
        yield node
    elif isinstance(node, Not):
        yield from _texts(node.part)
    elif isinstance(node, (And, Or)):
        for part in node.parts:
            yield from _texts(part)


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
        return test_of(node)
    if isinstance(node, Not):
        inner = _test(node.part)
        return lambda one, now_ms: not inner(one, now_ms)
    # Pair by pair: a chain of `and` costs half of all() over a generator.
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
