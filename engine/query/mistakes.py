"""Collection of all mistakes in a query, so that the user can correct them at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from engine.query.errors import QueryError, QueryTooLong, UnclosedMark, UnknownField, UnknownValue
from engine.query.fields import FIELDS, Test, has_glob, one_of
from engine.query.parse import Term, in_quotes, loose_terms

_WORDS = re.compile(r'"([^"]*)"?|([^\s"]+)')


class Searchable(Protocol):
    """Object searched by quick words: text that was folded once by `haystack`."""

    @property
    def haystack(self) -> str: ...


Match = Callable[[Searchable], bool]
S = TypeVar("S", bound=Searchable)


def terms(text: str) -> tuple[str, ...]:
    """Split a quick filter into folded words; `"two words"` are one. Never raises."""
    # A quote that is still open while typing extends to the end.
    found = (phrase or word for phrase, word in _WORDS.findall(text))
    return tuple(word.casefold() for word in found if word.strip())


def keep(subjects: Sequence[S], text: str) -> list[S]:
    """Return the subjects that contain every word of `text`, in their order."""
    found = list(subjects)
    for term in terms(text):
        found = [one for one in found if term in one.haystack]
    return found


def match(text: str) -> Match | None:
    """Build the test for one subject; None when everything matches."""
    wanted = terms(text)
    if not wanted:
        return None
    return lambda subject: all(term in subject.haystack for term in wanted)


# Corrections of a mistake in a query: the probable meaning, or the literal text.

_KEY = re.compile(r"[A-Za-z_]+(?=:)")
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


def test_of(term: Term) -> Test:
    """Build the test of one condition.

    Raises:
        QueryError: the field is unknown, or does not have this value.
    """
    field = FIELDS.get(term.key)
    if field is None:
        near = _nearest_field(term.key)
        hint = f"Try {near}:" if near else f"Known: {', '.join(FIELDS)}."
        raise UnknownField(term.at, given=term.key, hint=hint, near=near)
    return field.make(term)


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
    for term in loose_terms(text):
        if isinstance(term, Term) and term.key in values and not has_glob(term.value, term.quoted):
            try:
                one_of(term, values[term.key])
            except QueryError as error:
                found.append(error)
    return tuple(found)


def _of_terms(text: str) -> Iterator[QueryError]:
    for term in loose_terms(text):
        if isinstance(term, QueryError):
            yield term
            continue
        try:
            test_of(term)
        except QueryError as error:
            yield error


def _nearest_field(key: str) -> str:
    """Find the field with the most similar name, if any."""
    begun = [name for name in FIELDS if name.startswith(key)]
    return next(iter(begun or difflib.get_close_matches(key, FIELDS, 1)), "")
