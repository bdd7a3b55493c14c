"""Errors of a query: each one has the position of the mistake and a suggestion."""

from __future__ import annotations

from engine.model.errors import EngineError


class QueryError(EngineError):
    """A query is invalid; nothing was filtered, and nothing was done.

    `position` counts characters from 0: the start of the mistake. `also` has the other mistakes of
    the same query.
    """

    code = "query_error"
    title = "The filter has a mistake"

    def __init__(self, position: int, **fields: object) -> None:
        self.position = position
        self.also: tuple[QueryError, ...] = ()
        super().__init__(position=position, **fields)

    @property
    def all(self) -> tuple[QueryError, ...]:
        """This error and the others, in the order of their positions."""
        return tuple(sorted((self, *self.also), key=lambda one: one.position))


class UnknownField(QueryError):
    """A word before a colon is no known field."""

    code = "unknown_field"
    sentence = "Unknown field ‘{given}’. {hint}"
    advice_text = "Put the word in quotes to look for it as text."


class UnknownValue(QueryError):
    """A field with a fixed set of values got another one."""

    code = "unknown_value"
    sentence = "‘{given}’ is no value of {field}:. {hint}"


class BadComparison(QueryError):
    """A number, a duration or a comparison has the wrong form for its field."""

    code = "bad_comparison"
    sentence = "‘{given}’ cannot be compared in {field}:. Write it like {example}."


class MissingPart(QueryError):
    """A required part is missing: a value, or the operand of OR, NOT or a bracket."""

    code = "missing_part"
    sentence = "{after} needs something after it."


class UnclosedMark(QueryError):
    """A quote or a bracket is not closed."""

    code = "unclosed_mark"
    sentence = "The {mark} at position {at} has no other half."


class QueryTooLong(QueryError):
    """A query exceeds the limit of length or nesting."""

    code = "query_too_long"
    sentence = "The filter is too long or nested too deep ({limit})."
