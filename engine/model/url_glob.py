"""Match an address against a glob, as Playwright's `wait_for_url` does.

`*` stands for anything but a slash, `**` for anything, `{a,b}` for one of several; everything
else, `?` as well, for itself. A pattern that begins with `/` is matched against what follows
the host.
"""

from __future__ import annotations

import re
from typing import Final

from engine.model.addresses import spelled_glob

_TOKEN: Final = re.compile(r"\*\*|\*|\{[^{}]*\}|\\.|.", re.DOTALL)
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


class Glob:
    """One pattern, compiled."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        spelled = spelled_glob(pattern)
        parts = (_expression(found[0]) for found in _TOKEN.finditer(spelled))
        self._expression = re.compile("".join(parts), re.DOTALL)

    def matches(self, url: str) -> bool:
        """Does the whole of the address match?"""
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
