"""Mask secrets in page texts before they leave the browser package.

Masked are all values that secret fields of this tab held, and the secrets given to the task,
because pages repeat them elsewhere. Beyond that a page's own texts lose only strict key shapes;
addresses and the product's texts lose everything that looks like a secret (see `redact`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from engine.model import redact
from engine.model.display import display
from engine.secrets.given_secrets import MOST_LATER, Hidden, Scrub
from engine.secrets.value_search import Echoes

# The browser's serialization: attributes in double quotes; a cut may end anywhere.
_FIELD: Final = re.compile(r'<input\b(?:[^>"]++|"[^"]*+(?:"|$))*+', re.IGNORECASE)
_SECRET: Final = re.compile(
    r'\s(?:type="password"|autocomplete="[^"]*'
    r'(?:\bcc-|\bone-time-code\b|\b(?:current|new)-password\b)[^"]*")',
    re.IGNORECASE,
)
_VALUE: Final = re.compile(r'(?<=\s)value="[^"]*+(?:"|$)', re.IGNORECASE)


def without_secret_values(html: str) -> str:
    """Mask secret values in `html`, which a browser serialized."""
    return _FIELD.sub(_field, html)


def _field(found: re.Match[str]) -> str:
    if not _SECRET.search(found[0]):
        return found[0]
    return _VALUE.sub(f'value="{redact.MARK}"', found[0])


SHORTEST = 3  # characters; a shorter secret would mask half of the page
MOST = 200


class SecretMask:
    """The secrets of one tab, matched in every spelling; kept in memory only."""

    def __init__(self) -> None:
        self._secrets: dict[str, None] = {}
        self._given: dict[str, None] = {}  # no page can evict these
        self._later: dict[str, None] = {}  # tokens that a site chose, the newest last
        self._scrub = Scrub(())

    def add(self, secrets: Iterable[str]) -> None:
        """Add values of secret fields."""
        new = [one for one in secrets if len(one.strip()) >= SHORTEST and one not in self._secrets]
        if not new:
            return
        self._secrets.update(dict.fromkeys(new))
        while len(self._secrets) > MOST:
            del self._secrets[next(iter(self._secrets))]
        self._rebuild()

    def add_given(self, given: Iterable[Hidden]) -> None:
        """Add the secrets that the user gave."""
        new = [value for value, _ in given if value not in self._given]
        if new:
            self._given.update(dict.fromkeys(new))
            self._rebuild()

    def add_later(self, hidden: Iterable[Hidden]) -> None:
        """Add tokens that a site gave later; of very many the newest remain."""
        new = [value for value, _ in hidden if value not in self._later]
        if new:
            self._later.update(dict.fromkeys(new))
            while len(self._later) > MOST_LATER:
                del self._later[next(iter(self._later))]
            self._rebuild()

    def _all(self) -> tuple[str, ...]:
        return (*self._given, *self._later, *self._secrets)

    def _hidden(self) -> list[tuple[str, str]]:
        return [(secret, redact.MARK) for secret in self._all()]

    def _rebuild(self) -> None:
        self._scrub = Scrub(self._hidden())

    @property
    def echoes(self) -> Echoes:
        """Matcher of the same secrets for screenshots."""
        return Echoes(self._all())

    def text(self, given: str, limit: int = 0) -> str:
        """Redact an address or a text of the product, on one line."""
        return display(self._scrub.text(given), limit)

    def content(self, given: str, limit: int = 0, *, key_shapes: bool = True) -> str:
        """Redact a page's own text, on one line."""
        return display(self.markup(given, key_shapes=key_shapes)[0], limit)

    def hide(self, given: str) -> str:
        """Mask only known secrets; keep the rest of the text."""
        return self._scrub.hide(given)

    def markup(self, given: str, *, key_shapes: bool) -> tuple[str, int]:
        """Mask markup by the rule for page content; return it and the number of masked places."""
        scrub = self._scrub if key_shapes else Scrub(self._hidden(), key_shapes=False)
        return scrub.content(given)

    def value(self, given: Any) -> Any:
        """Redact a JSON value from the page."""
        return self._scrub.published(given)
