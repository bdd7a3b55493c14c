"""Tests for the value of a field: a text pattern, a number, a duration."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from engine.query.errors import BadComparison, UnknownValue
from engine.query.syntax import Term

Pattern = Callable[[str], bool]
Compared = Callable[[float], bool]

_UNITS_MS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_PIECE = r"(\d+(?:\.\d+)?)(ms|min|[smhdw])"
_SPAN = re.compile(f"(?:{_PIECE})+")
_NUMBER = re.compile(r"\d{1,15}|\d{1,3}(?:,\d{3}){1,4}")
# The limit comes first: `given < limit` is `limit > given`.
_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.gt,
    "<=": operator.ge,
    ">": operator.lt,
    ">=": operator.le,
    "=": operator.eq,
    "": operator.eq,
}


def glob(value: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern in which `*` matches any text; across lines only with `re.DOTALL`."""
    return re.compile(".*".join(map(re.escape, value.casefold().split("*"))), flags)


def has_glob(value: str, quoted: bool) -> bool:
    return "*" in value and not quoted


def equals(term: Term) -> Pattern:
    """Match the whole text."""
    wanted = term.value.casefold()
    if has_glob(term.value, term.quoted):
        inner = wanted.strip("*")
        # The most frequent form, with a much faster test.
        if wanted == f"*{inner}*" and "*" not in inner:
            return lambda text: inner in text
        whole = glob(wanted, re.DOTALL).fullmatch
        return lambda text: whole(text) is not None
    return lambda text: text == wanted


def starts_with(term: Term) -> Pattern:
    """Match the whole text, or its beginning."""
    if has_glob(term.value, term.quoted):
        return equals(term)
    wanted = term.value.casefold()
    return lambda text: text.startswith(wanted)


def contains(term: Term) -> Pattern:
    """Match a part of the text; with `*` the whole of it."""
    if has_glob(term.value, term.quoted):
        return equals(term)
    wanted = term.value.casefold()
    return lambda text: wanted in text


def one_of(term: Term, known: Iterable[str], also: str = "") -> str:
    """Return the value, which must be one of `known`; `also` names further permitted values.

    Raises:
        UnknownValue: it is none of them.
    """
    names = list(known)
    wanted = term.value.casefold()
    if wanted in names and not term.comparison:
        return wanted
    near = difflib.get_close_matches(wanted, names, 1)
    hint = f"Try {term.key}:{near[0]}." if near else f"Known: {', '.join(names)}{also}."
    given = term.comparison + term.value
    best = near[0] if near else ""
    raise UnknownValue(term.at, given=given, field=term.key, hint=hint, near=best)


def number(term: Term, example: str) -> Compared:
    """Parse a whole number with an optional comparison, `>100`; thousands may have commas."""
    if term.quoted or _NUMBER.fullmatch(term.value) is None:
        _refuse(term, example)
    return _compared(term.comparison, float(term.value.replace(",", "")))


def span(term: Term, example: str) -> Compared:
    """Parse a duration with a comparison, in ms: `<1h`, `>=90s`, `>1h30m`."""
    if term.quoted or not term.comparison or _SPAN.fullmatch(term.value.casefold()) is None:
        _refuse(term, example)
    pieces = re.findall(_PIECE, term.value.casefold())
    return _compared(term.comparison, sum(float(each) * _UNITS_MS[unit] for each, unit in pieces))


def _compared(comparison: str, limit: float) -> Compared:
    return partial(_OPERATORS[comparison], limit)  # no Python call for each of 100,000


def _refuse(term: Term, example: str) -> None:
    given = term.comparison + term.value
    raise BadComparison(term.at, given=given, field=term.key, example=f"{term.key}:{example}")
