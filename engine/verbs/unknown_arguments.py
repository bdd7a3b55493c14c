"""Mistakes about arguments that do not exist, with the ones that were probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.model.errors import Problem

Schema = Mapping[str, Any]
MOST_NAME = 200  # characters of a name that a program made up
MOST_MEANT = 20  # of one request: finding what each of 100,000 meant would hold up all others


def unknown_argument(
    name: object, owner: str, offered: Mapping[str, Schema], *, before: int
) -> Problem:
    """Report an argument that `owner` does not have; `offered` has the schemas of its own.

    Args:
        before: the number of mistakes that are reported before; after many, what is meant is left
            out.
    """
    given = str(name)[:MOST_NAME]
    message = f"is no argument of {owner}"
    if before >= MOST_MEANT:
        return Problem(given, "unknown_argument", message)
    if meant := _meant(given, offered):
        message += f"; did you mean {meant}?"
    elif offered:
        message += f"; there are {', '.join(offered)}"
    return Problem(given, "unknown_argument", message)


def missing_arguments(required: Iterable[str], given: Iterable[str]) -> list[Problem]:
    """Report the required arguments that are not among the given ones."""
    known = set(given)
    return [Problem(name, "missing", "is needed") for name in required if name not in known]


def _meant(name: str, offered: Mapping[str, Schema]) -> str:
    """Return the place of this name inside another argument, else the most similar name."""
    for outer, schema in offered.items():
        if name in _members(schema):
            return f"{outer}.{name}"
    near = difflib.get_close_matches(name.lower(), offered, n=1)
    return near[0] if near else ""


def _members(schema: Schema) -> Iterator[str]:
    yield from schema.get("properties", ())
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _members(part)
