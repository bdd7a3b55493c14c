"""Match an address against a glob, as Playwright's `wait_for_url` does.

`*` matches anything but a slash, `**` anything, `{a,b}` one alternative; every other character, `?`
too, matches itself. A pattern that begins with `/` is matched against the part after the host.
"""

from __future__ import annotations

import re
from typing import Final

from engine.model.addresses import spelled_glob

_TOKEN: Final = re.compile(r"\*\*|\*|\{[^{}]*\}|\\.|.", re.DOTALL)
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


class Glob:
    """One compiled pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        spelled = spelled_glob(pattern)
        parts = (_expression(found[0]) for found in _TOKEN.finditer(spelled))
        self._expression = re.compile("".join(parts), re.DOTALL)

    def matches(self, url: str) -> bool:
        """Return whether the whole address matches."""
        whole = _ORIGIN.sub("", url, count=1) if self.pattern.startswith("/") else url
        return self._expression.fullmatch(whole) is not None


def _expression(token: str) -> str:
    if token == "**":
        return ".*"
    if token == "*":
        return "[^/]*"
    if token.startswith("{") and token.endswith("}") and len(token) > 1:
        return "(?:" + "|".join(map(re.escape, token[1:-1].split(","))) + ")"
    return re.escape(token[1:] if token.startswith("\\") and len(token) > 1 else token)
