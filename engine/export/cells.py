"""Cell values: plain text that no spreadsheet evaluates and every file format accepts."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

import msgspec

# Characters that XML 1.0 forbids or no table needs: controls, lone surrogates.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# Leading blanks and invisible characters, which a spreadsheet may drop before parsing.
_FRONT = re.compile(
    "[ \n\v\f\x85\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]*"
)
_STARTS: Final = frozenset("=+-@\t\r\u2212")
EXACT: Final = 2**53  # larger integers lose digits in a spreadsheet


def plain(text: str) -> str:
    """Remove the characters that XML forbids from `text`."""
    return _ILLEGAL.sub("", text)


def text_of(value: Any) -> str:
    """Convert any value to text: None is empty, containers are JSON."""
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
    """Return whether a spreadsheet would evaluate this text, also with full-width signs (OWASP)."""
    front = _FRONT.match(text)
    first = text[front.end() : front.end() + 1] if front else ""
    # A spreadsheet normalises a full-width or small form to the plain sign.
    return bool(first) and (first in _STARTS or unicodedata.normalize("NFKC", first) in _STARTS)


def csv_cell(value: Any) -> str:
    """Format a CSV cell: text that begins like a formula gets a leading apostrophe."""
    text = text_of(value)
    return "'" + text if not is_number(value) and begins_formula(text) else text


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def picked(row: dict[str, Any], name: str) -> Any:
    """Return the value of column `name` in `row`; a dot descends one level (`error.message`)."""
    if name in row:
        return row[name]
    value: Any = row
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
