"""Search and order of tasks: quick words, the filter language, and the multi-key order.

A user interface uses `Filter.of(text)` for user input, `subject(view)` for each task, and
`in_order` for the rows; the other modules implement these. Independent of Qt.
"""

from __future__ import annotations

from engine.model.errors import QueryError
from engine.query.fields import FIELDS, span_ms
from engine.query.fields import literal as term
from engine.query.match import (
    Completion,
    Filter,
    Match,
    Offer,
    Searchable,
    as_words,
    completion,
    corrected,
    keep,
    match,
    terms,
    unknown_values,
)
from engine.query.order import (
    Order,
    SortKey,
    are_alike,
    by_values,
    in_order,
    names_in_order,
    place,
)
from engine.query.parse import (
    BadComparison,
    MissingPart,
    QueryTooLong,
    UnclosedMark,
    UnknownField,
    UnknownValue,
)
from engine.query.subject import ADDRESSES, Subject, haystack, host_of, subject

__all__ = [
    "ADDRESSES",
    "FIELDS",
    "BadComparison",
    "Completion",
    "Filter",
    "Match",
    "MissingPart",
    "Offer",
    "Order",
    "QueryError",
    "QueryTooLong",
    "Searchable",
    "SortKey",
    "Subject",
    "UnclosedMark",
    "UnknownField",
    "UnknownValue",
    "are_alike",
    "as_words",
    "by_values",
    "completion",
    "corrected",
    "haystack",
    "host_of",
    "in_order",
    "keep",
    "match",
    "names_in_order",
    "place",
    "span_ms",
    "subject",
    "term",
    "terms",
    "unknown_values",
]
