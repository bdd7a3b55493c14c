"""The way out of a mistake in a query: what was probably meant, or the text as it stands."""

from __future__ import annotations

import re

from engine.query.errors import QueryError, UnclosedMark, UnknownField, UnknownValue
from engine.query.syntax import in_quotes

_KEY = re.compile(r"[A-Za-z_]+(?=:)")
_VALUE = re.compile(r"[^\s()\":]*:[^\s()\"]*")


def mended(text: str, error: QueryError) -> str:
    """`text` as it was probably meant; empty when nobody can tell."""
    at, near = error.position, str(error.fields.get("near") or "")
    if isinstance(error, UnclosedMark):
        return _closed(text, at)
    if not near:
        return ""
    if isinstance(error, UnknownField):
        return text[:at] + _KEY.sub(near, text[at:], count=1)
    if isinstance(error, UnknownValue):
        right = f"{error.fields['field']}:{near}"
        return text[:at] + _VALUE.sub(right, text[at:], count=1)
    return ""


def as_words(text: str) -> str:
    """`text` to be looked for as it stands, whatever it would mean."""
    return in_quotes(text.strip())


def _closed(text: str, at: int) -> str:
    if text[at : at + 1] == ")":  # one too many
        return text[:at] + text[at + 1 :]
    return text + (")" if text[at : at + 1] == "(" else '"')
