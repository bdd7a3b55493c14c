"""Verb: its name, parameters and call, and the check of its values."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from engine.model.errors import InvalidArguments, Problem

if TYPE_CHECKING:
    from engine.model.records import TaskView
    from engine.service.engine import Engine

# `json`: an object or its text; `many`: texts, or one; `items`: texts or objects; `caller`: a
# `Caller`; `time`: ms since 1970, or a text that `moment_ms` reads.
Shape = Literal["text", "path", "number", "time", "flag", "json", "many", "items", "caller"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Caller of a verb: its route (mcp, cli, http) and its own name."""

    route: str | None = None
    client: str | None = None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """The first tasks of a list, and whether more follow."""

    views: Sequence[TaskView]
    more: bool


CALLER: Final = "caller"  # its parameter: the face fills it in, never the request


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a verb. `positional` ones have no option name on a command line."""

    name: str
    help: str
    shape: Shape = "text"
    positional: bool = False
    required: bool = False
    default: Any = None
    short: str = ""  # one-letter option
    bare: bool = False  # also accepted as a positional argument
    schema: Mapping[str, Any] = field(default_factory=dict, hash=False)  # JSON Schema, if narrower


BY_CALLER: Final = Param(CALLER, "", CALLER)


@dataclass(frozen=True, slots=True)
class Verb:
    """One operation of the engine; a name of two words belongs to a group."""

    name: str
    help: str
    params: tuple[Param, ...]
    call: Callable[[Engine, Mapping[str, Any]], Awaitable[Any]]
    accepts: bool = False
    faces: tuple[str, ...] = ("cli", "mcp", "http")

    @property
    def public(self) -> tuple[Param, ...]:
        """The parameters that a request may give."""
        return tuple(param for param in self.params if param.shape != CALLER)

    @property
    def needs_caller(self) -> bool:
        return any(param.shape == CALLER for param in self.params)


MOST_CHARS: Final = 1024 * 1024  # of one text: the limit of all parsed input
MOST_NUMBER: Final = 2**53 - 1  # exact in every JSON reader
TIMES: Final = "1d, 2h30m, 2026-03-01 or 2026-03-01T08:30"  # examples, the first two before now
SINCE_HELP: Final = "created since 1d (ago), 2026-03-01, or ms since 1970"

# JSON Schemas of the shapes.
TEXT: Final[Mapping[str, Any]] = {"type": "string"}
OF_SHAPE: Final[Mapping[Shape, Mapping[str, Any]]] = {
    "text": TEXT,
    "path": TEXT,
    "number": {"type": "integer", "minimum": 0},  # the check has a maximum as well
    "time": {"anyOf": [{"type": "integer"}, TEXT]},
    "flag": {"type": "boolean"},
    "json": {"type": "object"},
    "many": {"type": "array", "items": TEXT},
    "items": {
        "type": "array",
        "items": {
            "anyOf": [
                TEXT,
                {
                    "type": "object",
                    "properties": {"item": TEXT, "reason": TEXT},
                    "required": ["item"],
                },
            ]
        },
    },
}

Found = tuple[str, str] | None  # code of a mistake, and the advice


def checked(verb: Verb) -> Verb:
    """Wrap the verb's call: validate the arguments and fill in defaults."""

    async def call(engine: Engine, given: Mapping[str, Any]) -> Any:
        return await verb.call(engine, read(verb, given))

    return replace(verb, call=call)


def read(verb: Verb, given: object) -> dict[str, Any]:
    """Return every parameter by name; null and missing values become the default.

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
    if param.shape == "many" and isinstance(value, str):
        return (value,)
    if param.shape in ("many", "items"):
        return tuple(value or ())
    if param.shape == "flag":
        return bool(param.default if value is None else value)
    if param.shape == "time" and isinstance(value, str):
        return moment_ms(value)
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
    """Check a file name; on POSIX it may hold surrogate escapes for undecodable bytes."""
    if not isinstance(value, str | Path):
        return "wrong_type", "must be the name of a file"
    return ("not_a_path", "holds a NUL, which no file's name can") if "\0" in str(value) else None


def _number(value: object) -> Found:
    if isinstance(value, bool) or not isinstance(value, int):
        return "wrong_type", "must be a whole number"
    if not 0 <= value <= MOST_NUMBER:
        return "out_of_range", f"must be from 0 to {MOST_NUMBER:,}"
    return None


def moment_ms(text: str) -> int | None:
    """Return a time in ms since 1970; None if it is none.

    It is given as such a number, as a length of time before now (`2h30m`), or as ISO 8601.
    """
    if text.isascii() and text.isdigit():
        return int(text[:16])
    from engine.query import span_ms  # most verbs need no filter language

    if (ago_ms := span_ms(text)) is not None:
        return int(max(0.0, time.time() * 1000 - ago_ms))  # it may be infinite
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return None


def _time(value: object) -> Found:
    if not isinstance(value, str):
        return _number(value)
    if len(value) > MOST_CHARS or moment_ms(value) is None:
        return "not_a_time", f"must be a time, for example {TIMES}"
    return None


def _flag(value: object) -> Found:
    return None if isinstance(value, bool) else ("wrong_type", "must be true or false")


def _json(value: object) -> Found:
    return None if isinstance(value, Mapping) else _text(value)


def _many(value: object) -> Found:
    if isinstance(value, str):  # a model writes one text where one is enough
        return _text(value)
    if not isinstance(value, list | tuple):
        return "wrong_type", "must be a text or a list of texts"
    return next(filter(None, map(_text, value)), None)


def _items(value: object) -> Found:
    if not isinstance(value, list | tuple):
        return "wrong_type", "must be a list of items"
    return next(filter(None, map(_json, value)), None)


def _caller(value: object) -> Found:
    return None if isinstance(value, Caller) else ("not_allowed", "must not be given")


CHECKS: Final[Mapping[Shape, Callable[[object], Found]]] = {
    "text": _text,
    "path": _path,
    "number": _number,
    "time": _time,
    "flag": _flag,
    "json": _json,
    "many": _many,
    "items": _items,
    "caller": _caller,
}


def object_of(name: str, given: object) -> dict[str, Any]:
    """Return a JSON object given as text or object. Raises InvalidArguments."""
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        message = f"is not valid JSON; it must look like {_example(name)}"
        raise InvalidArguments((Problem(name, "not_json", message),)) from None
    if not isinstance(found, Mapping):
        message = f"must be a JSON object, such as {_example(name)}"
        raise InvalidArguments((Problem(name, "wrong_type", message),))
    try:
        msgspec.json.encode(found)
    except (TypeError, ValueError, OverflowError, RecursionError):
        wrong = Problem(name, "not_json", "holds what cannot be written down as JSON")
        raise InvalidArguments((wrong,)) from None
    return dict(found)


def _example(name: str) -> str:
    return '{"expected_total": 3}' if name == "contract" else '{"name": "value"}'
