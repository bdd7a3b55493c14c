"""Strict parsing of a task file, so that all programs read the same task."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from engine.model.errors import InvalidArguments, Problem

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 40  # levels of brackets; a task needs five
MAX_DIGITS: Final = 400
_BOM: Final = b"\xef\xbb\xbf"  # byte order mark that editors on Windows write; it has no meaning
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def check_size(size: int, name: str) -> None:
    """Raise InvalidArguments if a file of `size` bytes is larger than 1 MiB."""
    if size > MAX_BYTES:
        _refuse(name, "too_large", f"is larger than 1 MiB ({size:,} bytes)")


def read_document(data: bytes, name: str) -> Any:
    """Parse the JSON value in `data`; `name` is the file name for messages.

    Raises:
        InvalidArguments: it is larger than 1 MiB, not UTF-8, not JSON, too deep, has a duplicate
            key or a number that JSON cannot carry.
    """
    check_size(len(data), name)
    try:
        text = data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(name, "not_utf8", f"is not UTF-8 (at byte {error.start:,})")
    if not text.strip():
        _refuse(name, "empty", "is empty")
    if _too_deep(text):
        _refuse(name, "too_deep", f"is nested deeper than {MAX_DEPTH} levels")
    try:
        return json.loads(
            text,
            object_pairs_hook=_without_doubles,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        _refuse(name, "not_json", f"is not valid JSON ({error.msg}, {place})")
    except ValueError as error:
        _refuse(name, "not_json", str(error))


def _refuse(name: str, code: str, message: str) -> NoReturn:
    raise InvalidArguments((Problem(name, code, message),)) from None


def _too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"holds the key '{key[:40]}' twice in one object")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which is no JSON")


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"holds a number of {len(text):,} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"holds a number that is too large ({text[:40]})")
    return number
