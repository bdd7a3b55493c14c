"""Limit on the nesting of JSON, checked in bytes before parsing and in values after.

A parser survives deeper nesting than the code behind it: the redactor, or an encoder with indents,
would exhaust Python's stack, whose size differs between versions.
"""

from __future__ import annotations

import re
from typing import Any, Final

MAX_DEPTH: Final = 64
# A whole string, or one bracket outside of strings.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?+|[\[\]{}]', re.DOTALL)


def may_be_deep(data: bytes) -> bool:
    """Return whether this JSON text has enough brackets to be too deep; two passes, nearly free."""
    return data.count(b"[") + data.count(b"{") > MAX_DEPTH


def is_deep_text(data: bytes) -> bool:
    """Return whether this JSON text is nested deeper than `MAX_DEPTH`, ignoring brackets in
    strings."""
    if not may_be_deep(data):
        return False
    depth = 0
    # Not all at once: a million tokens would block the GUI thread.
    for found in _TOKEN.finditer(data):
        first = found[0][:1]
        depth += (first in b"[{") - (first in b"]}")
        if depth > MAX_DEPTH:
            return True
    return False


def is_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """Return whether this value has more than `most` levels; iterative, so it uses no stack."""
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
