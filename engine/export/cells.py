"""One value as one cell: plain text that no spreadsheet calculates and every file format takes."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

import msgspec

# What XML 1.0 cannot hold at all, and what no table needs: controls, halves of pairs.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# Blanks and invisible signs in front, which a spreadsheet may drop before it looks.
_FRONT = re.compile(
    "[ \n\v\f\x85\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]*"
)
_STARTS: Final = frozenset("=+-@\t\r\u2212")
EXACT: Final = 2**53  # larger whole numbers lose digits in a spreadsheet


def plain(text: str) -> str:
    """`text` without what XML cannot hold."""
    return _ILLEGAL.sub("", text)


def text_of(value: Any) -> str:
    """Any value as text: nothing is empty, what has parts is JSON."""
    if isinstance(value, str):
        return plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return plain(msgspec.json.encode(value).decode())


def begins_formula(text: str) -> bool:
    """Would a spreadsheet calculate this text? Full-width forms of the signs count (OWASP)."""
    front = _FRONT.match(text)
    first = text[front.end() : front.end() + 1] if front else ""
    # A full-width or small form is one of the signs once the spreadsheet has levelled it.
    return bool(first) and (first in _STARTS or unicodedata.normalize("NFKC", first) in _STARTS)


def csv_cell(value: Any) -> str:
    """A cell of a CSV file: a text that begins like a formula gets an apostrophe in front."""
    text = text_of(value)
    return "'" + text if not is_number(value) and begins_formula(text) else text


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def picked(row: dict[str, Any], name: str) -> Any:
    """The value of column `name` in `row`; a dot in it goes one step in (`error.message`)."""
    if name in row:
        return row[name]
    value: Any = row
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
