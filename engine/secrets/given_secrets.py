"""The exact values that a task was given as secrets, and taking them out of what a page says.

Gathered here for every kind: user and password of an address, the values under secret names in
its query and fragment, variables, secrets by reference, and what is typed. They live in memory
only. A page may spell them as it likes (`work.spellings`); user and password also as an
Authorization header does.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote_plus

from engine.model import redact
from engine.model.addresses import credentials_of
from engine.secrets import spellings
from engine.secrets.value_search import Search

if TYPE_CHECKING:
    from engine.model.credentials import Credentials

_MAX_DEPTH: Final = 64
# Whose values are words of ours, which a password may be as well.
_VOCABULARY: Final = frozenset(
    {"action", "code", "engine", "error_code", "failure", "file", "id", "kind", "level", "method"}
    | {"part", "phase", "screenshot", "secret", "sha256", "state", "status", "tool_name", "type"}
)
# Names of ours; what a page calls its own was looked through as the page's content.
_IS_FIELD_NAME: Final = re.compile(r"[a-z][A-Za-z_]*").fullmatch
_URL_SAFE = str.maketrans("+/", "-_")
_IS_LIKE_A_KEY = re.compile(r"(?=.*[0-9@])(?=.*[A-Za-z]).{8,}", re.DOTALL).fullmatch


class Hidden(NamedTuple):
    """A value, and what is put in its place; its repr shows the latter only."""

    value: str
    instead: str

    def __repr__(self) -> str:
        return f"Hidden({self.instead})"


def of_address(typed: str | None) -> list[Hidden]:
    """What an address that was given to a task holds of secrets."""
    if not typed:
        return []
    found = [value for value in redact.secret_values(typed) if len(value) >= spellings.SHORT]
    read = [plain for value in found if (plain := unquote_plus(value)) != value]
    return [*_marked([*found, *read]), *of_credentials(credentials_of(typed))]


def of_credentials(given: Credentials | None) -> list[Hidden]:
    """The password, both as a browser sends them, and a user that is no mere name.

    A name such as `ann` stands in half of all texts; a token without a password is a secret.
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
    """Replaces values that must not be kept, wherever a page or an error repeats them.

    `key_shapes`: page content also loses strict key shapes (see `redact.content`).
    """

    def __init__(self, hidden: Iterable[tuple[str, str]], *, key_shapes: bool = True) -> None:
        """`hidden`: pairs of a value and what is put in its place."""
        known: dict[str, tuple[str, str]] = {}
        for value, instead in hidden:
            known.setdefault(value.strip(), (value, instead))
        known.pop("", None)  # white space alone is no secret
        self._key_shapes = key_shapes
        # The longest first: of two values that begin alike the longer must not leave its end.
        self._known = sorted(known.values(), key=lambda one: len(one[0]), reverse=True)
        self._search = Search([value for value, _ in self._known])

    def __repr__(self) -> str:
        return f"Scrub({len(self._known)} values)"  # never what it hides

    def __bool__(self) -> bool:
        return bool(self._known)

    def hide(self, given: str) -> str:
        """`given` without any hidden value."""
        return self._hidden(given)[0]

    def text(self, given: str) -> str:
        """`given` without any hidden value, and without what else a secret looks like."""
        return redact.text(self.hide(given))

    def content(self, given: str) -> tuple[str, int]:
        """A page's own text by the rule of page content, and how much was taken out."""
        kept, count = self._hidden(given)
        if not self._key_shapes:
            return kept, count
        kept, shapes = redact.content(kept)
        return kept, count + shapes

    def markdown(self, given: str) -> tuple[str, int]:
        """The same for Markdown: its links lead somewhere, and addresses are judged strictly."""
        kept, count = self.content(given)
        kept, targets = redact.link_targets(kept)
        return kept, count + targets

    def ours(self, given: Any, key: str = "", depth: int = 0) -> Any:
        """A record, note or argument without any hidden value; names of states stay as they are."""
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
        """A JSON value that a page gave, by the rule of page content."""
        return redact.published(given, self.content)[0]

    def page(self, record: Mapping[str, Any], *, markdown: bool = False) -> dict[str, Any]:
        """A page's record as it may be kept; `redacted` counts what its content lost."""
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
