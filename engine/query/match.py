"""Compiled query: a test for which tasks match now; its corrections and completions.

Conditions that must all hold are tested one after another on the remaining tasks, plain words
first: 100,000 tasks take milliseconds. All mistakes are collected, for correction at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress
from operator import attrgetter
from typing import Final, Protocol, TypeVar

from engine.model.errors import QueryError
from engine.model.records import TaskView
from engine.query.fields import (
    FIELDS,
    OFFERED,
    SINCE,
    TOOK_KEYS,
    Compared,
    Test,
    glob,
    has_glob,
    literal,
    one_of,
    span,
)
from engine.query.parse import (
    And,
    Node,
    Not,
    Or,
    QueryTooLong,
    Term,
    Text,
    UnclosedMark,
    UnknownField,
    UnknownValue,
    in_quotes,
    key_of,
    loose_terms,
    parse,
    written,
)
from engine.query.subject import CUT, Seen, Subject, subject, took_all

_WORDS = re.compile(r'"([^"]*)"?|([^\s"]+)')


class Searchable(Protocol):
    """Object searched by quick words: text that was folded once by `haystack`."""

    @property
    def haystack(self) -> str: ...


Match = Callable[[Searchable], bool]
Held = TypeVar("Held", bound=Searchable)
F = TypeVar("F")
A = TypeVar("A")
B = TypeVar("B")


def terms(text: str) -> tuple[str, ...]:
    """Split a quick filter into folded words; `"two words"` are one. Never raises."""
    # A quote that is still open while typing extends to the end.
    found = (phrase or word for phrase, word in _WORDS.findall(text))
    return tuple(word.casefold() for word in found if word.strip())


def keep(subjects: Sequence[Held], text: str) -> list[Held]:
    """Return the subjects that contain every word of `text`, in their order."""
    found = list(subjects)
    for word in terms(text):
        found = [one for one in found if word in one.haystack]
    return found


def match(text: str) -> Match | None:
    """Build the test for one subject; None when everything matches."""
    wanted = terms(text)
    if not wanted:
        return None
    return lambda subject: all(word in subject.haystack for word in wanted)


# Corrections of a mistake in a query: the probable meaning, or the literal text.

_KEY = re.compile(r"[A-Za-z_0-9]+(?=:)")
_VALUE = re.compile(r"[^\s()\":]*:[^\s()\"]*")


def corrected(text: str, error: QueryError) -> str:
    """Correct `text` to its probable meaning; empty when there is none."""
    at, near = error.position, str(error.fields.get("near") or "")
    if isinstance(error, UnclosedMark):
        return _closed(text, at)
    if not near:
        return ""
    if isinstance(error, UnknownField):
        return text[:at] + _KEY.sub(near, text[at:], count=1)
    if isinstance(error, UnknownValue):
        right = f"{error.fields['field']}:{near}"
        return text[:at] + _VALUE.sub(right, text[at:], count=1)
    return ""


def as_words(text: str) -> str:
    """Quote `text`, so that it is searched literally."""
    return in_quotes(text.strip())


def _closed(text: str, at: int) -> str:
    if text[at : at + 1] == ")":  # one bracket too many
        return text[:at] + text[at + 1 :]
    return text + (")" if text[at : at + 1] == "(" else '"')


def test_of(condition: Term) -> Test:
    """Build the test of one condition.

    Raises:
        QueryError: the field is unknown, or does not have this value.
    """
    return field_of(condition, FIELDS).make(condition)


def field_of(condition: Term, fields: Mapping[str, F]) -> F:
    """Return the field of a condition.

    Raises:
        UnknownField: it is none of `fields`.
    """
    field = fields.get(condition.key)
    if field is None:
        near = _nearest(condition.key, fields)
        hint = f"Try {near}:" if near else f"Known: {', '.join(fields)}."
        raise UnknownField(condition.at, given=condition.key, hint=hint, near=near)
    return field


def others(text: str, first: QueryError) -> tuple[QueryError, ...]:
    """Collect the mistakes in `text` other than `first`, in the order of their positions."""
    if isinstance(first, QueryTooLong):
        return ()
    known = {(first.code, first.position)}
    return tuple(one for one in _of_terms(text) if (one.code, one.position) not in known)


def unknown_values(text: str, values: Mapping[str, Iterable[str]]) -> tuple[QueryError, ...]:
    """Collect values in `text` that no task has: `values` has all existing ones by field.

    The query itself stays valid. A value with `*` may match nothing without being a mistake.
    """
    found: list[QueryError] = []
    for one in loose_terms(text):
        if isinstance(one, Term) and one.key in values and not has_glob(one.value, one.quoted):
            try:
                one_of(one, values[one.key])
            except QueryError as error:
                found.append(error)
    return tuple(found)


def _of_terms(text: str) -> Iterator[QueryError]:
    for one in loose_terms(text):
        if isinstance(one, QueryError):
            yield one
            continue
        try:
            test_of(one)
        except QueryError as error:
            yield error


def _nearest(key: str, fields: Iterable[str]) -> str:
    """Find the field with the most similar name, if any."""
    begun = [name for name in fields if name.startswith(key)]
    return next(iter(begun or difflib.get_close_matches(key, fields, 1)), "")


class Listed(Searchable, Seen, Protocol):
    """Row of a list; `about` is equal for all rows with equal values of the `alike` fields.

    It may change only together with these.
    """

    @property
    def about(self) -> Hashable: ...


S = TypeVar("S", bound=Listed)


@dataclass(frozen=True, slots=True)
class Filter:
    """Parsed query. `text` is its normal form; an empty one matches all tasks.

    `parts` are the conditions that must all hold, each in normal form; `conditions` are those that
    are no mere words. With `searches` it reads the `haystack` of tasks. With `ages` the result may
    change with time alone, with `counts` with progress alone.
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
    searches: bool = False
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
            searches=any(map(_is_in_haystack, rest)) or any(_texts(node)),
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
            kept = [one for one in kept if word in (one.made_haystack or one.haystack)]
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
            kept = [
                one
                for one in kept
                if hint in (text := one.made_haystack or one.haystack) or len(text) > CUT
            ]
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


def combined(
    node: Node, leaf: Callable[[Text | Term], Callable[[A, B], bool]]
) -> Callable[[A, B], bool]:
    """Build the test of a tree from the tests of its words and conditions."""
    if isinstance(node, (Text, Term)):
        return leaf(node)
    if isinstance(node, Not):
        inner = combined(node.part, leaf)
        return lambda one, other: not inner(one, other)
    parts = [combined(part, leaf) for part in node.parts]
    if not parts:  # an empty query
        return lambda one, other: True
    # Pair by pair: a chain of `and` costs half of all() over a generator.
    return reduce(_both if isinstance(node, And) else _either, parts)


def _both(first: Callable[[A, B], bool], second: Callable[[A, B], bool]) -> Callable[[A, B], bool]:
    return lambda one, other: first(one, other) and second(one, other)


def _either(
    first: Callable[[A, B], bool], second: Callable[[A, B], bool]
) -> Callable[[A, B], bool]:
    return lambda one, other: first(one, other) or second(one, other)


def _test(node: Node) -> Test:
    return combined(node, lambda leaf: _text(leaf) if isinstance(leaf, Text) else test_of(leaf))


def _text(node: Text) -> Test:
    if not _is_word(node):
        found = glob(node.value).search  # within one of the texts: `.` stops at a line's end
        return lambda one, _: found(one.haystack) is not None
    word = node.value.casefold()
    return lambda one, _: word in one.haystack


MOST_OFFERS: Final = 12
ROOT: Final = "root"
_BEFORE = re.compile(r"[^\s()\"]*$")
_AFTER = re.compile(r"[^\s()\"]*")


@dataclass(frozen=True, slots=True)
class Offer:
    """Completion `text` for the current word; `help` describes it, or is empty."""

    text: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """Offers that can replace the characters from `start` to `end`."""

    start: int
    end: int
    offers: tuple[Offer, ...] = ()

    def put(self, text: str, offer: Offer) -> tuple[str, int]:
        """Insert this offer into `text`, and return the new cursor position.

        A field expects its value; behind a value the next condition may begin.
        """
        taken = offer.text if offer.text.endswith(":") else offer.text + " "
        rest = text[self.end :]
        if taken.endswith(" ") and rest.startswith(" "):
            rest = rest[1:]
        return text[: self.start] + taken + rest, self.start + len(taken)


def completion(
    text: str, cursor: int, known: Mapping[str, Iterable[str]], *, offer_all: bool = False
) -> Completion:
    """Complete the query at `cursor`.

    `known` gives the existing values of fields without a fixed set; `offer_all` offers every field
    where no word was begun. With a single ledger `root` is of no use: it is offered where it is
    `known`.
    """
    if _in_quotes(text[:cursor]):
        return Completion(cursor, cursor)
    begun = _BEFORE.search(text, 0, cursor)
    after = _AFTER.match(text, cursor)
    assert begun is not None  # both patterns match the empty string
    assert after is not None
    word = begun[0].lstrip("-")
    start = cursor - len(word)
    if not word and not offer_all:
        return Completion(start, cursor)
    key = key_of(word)
    if key is None:
        several = bool(known.get(ROOT))
        offers = [one for one in _fields(word) if several or one.text != f"{ROOT}:"]
    else:
        offers = list(_values(key.casefold(), word[len(key) + 1 :], known))
    fresh = [offer for offer in offers if offer.text != word]
    return Completion(start, after.end(), tuple(fresh[:MOST_OFFERS]))


def _in_quotes(text: str) -> bool:
    return len(re.findall(r'(?<!\\)"', text)) % 2 == 1


def _fields(word: str) -> Iterator[Offer]:
    folded = word.casefold()
    for name, field in FIELDS.items():
        if name.startswith(folded):
            yield Offer(f"{name}:", field.help)
    if len(folded) > 1:  # two letters of a state are enough to offer it
        yield from (Offer(f"status:{state}") for state in OFFERED if state.startswith(folded))


def _values(key: str, begun: str, known: Mapping[str, Iterable[str]]) -> Iterator[Offer]:
    field = FIELDS.get(key)
    if field is None:
        return
    values = list(dict.fromkeys((*field.values, *sorted(known.get(key, ())))))
    folded = begun.casefold()
    near = [value for value in values if value.casefold().startswith(folded)]
    inside = [value for value in values if folded in value.casefold() and value not in near]
    for value in (*near, *inside):
        yield Offer(f"{key}:{value}" if value in field.values else literal(key, value))
