"""Masking of typed text with variable names.

Values are kept in memory only, to find their repetitions in pages (a search in the address, a
greeting on a button): the output of a recording has `{{name}}` instead. Fields that resemble a
password's are always masked, as a matter of trust; the others unless the operator enabled
`keep_text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote, unquote_plus

from engine.browser.recording.recorder_messages import NOT_SLUG, Target
from engine.kinds.commands.command_values import placeholders
from engine.model import redact
from engine.secrets.echo_matching import Echoes
from engine.secrets.given_secrets import Hidden, Scrub

SHORTEST: Final = 3  # shorter values are matched only as a whole value in an address
MOST_SEEN: Final = 5_000
_INSIDE_A_WORD: Final = re.compile(r"\w\{\{|\}\}\w")
_PART: Final = re.compile(r"(?<=[=/])[^&#=/?]+")


class Masks:
    """The variables of one recording. `hide` applies to all stored or displayed text."""

    def __init__(
        self, *, keep_text: bool, given: Iterable[Hidden] = (), key_shapes: bool = True
    ) -> None:
        self.keep_text = keep_text
        self._key_shapes = key_shapes
        self.variables: dict[str, dict[str, Any]] = {}
        self._values: dict[str, str] = {}  # variable -> its current value
        self._seen: dict[str, str] = {}  # every intermediate value -> its variable
        self._given = tuple(given)
        self._scrub = Scrub(self._given, key_shapes=key_shapes)

    def begin(self, target: Target, *, secret: bool) -> str:
        """Create a variable for the new input of a field."""
        name = self._fresh(_slug(target))
        self.variables[name] = {"name": name, "secret": secret}
        if target.name and self.hide_content(target.name) == target.name:
            self.variables[name]["field"] = target.name
        return name

    def settle(self, name: str) -> str:
        """Return the final name: an older one with the same field and text, if any."""
        value = self._values.get(name)
        for older, known in self._values.items():
            if older != name and known == value and self._base(older) == self._base(name):
                self.drop(name)
                return older
        return name

    def learn(self, name: str, value: str) -> None:
        """Set the current value of `name`."""
        if self._values.get(name) == value:
            return
        self._values[name] = value
        if value:
            self._seen.setdefault(value, name)
        while len(self._seen) > MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        self._rebuild()

    def drop(self, name: str) -> None:
        """Remove an unused variable."""
        self.variables.pop(name, None)
        self._values.pop(name, None)
        self._seen = {value: known for value, known in self._seen.items() if known != name}
        self._rebuild()

    def masked(self, text: str, *, secret: bool) -> bool:
        """Return whether a variable must replace this text."""
        return secret or not self.keep_text or self.hide(text) != text

    def hide(self, text: str) -> str:
        """Mask typed text, credentials of addresses, and everything that resembles a secret."""
        return self._scrub.text(text)

    def named(self, text: str) -> str | None:
        """Replace each typed word that is not secret with `{{name}}`.

        None for a text that must not be stored: it repeats a secret, a part of a word, or another
        spelling of typed text.
        """
        if "{{" in text or "}}" in text:
            return None  # braces in page text would pass for a variable
        named = self._scrub.hide(text)
        if redact.MARK in named or _INSIDE_A_WORD.search(named):
            return None
        if not self.may_be_kept(named):
            return None
        if any(self.variables[name]["secret"] for name in placeholders(named)):
            return None
        left = [part for part in re.split(r"\{\{.*?\}\}", named) if part]
        return None if self.echoes().within(left) else named

    def may_be_kept(self, named: str) -> bool:
        """Return whether a text has neither a secret address nor a strict key shape."""
        has_key = self._key_shapes and redact.content(named)[1]
        return redact.url(named) == named and not has_key

    def hide_content(self, text: str) -> str:
        """Mask typed and given secrets and strict key shapes in page text.

        The key shapes are kept if the operator requested that.
        """
        return self._scrub.content(text)[0]

    def echoes(self, typed: Iterable[str] = ()) -> Echoes:
        """Return the texts to mask in a screenshot; `typed` are those without a variable yet."""
        hidden = {name for name, of in self.variables.items() if of["secret"] or not self.keep_text}
        now = [value for name, value in self._values.items() if name in hidden]
        whole = [value for value, name in self._seen.items() if name in hidden]
        given = [value for value, _ in self._given]
        return Echoes([*now, *typed, *given], whole)

    def hide_url(self, url: str) -> str:
        """Mask an address, with its query values and path segments one by one."""
        return self.hide(_PART.sub(self._part, redact.url(url)))

    def _part(self, found: re.Match[str]) -> str:
        for read in (unquote_plus(found[0]), unquote(found[0])):
            value = read.replace("\r\n", "\n")  # line ends as in the form data of a text area
            if value in self._seen:
                return "{{" + self._seen[value] + "}}"
        return found[0]

    def _rebuild(self) -> None:
        long = ((value, name) for name, value in self._values.items() if len(value) >= SHORTEST)
        typed = ((value, "{{" + name + "}}") for value, name in long)
        self._scrub = Scrub([*typed, *self._given], key_shapes=self._key_shapes)

    def _base(self, name: str) -> str:
        return re.sub(r"_\d+$", "", name)

    def _fresh(self, slug: str) -> str:
        name, number = slug, 1
        while name in self.variables:
            number += 1
            name = f"{slug}_{number}"
        return name


def _slug(target: Target) -> str:
    """Derive a variable's name from the field's labels."""
    named: Iterable[str] = (target.name or "", *target.hints)
    for words in named:
        slug = NOT_SLUG.sub("_", words.lower()).strip("_")[:40].strip("_")
        if slug and slug[0].isalpha():
            return slug
    return "text"
