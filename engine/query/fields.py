"""Table of the fields of the filter language, with the tests for their values.

A test (of a text pattern, a number, a duration) gets a `Subject` and the time in ms, and is built
once for each query.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

from engine.model.kind_traits import (
    TRAITS,
    kind_of_word,
    kinds_by_word,
    link_follower,
    offered_kinds,
)
from engine.model.ledger_ids import HERE
from engine.model.lifecycle import TASK_RUN
from engine.model.records import ROUTES
from engine.model.status import Facet
from engine.query.attention_reasons import budget_at
from engine.query.parse import BadComparison, Term, UnknownValue, term
from engine.query.subject import Subject

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
    raise unknown_value(term, names, names, also)


def unknown_value(
    term: Term, known: Iterable[str], named: Iterable[str], also: str = ""
) -> UnknownValue:
    """Build the error for a value that is none of `known`, of which the hint has the `named`."""
    near = difflib.get_close_matches(term.value.casefold(), list(known), 1)
    hint = f"Try {term.key}:{near[0]}." if near else f"Known: {', '.join(named)}{also}."
    given = term.comparison + term.value
    best = near[0] if near else ""
    return UnknownValue(term.at, given=given, field=term.key, hint=hint, near=best)


def literal(key: str, value: str, *, quoted: bool = False) -> str:
    """Build a query for a field with this stored value.

    The kind of another program is quoted, since a bare word is one of the known kinds.
    """
    return term(key, value, quoted=quoted or (key == "kind" and value.casefold() not in TRAITS))


def number(term: Term, example: str) -> Compared:
    """Parse a whole number with an optional comparison, `>100`; thousands may have commas."""
    if term.quoted or _NUMBER.fullmatch(term.value) is None:
        refuse(term, example)
    return compare(term.comparison, float(term.value.replace(",", "")))


def span(term: Term, example: str) -> Compared:
    """Parse a duration with a comparison, in ms: `<1h`, `>=90s`, `>1h30m`."""
    length_ms = span_ms(term.value)
    if term.quoted or not term.comparison or length_ms is None:
        refuse(term, example)
    return compare(term.comparison, length_ms)


def span_ms(text: str) -> float | None:
    """Parse `1h30m` and the like to ms; None for other texts."""
    folded = text.casefold()
    if _SPAN.fullmatch(folded) is None:
        return None
    return sum(float(each) * _UNITS_MS[unit] for each, unit in re.findall(_PIECE, folded))


def compare(comparison: str, limit: float) -> Compared:
    """Return the test for numbers that stand in this comparison to `limit`."""
    return partial(_OPERATORS[comparison], limit)  # no Python call for each of 100,000


def refuse(term: Term, example: str) -> NoReturn:
    """Raise BadComparison, with `example` as a right value."""
    given = term.comparison + term.value
    raise BadComparison(term.at, given=given, field=term.key, example=f"{term.key}:{example}")


Test = Callable[[Subject, float], bool]

BUDGETS: Final = {"ok": "ok", "near": "warning", "warning": "warning", "exceeded": "exceeded"}
_TIMELESS: Final = tuple(facet.value for facet in Facet if facet is not Facet.ATTENTION)
PHASES: Final = ("explore", "act", "verify", "recover", "done")
STATES: Final = ("attention", "live", "ended", *_TIMELESS, *map(str.lower, TASK_RUN.steps))
OFFERED: Final = tuple(state for state in dict.fromkeys(STATES) if state != Facet.ALL)
SPANS: Final = ("<10m", "<1h", "<1d", "<7d", ">1h", ">1d", ">7d")
TOOK: Final = (">1m", ">5m", ">1h", "<10s")
YES: Final = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class Field:
    """Field of the filter language: builder of its test, and its texts for help and completion.

    `values` are completion offers. The result of an `ages` field changes with time, that of a
    `counts` field with progress. An `alike` field has one result for all tasks of one state, kind,
    host, client and route; the text of a `in_haystack` field is in the haystack, too.
    """

    make: Callable[[Term], Test]
    example: str
    help: str
    values: tuple[str, ...] = ()
    ages: bool = False
    counts: bool = False
    alike: bool = False
    in_haystack: bool = False


def without_comparison(term: Term, example: str) -> Term:
    """Refuse a comparison: `<` and the like have no meaning for this field."""
    if term.comparison not in ("", "="):
        given = term.comparison + term.value
        raise BadComparison(term.at, given=given, field=term.key, example=f"{term.key}:{example}")
    return term


def _status(term: Term) -> Test:
    if term.quoted or has_glob(term.value, term.quoted):  # the raw status on disk
        matches = equals(without_comparison(term, "failed"))
        return lambda one, _: matches(one.status) or any(map(matches, one.states))
    wanted = one_of(term, dict.fromkeys(STATES), ", or any other in quotes")
    if wanted == Facet.ATTENTION:
        return needs_attention
    return lambda one, _: wanted in one.states


def needs_attention(one: Subject, now_ms: float) -> bool:
    """Return whether this task needs a person now."""
    return one.needs_attention(now_ms)


def _kind(term: Term) -> Test:
    matches = equals(without_comparison(term, link_follower()))
    if term.quoted or has_glob(term.value, term.quoted):  # the raw kind on disk
        return lambda one, _: matches(one.kind)
    kind = kind_of_word(term.value)
    if kind is None:
        raise unknown_value(term, kinds_by_word(), offered_kinds())
    if kind not in TRAITS:
        return lambda one, _: matches(one.kind)  # of another program, in any case
    return lambda one, _: one.kind == kind


def _host(term: Term) -> Test:
    matches = equals(without_comparison(term, "example.com"))
    if not has_glob(term.value, term.quoted):
        wanted = term.value.casefold()
        return lambda one, _: wanted in one.hosts
    return lambda one, _: any(map(matches, one.hosts))


def _url(term: Term) -> Test:
    matches = contains(without_comparison(term, "/docs/"))
    return lambda one, _: any(map(matches, one.addresses))


def _id(term: Term) -> Test:
    matches = starts_with(without_comparison(term, "3fa1c0"))
    return lambda one, _: matches(one.task_id) or bool(one.other_id and matches(one.other_id))


def _name(term: Term) -> Test:
    matches = contains(without_comparison(term, "nightly"))
    return lambda one, _: matches(one.name)


def _objective(term: Term) -> Test:
    matches = contains(without_comparison(term, "prices"))
    return lambda one, _: matches(one.objective)


def _phase(term: Term) -> Test:
    matches = equals(without_comparison(term, "verify"))
    return lambda one, _: matches(one.phase)


def _parent(term: Term) -> Test:
    matches = starts_with(without_comparison(term, "3fa1c0"))
    return lambda one, _: bool(one.parent) and matches(one.parent)


def _schedule(term: Term) -> Test:
    matches = starts_with(without_comparison(term, "3fa1c0"))
    return lambda one, _: bool(one.schedule) and matches(one.schedule)


def _changes(term: Term) -> Test:
    compared = number(term, ">0")
    return lambda one, _: compared(one.changes)


def _changed(term: Term) -> Test:
    wanted = YES[one_of(term, YES)]
    return lambda one, _: one.changes > 0 if wanted else one.changes == 0


def _error(term: Term) -> Test:
    matches, codes = contains(without_comparison(term, "timeout")), equals(term)
    return lambda one, _: (
        bool(one.error and matches(one.error)) or bool(one.code and codes(one.code))
    )


def _code(term: Term) -> Test:
    matches = equals(without_comparison(term, "orphaned"))
    return lambda one, _: bool(one.code) and matches(one.code)


def _budget(term: Term) -> Test:
    wanted = BUDGETS[one_of(term, BUDGETS)]
    return lambda one, now_ms: budget_at(one.record, now_ms) == wanted


def _age(term: Term) -> Test:
    compared = span(term, "<1h")
    return lambda one, now_ms: compared(now_ms - one.created_at)


def _updated(term: Term) -> Test:
    compared = span(term, "<10m")
    return lambda one, now_ms: compared(now_ms - one.updated_at)


def _took(term: Term) -> Test:
    compared = span(term, ">5m")
    return lambda one, now_ms: compared(one.took_ms(now_ms))


def _done(term: Term) -> Test:
    compared = number(term, ">100")
    return lambda one, _: compared(one.done)


def _failed(term: Term) -> Test:
    compared = number(term, ">0")
    return lambda one, _: compared(one.failed)


def _total(term: Term) -> Test:
    compared = number(term, ">=1000")
    return lambda one, _: compared(one.total)


def _forced(term: Term) -> Test:
    wanted = YES[one_of(term, YES)]
    return lambda one, _: one.forced is wanted


def _client(term: Term) -> Test:
    matches = equals(without_comparison(term, "claude-code"))
    return lambda one, _: bool(one.client) and matches(one.client)


def _route(term: Term) -> Test:
    wanted = one_of(term, ROUTES)
    return lambda one, _: one.route == wanted


def _root(term: Term) -> Test:
    matches = equals(without_comparison(term, HERE))
    return lambda one, _: matches(one.root)


def _owner(term: Term) -> Test:
    return OWNERS[one_of(term, OWNERS)]


def _has(term: Term) -> Test:
    return PARTS[one_of(term, PARTS)]


def _has_result(one: Subject, _: float) -> bool:
    """Return whether it has a result, also a partial one: an ended task with a finished unit."""
    return "completed" in one.states or ("ended" in one.states and one.done > 0)


OWNERS: Final[Mapping[str, Test]] = {
    "ours": lambda one, _: one.view.ours,
    "foreign": lambda one, _: one.view.foreign,
    "gone": lambda one, _: one.view.orphaned,
}
PARTS: Final[Mapping[str, Test]] = {
    "result": _has_result,
    "error": lambda one, _: bool(one.error or one.code),
    "failures": lambda one, _: one.failed > 0,
    "name": lambda one, _: bool(one.name),
    "objective": lambda one, _: bool(one.objective),
    "budget": lambda one, _: bool(one.budget),
    "parent": lambda one, _: bool(one.parent),
    "contract": lambda one, _: one.contract,
    "client": lambda one, _: bool(one.client),
    "schedule": lambda one, _: bool(one.schedule),
}
SINCE: Final = {"age": "created_at", "updated": "updated_at"}  # fields measured from a time stamp
TOOK_KEYS: Final = frozenset({"took", "duration"})
FIELDS: Final[Mapping[str, Field]] = {
    "status": Field(_status, "failed", "a state, attention, live or ended", OFFERED, alike=True),
    "kind": Field(_kind, "evidence", "the kind of work", offered_kinds(), alike=True),
    "host": Field(
        _host, "*.example.com", "the host of its address, with or without the port", alike=True
    ),
    "url": Field(_url, "/docs/", "a part of its address", in_haystack=True),
    "id": Field(_id, "3fa1c0", "the beginning of its id", in_haystack=True),
    "name": Field(_name, "nightly", "a part of its name", in_haystack=True),
    "objective": Field(_objective, "prices", "a part of its objective", in_haystack=True),
    "phase": Field(_phase, "verify", "the phase of an envelope", PHASES),
    "error": Field(_error, "timeout", "a part of its error, or the error's code", in_haystack=True),
    "code": Field(_code, "orphaned", "the error's code", ("orphaned",)),
    "budget": Field(
        _budget, "exceeded", "ok, near or exceeded", ("ok", "near", "exceeded"), ages=True
    ),
    "age": Field(_age, "<1h", "how long ago it was made: ms, s, m, h, d, w", SPANS, ages=True),
    "updated": Field(
        _updated, "<10m", "how long ago something happened", SPANS, ages=True, counts=True
    ),
    "took": Field(_took, ">5m", "how long it ran, or runs", TOOK, ages=True),
    "duration": Field(_took, ">5m", "the same as took", TOOK, ages=True),
    "done": Field(_done, ">100", "units (pages, commands) that are done", counts=True),
    "pages": Field(_done, ">100", "the same as done", counts=True),
    "failed": Field(_failed, ">0", "units that went wrong", (">0",), counts=True),
    "total": Field(_total, ">=1000", "units that are known of", counts=True),
    "forced": Field(_forced, "yes", "was it completed by force: yes or no", ("yes", "no")),
    "owner": Field(_owner, "foreign", "ours, foreign or gone", tuple(OWNERS)),
    "client": Field(_client, "claude-code", "the program that requested it", alike=True),
    "route": Field(
        _route, "mcp", "how its request came: mcp, cli (command line) or http", ROUTES, alike=True
    ),
    "has": Field(_has, "result", ", ".join(PARTS), tuple(PARTS), counts=True),
    "schedule": Field(_schedule, "3fa1c0", "the schedule that started it"),
    "changes": Field(
        _changes, ">0", "pages that differ from the run before, of a scheduled task", (">0",)
    ),
    "changed": Field(
        _changed, "yes", "did its scheduled run find changes: yes or no", ("yes", "no")
    ),
    "parent": Field(_parent, "3fa1c0", "the task that it repeats"),
    "root": Field(_root, HERE, "the ledger that it is in, by its label; here is the own", (HERE,)),
}
