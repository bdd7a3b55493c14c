"""What a page says, before it leaves this room: plain, whole characters, and without secrets.

Two kinds are taken out: what looks like a secret (`redact`), and what stands, or ever
stood, in a field of this tab that holds one: pages like to repeat it elsewhere.
"""

from __future__ import annotations

from typing import Any

from engine import redact
from engine.display import display, display_lines

SHORTEST = 3  # a secret of one or two characters would take half of the page with it
MOST = 200


class Veil:
    """The secrets that one tab has seen. They are kept in memory only, and never told."""

    def __init__(self) -> None:
        self._secrets: dict[str, None] = {}

    def learn(self, secrets: list[str]) -> None:
        """Take these out of everything from now on."""
        for secret in secrets:
            for form in (secret, secret.strip()):
                if len(form) >= SHORTEST:
                    self._secrets[form] = None
        while len(self._secrets) > MOST:
            del self._secrets[next(iter(self._secrets))]

    def text(self, given: str, limit: int = 0) -> str:
        """`given` on one line, as it may be told."""
        return display(redact.text(self._without(given)), limit)

    def lines(self, given: str) -> str:
        """As `text`, line feeds kept."""
        return "\n".join(
            redact.text(row) for row in display_lines(self._without(given)).split("\n")
        )

    def value(self, given: Any) -> Any:
        """A JSON value as it may be told."""
        return redact.value(self._inside(given))

    def _inside(self, given: Any) -> Any:
        if isinstance(given, str):
            return self._without(given)
        if isinstance(given, list):
            return [self._inside(one) for one in given]
        if isinstance(given, dict):
            return {self._without(str(key)): self._inside(one) for key, one in given.items()}
        return given

    def _without(self, given: str) -> str:
        # The longest first: one secret may be the beginning of another.
        for secret in sorted(self._secrets, key=len, reverse=True):
            given = given.replace(secret, redact.MARK)
        return given
