"""Exact values that a task was given as secrets, and their removal from a page's output.

Collected here for every kind: user and password of an address, the values under secret names in its
query and fragment, variables, secrets by reference, and typed values. They exist in memory only. A
page may spell them in many ways (`value_search`); user and password also as an Authorization header
does.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote_plus

from engine.model import redact
from engine.model.addresses import credentials_of
from engine.secrets import value_search
from engine.secrets.value_search import Search

if TYPE_CHECKING:
    from engine.model.addresses import Credentials

_MAX_DEPTH: Final = 64
# Fields with values of our own vocabulary, which a password may equal.
_VOCABULARY: Final = frozenset(
    {"action", "code", "engine", "error_code", "failure", "file", "id", "kind", "level", "method"}
    | {"part", "phase", "screenshot", "secret", "sha256", "state", "status", "tool_name", "type"}
)
# Our own field names; names from a page were redacted with the page's content.
_IS_FIELD_NAME: Final = re.compile(r"[a-z][A-Za-z_]*").fullmatch
# Values that came after the start. A site may replace its token with each page, and each of them
# is searched in every text.
MOST_LATER: Final = 1_000
_URL_SAFE = str.maketrans("+/", "-_")
_IS_LIKE_A_KEY = re.compile(r"(?=.*[0-9@])(?=.*[A-Za-z]).{8,}", re.DOTALL).fullmatch


class Hidden(NamedTuple):
    """Secret value and its replacement; its repr shows the latter only."""

    value: str
    instead: str

    def __repr__(self) -> str:
        return f"Hidden({self.instead})"


def of_address(typed: str | None) -> list[Hidden]:
    """Secrets in an address that was given to a task."""
    if not typed:
        return []
    found = [value for value in redact.secret_values(typed) if len(value) >= value_search.SHORT]
    read = [plain for value in found if (plain := unquote_plus(value)) != value]
    return [*_marked([*found, *read]), *of_credentials(credentials_of(typed))]


def of_credentials(given: Credentials | None) -> list[Hidden]:
    """The password, user and password as a browser sends them, and a user that looks like a key.

    A name such as `ann` occurs in half of all texts; a token without a password is a secret.
    """
    if given is None or not (given.username or given.password):
        return []
    user, both = given.username, f"{given.username}:{given.password}"
    sent = {b64encode(both.encode("utf-8", "replace")).decode(): None}
    sent[b64encode(both.encode("latin-1", "replace")).decode()] = None
    ways = [*sent, *(one.translate(_URL_SAFE) for one in sent)]
    ways += [one.rstrip("=") for one in ways]
    alone = [user] if not given.password or _IS_LIKE_A_KEY(user) else []
    found = dict.fromkeys([given.password, *alone, *ways])
    return _marked(one for one in found if one)


def _marked(values: Iterable[str]) -> list[Hidden]:
    return [Hidden(value, redact.MARK) for value in values]


class Scrub:
    """Replaces secret values, wherever a page or an error repeats them.

    `key_shapes`: page content also loses strict key shapes (see `redact.content`).
    """

    def __init__(
        self,
        hidden: Iterable[tuple[str, str]],
        *,
        key_shapes: bool = True,
        later: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Take `hidden` and `later`: pairs of a value and its replacement.

        They are compiled at the first use: many may come before that.
        """
        self._given, self._later = tuple(hidden), tuple(later)[-MOST_LATER:]
        self._key_shapes = key_shapes

    @cached_property
    def _known(self) -> list[tuple[str, str]]:
        known: dict[str, tuple[str, str]] = {}
        for value, instead in (*self._given, *self._later):
            known.setdefault(value.strip(), (value, instead))
        known.pop("", None)  # white space alone is no secret
        # The longest first: of two values with a common prefix the longer must not leave its end.
        return sorted(known.values(), key=lambda one: len(one[0]), reverse=True)

    @cached_property
    def _search(self) -> Search:
        return Search([value for value, _ in self._known])

    def __repr__(self) -> str:
        return f"Scrub({len(self._known)} values)"  # never the secrets

    def __bool__(self) -> bool:
        return bool(self._known)

    def with_given(self, hidden: Iterable[tuple[str, str]]) -> Scrub:
        """Return a scrub that replaces these values, too; no later value displaces them."""
        given = (*self._given, *hidden)
        return Scrub(given, key_shapes=self._key_shapes, later=self._later)

    def with_more(self, hidden: Iterable[tuple[str, str]]) -> Scrub:
        """Return a scrub that replaces these values, too; of later ones the newest remain."""
        later = (*self._later, *hidden)
        return Scrub(self._given, key_shapes=self._key_shapes, later=later)

    def hide(self, given: str) -> str:
        """Remove every hidden value from `given`."""
        return self._hidden(given)[0]

    def text(self, given: str) -> str:
        """Remove every hidden value, and everything else that looks like a secret."""
        return redact.text(self.hide(given))

    def content(self, given: str) -> tuple[str, int]:
        """Redact a page's own text by the rule of page content; return the number of redactions,
        too."""
        kept, count = self._hidden(given)
        if not self._key_shapes:
            return kept, count
        kept, shapes = redact.content(kept)
        return kept, count + shapes

    def markdown(self, given: str) -> tuple[str, int]:
        """Redact Markdown: as `content`, and its link targets by the strict rule of addresses."""
        kept, count = self.content(given)
        kept, targets = redact.link_targets(kept)
        return kept, count + targets

    def ours(self, given: Any, key: str = "", depth: int = 0) -> Any:
        """Redact a record, note or argument; names of states are left unchanged."""
        if isinstance(given, str):
            return given if key in _VOCABULARY else self.hide(given)
        if depth > _MAX_DEPTH or not isinstance(given, Mapping | list | tuple):
            return given
        if isinstance(given, Mapping):
            return {
                self._name(str(name)): self.ours(item, str(name), depth + 1)
                for name, item in given.items()
            }
        return [self.ours(item, key, depth + 1) for item in given]

    def _name(self, given: str) -> str:
        return given if _IS_FIELD_NAME(given) else self.hide(given)

    def published(self, given: Any) -> Any:
        """Redact a JSON value of a page by the rule of page content."""
        return redact.published(given, self.content)[0]

    def page(self, record: Mapping[str, Any], *, markdown: bool = False) -> dict[str, Any]:
        """Redact a page's record for storage; `redacted` counts the redactions in its content."""
        kept, count = redact.page(record, self.markdown if markdown else self.content)
        return {**kept, "redacted": count} if count else kept

    def _hidden(self, given: str) -> tuple[str, int]:
        spans = self._search.spans(given)
        if not spans:
            return given, 0
        parts: list[str] = []
        last = 0
        for begin, end, which in spans:
            parts += [given[last:begin], self._known[which][1]]
            last = end
        return "".join([*parts, given[last:]]), len(spans)
