"""Where each value of a JSON text stands, so that a mistake can be shown at its line."""

from __future__ import annotations

import json
import re
from typing import Final

MOST_CHARS: Final = 200_000  # a longer text gets no places: finding them would hold up the window
_PLAIN: Final = re.compile(r"[A-Za-z_$][\w$]{0,63}", re.ASCII)
_VALUE: Final = re.compile(r"[^\s,\]}]+")
_BLANKS: Final = re.compile(r"\s*")


def places(text: str) -> dict[str, int]:
    """The offset of every value by its path (`args.tabs[2].url`). `text` has to be valid JSON."""
    found: dict[str, int] = {}
    if len(text) <= MOST_CHARS:
        _walk(text, 0, "", found)
    return found


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Both from 1 on."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _walk(text: str, at: int, path: str, found: dict[str, int]) -> int:
    """Note what stands at `at`; the offset behind it."""
    at = _skip(text, at)
    found[path] = at
    if text[at] == "{":
        return _inside(text, at + 1, path, found, named=True)
    if text[at] == "[":
        return _inside(text, at + 1, path, found, named=False)
    if text[at] == '"':
        return _string(text, at)[1]
    value = _VALUE.match(text, at)
    return value.end() if value else at + 1


def _string(text: str, at: int) -> tuple[str, int]:
    """The string that begins at `at`, and the offset behind it."""
    value, end = json.JSONDecoder().raw_decode(text, at)
    return str(value), end


def _inside(text: str, at: int, path: str, found: dict[str, int], *, named: bool) -> int:
    number = 0
    at = _skip(text, at)
    while text[at] not in "}]":
        below = f"{path}[{number}]"
        if named:
            key, at = _string(text, at)
            at = _skip(text, at) + 1
            below = _under(path, key)
        at = _skip(text, _walk(text, at, below, found))
        if text[at] == ",":
            at = _skip(text, at + 1)
        number += 1
    return at + 1


def _under(path: str, key: str) -> str:
    if not _PLAIN.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
