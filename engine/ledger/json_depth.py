"""How deep JSON may be nested before it is refused: in bytes before parsing, in values after.

A parser survives more than the code behind it: whatever walks into a value (the redactor, an
encoder with indents) would meet the end of Python's stack, which lies elsewhere in each version.
"""

from __future__ import annotations

import re
from typing import Any, Final

MAX_DEPTH: Final = 64
# A string as a whole, or one bracket outside of strings.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?+|[\[\]{}]', re.DOTALL)


def may_be_deep(data: bytes) -> bool:
    """Has this JSON text so many brackets that it could be too deep? Two passes, nearly free."""
    return data.count(b"[") + data.count(b"{") > MAX_DEPTH


def is_deep_text(data: bytes) -> bool:
    """Is this JSON text nested deeper than `MAX_DEPTH`? Brackets in strings do not count."""
    if not may_be_deep(data):
        return False
    depth = 0
    for found in _TOKEN.finditer(data):  # one by one: a window's thread must not wait for a million
        first = found[0][:1]
        depth += (first in b"[{") - (first in b"]}")
        if depth > MAX_DEPTH:
            return True
    return False


def is_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """Has this value more than `most` levels? Level by level, so that no stack is used up."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return False
        level = [
            inner for each in level for inner in _parts(each) if isinstance(inner, dict | list)
        ]
    return bool(level)


def _parts(value: dict[str, Any] | list[Any]) -> Any:
    return value.values() if isinstance(value, dict) else value
