"""What a page says, before it leaves this room: plain, whole characters, and without secrets.

Out of everything is taken what stands, or ever stood, in a field of this tab that holds a
secret, and what the task was given as one: pages like to repeat it elsewhere. Beyond that a
page's own words lose strict key shapes only, and addresses and ours all that looks like a
secret (see `redact`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.model import redact
from engine.model.display import display
from engine.secrets.echo_matching import Echoes
from engine.secrets.given_secrets import Hidden, Scrub

SHORTEST = 3  # a secret of one or two characters would take half of the page with it
MOST = 200
MOST_GIVEN = 1_000


class Veil:
    """The secrets that one tab has seen, however a page spells them; in memory only."""

    def __init__(self) -> None:
        self._secrets: dict[str, None] = {}
        self._given: dict[str, None] = {}  # which no page can push out by many fields of its own
        self._scrub = Scrub(())

    def learn(self, secrets: Iterable[str]) -> None:
        """Take these out of everything from now on."""
        new = [one for one in secrets if len(one.strip()) >= SHORTEST and one not in self._secrets]
        if not new:
            return
        self._secrets.update(dict.fromkeys(new))
        while len(self._secrets) > MOST:
            del self._secrets[next(iter(self._secrets))]
        self._rebuild()

    def keep_from(self, given: Iterable[Hidden]) -> None:
        """Take out of everything what this tab's user gave as a secret."""
        new = [value for value, _ in given if value not in self._given]
        if new:
            self._given.update(dict.fromkeys(new))
            while len(self._given) > MOST_GIVEN:
                del self._given[next(iter(self._given))]
            self._rebuild()

    def _hidden(self) -> list[tuple[str, str]]:
        return [(secret, redact.MARK) for secret in (*self._given, *self._secrets)]

    def _rebuild(self) -> None:
        self._scrub = Scrub(self._hidden())

    @property
    def echoes(self) -> Echoes:
        """The same for pictures."""
        return Echoes((*self._given, *self._secrets))

    def text(self, given: str, limit: int = 0) -> str:
        """An address or words of ours on one line, as they may be told."""
        return display(self._scrub.text(given), limit)

    def content(self, given: str, limit: int = 0, *, key_shapes: bool = True) -> str:
        """The page's own words on one line."""
        return display(self.markup(given, key_shapes=key_shapes)[0], limit)

    def hide(self, given: str) -> str:
        """A text without what fields have held and what was given; the rest stays as it is."""
        return self._scrub.hide(given)

    def markup(self, given: str, *, key_shapes: bool) -> tuple[str, int]:
        """Markup of the page by the rule of page content, and how much was taken out."""
        scrub = self._scrub if key_shapes else Scrub(self._hidden(), key_shapes=False)
        return scrub.content(given)

    def value(self, given: Any) -> Any:
        """A JSON value that the page gave."""
        return self._scrub.published(given)
