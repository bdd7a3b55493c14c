"""What can be wrong with a query: each mistake says where it is and what would be right."""

from __future__ import annotations

from engine.model.errors import EngineError


class QueryError(EngineError):
    """A query cannot be understood; nothing was filtered, and nothing was done.

    `position` counts characters from 0: where the mistake begins. `also` are the others that
    the same query has.
    """

    code = "query_error"
    title = "The filter has a mistake"

    def __init__(self, position: int, **fields: object) -> None:
        self.position = position
        self.also: tuple[QueryError, ...] = ()
        super().__init__(position=position, **fields)

    @property
    def all(self) -> tuple[QueryError, ...]:
        """This one and the others, in the order in which they stand."""
        return tuple(sorted((self, *self.also), key=lambda one: one.position))


class UnknownField(QueryError):
    """A word before a colon is no field that tasks have."""

    code = "unknown_field"
    sentence = "Unknown field ‘{given}’. {hint}"
    advice_text = "Put the word in quotes to look for it as text."


class UnknownValue(QueryError):
    """A field with a fixed set of values was given another one."""

    code = "unknown_value"
    sentence = "‘{given}’ is no value of {field}:. {hint}"


class BadComparison(QueryError):
    """A number, a length of time or a comparison has another form than its field needs."""

    code = "bad_comparison"
    sentence = "‘{given}’ cannot be compared in {field}:. Write it like {example}."


class MissingPart(QueryError):
    """Something must follow and does not: a value, or what OR, NOT or a bracket stands for."""

    code = "missing_part"
    sentence = "{after} needs something after it."


class UnclosedMark(QueryError):
    """A quote or a bracket has no other half."""

    code = "unclosed_mark"
    sentence = "The {mark} at position {at} has no other half."


class QueryTooLong(QueryError):
    """A query is longer, or nested deeper, than anybody types."""

    code = "query_too_long"
    sentence = "The filter is too long or nested too deep ({limit})."
