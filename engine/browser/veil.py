"""What a page says, before it leaves this room: plain, whole characters, and without secrets.

Two kinds are taken out: what looks like a secret (`redact`), and what stands, or ever
stood, in a field of this tab that holds one: pages like to repeat it elsewhere.
"""

from __future__ import annotations

from typing import Any

from engine import redact
from engine.display import display
from engine.work.command_values import Scrub
from engine.work.echoes import Echoes

SHORTEST = 3  # a secret of one or two characters would take half of the page with it
MOST = 200


class Veil:
    """The secrets that one tab has seen, however a page spells them; in memory only."""

    def __init__(self) -> None:
        self._secrets: dict[str, None] = {}
        self._scrub = Scrub(())

    def learn(self, secrets: list[str]) -> None:
        """Take these out of everything from now on."""
        new = [one for one in secrets if len(one.strip()) >= SHORTEST and one not in self._secrets]
        if not new:
            return
        self._secrets.update(dict.fromkeys(new))
        while len(self._secrets) > MOST:
            del self._secrets[next(iter(self._secrets))]
        self._scrub = Scrub((secret, redact.MARK) for secret in self._secrets)

    @property
    def echoes(self) -> Echoes:
        """The same for pictures."""
        return Echoes(self._secrets)

    def text(self, given: str, limit: int = 0) -> str:
        """`given` on one line, as it may be told."""
        return display(self._scrub.text(given), limit)

    def lines(self, given: bytes) -> bytes:
        """A text of many lines (UTF-8) without what fields have held; the rest stays as it is."""
        return self._scrub.hide(given.decode("utf-8", "replace")).encode("utf-8", "replace")

    def value(self, given: Any) -> Any:
        """A JSON value as it may be told."""
        return self._scrub.value(given)
