"""What a verb was given, held against what it asks for: every mistake, before anything is done.

A command line knows its types; over MCP and HTTP a value may be anything that JSON can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from engine.model.errors import InvalidArguments, Problem
from engine.service.engine import Engine
from engine.verbs.model import Param, Shape, Verb

MOST_CHARS: Final = 1024 * 1024  # of one text: the cap of everything that is parsed
MOST_NUMBER: Final = 2**53 - 1  # what every JSON reader keeps whole

Found = tuple[str, str] | None  # the code of a mistake, and what to do about it


def checked(verb: Verb) -> Verb:
    """The verb, whose call refuses what it cannot work with and fills in what was left out."""

    async def call(engine: Engine, given: Mapping[str, Any]) -> Any:
        return await verb.call(engine, read(verb, given))

    return replace(verb, call=call)


def read(verb: Verb, given: object) -> dict[str, Any]:
    """Every parameter of the verb by name; null and nothing are the default.

    Raises:
        InvalidArguments: with every mistake.
    """
    if not isinstance(given, Mapping):
        raise InvalidArguments((Problem("", "wrong_type", "the arguments must be an object"),))
    problems = tuple(_problems(verb, given))
    if problems:
        raise InvalidArguments(problems)
    return {param.name: _value(param, given.get(param.name)) for param in verb.params}


def _problems(verb: Verb, given: Mapping[str, Any]) -> Iterator[Problem]:
    for param in verb.params:
        value = given.get(param.name)
        if value is not None:
            found = CHECKS[param.shape](value)
            if found:
                yield Problem(param.name, *found)
        elif param.required:
            yield Problem(param.name, "missing", "is needed")
    known = {param.name for param in verb.params}
    for name in given:
        if name not in known:
            yield Problem(str(name), "unknown_argument", f"is no argument of '{verb.name}'")


def _value(param: Param, value: Any) -> Any:
    if param.shape in ("many", "items"):
        return tuple(value or ())
    if param.shape == "flag":
        return bool(param.default if value is None else value)
    return param.default if value is None else value


def _text(value: object) -> Found:
    if not isinstance(value, str):
        return "wrong_type", "must be a text"
    if len(value) > MOST_CHARS:
        return "too_large", f"must be at most {MOST_CHARS:,} characters"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "not_text", "holds half a character, which no file can hold"
    return None


def _path(value: object) -> Found:
    """A file's name; on POSIX it may hold bytes that are no text, which Python writes so."""
    if not isinstance(value, str | Path):
        return "wrong_type", "must be the name of a file"
    return ("not_a_path", "holds a NUL, which no file's name can") if "\0" in str(value) else None


def _number(value: object) -> Found:
    if isinstance(value, bool) or not isinstance(value, int):
        return "wrong_type", "must be a whole number"
    if not 0 <= value <= MOST_NUMBER:
        return "out_of_range", f"must be from 0 to {MOST_NUMBER:,}"
    return None


def _flag(value: object) -> Found:
    return None if isinstance(value, bool) else ("wrong_type", "must be true or false")


def _json(value: object) -> Found:
    return None if isinstance(value, Mapping) else _text(value)


def _many(value: object) -> Found:
    if not isinstance(value, list | tuple):
        return "wrong_type", "must be a list of texts"
    return next(filter(None, map(_text, value)), None)


def _items(value: object) -> Found:
    if not isinstance(value, list | tuple):
        return "wrong_type", "must be a list of items"
    return next(filter(None, map(_json, value)), None)


CHECKS: Final[Mapping[Shape, Callable[[object], Found]]] = {
    "text": _text,
    "path": _path,
    "number": _number,
    "flag": _flag,
    "json": _json,
    "many": _many,
    "items": _items,
}
