"""Reasons in the window's language, although they come as English sentences.

Why a task failed stands in its ledger, written by whichever process it failed in; a mistake in
a request is worded by the rule that it breaks. Both are sentences of this program, so each is
known again by its words, and its facts are taken out of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from string import Formatter
from typing import NamedTuple

from engine.model.errors import EngineError
from engine.text import catalogue

MOST_CHARS = 2_000  # of a sentence that is looked at: none of ours is longer without its facts
_NUMBER = re.compile(r"\d{1,3}(,\d{3})+|\d+\.\d{1,3}")  # as English writes it
MOST_NESTED = 4  # a reason in a reason in a reason


class Template(NamedTuple):
    """A sentence with gaps that have names: one more text than there are gaps."""

    parts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Template:
        """Of a text with its gaps in braces; how they are formatted does not matter."""
        parts, names = [""], []
        for part, name, _, _ in Formatter().parse(text):
            parts[-1] += part
            if name is not None:
                names.append(name)
                parts.append("")
        return cls(tuple(parts), tuple(names))

    @property
    def weight(self) -> int:
        """How much of it is fixed: the more, the less likely it is somebody else's sentence."""
        return len("".join(self.parts).strip())

    def facts(self, text: str) -> dict[str, str] | None:
        """What stands in the gaps; None for another sentence. Takes time linear in `text`."""
        first, last = self.parts[0], self.parts[-1]
        if not (text.startswith(first) and text.endswith(last)):
            return None
        at, end = len(first), len(text) - len(last)
        found = []
        for part in self.parts[1:-1]:
            stop = text.find(part, at + 1, end)
            if stop < 0:
                return None
            found.append(text[at:stop])
            at = stop + len(part)
        return dict(zip(self.names, (*found, text[at:end]), strict=True)) if at < end else None

    def filled(self, facts: Mapping[str, str]) -> str:
        """The sentence with its gaps filled."""
        gaps = (facts[name] for name in self.names)
        return "".join(part + next(gaps, "") for part in self.parts)


class Recognised:
    """Knows the sentences of this program: `told` by their English, errors by their code."""

    def __init__(
        self, told: Mapping[str, str], errors: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        self._told, self._errors = told, errors or {}
        self._whole: dict[str, str] = {}
        self._open: tuple[tuple[Template, Template], ...] = ()
        self._again = lru_cache(maxsize=2_000)(self._say)

    def __call__(self, text: str) -> str:
        """`text` in the language, with its facts; as it is when it is not of this program."""
        if not self._whole:
            self._learn()
        return self._again(text, 0) if text else text

    def _learn(self) -> None:
        """Few windows ever need them: not before the first reason is told."""
        both = [(Template.of(source), Template.of(said)) for source, said in self._known()]
        self._whole = {one.parts[0]: said.parts[0] for one, said in both if not one.names}
        gaps = (pair for pair in both if pair[0].names and pair[0].weight)
        self._open = tuple(sorted(gaps, key=lambda pair: -pair[0].weight))

    def _known(self) -> Iterator[tuple[str, str]]:
        yield from self._told.items()
        for kind in _kinds(EngineError):  # those loaded: each may be why a task failed
            said = self._errors.get(kind.code, {}).get("sentence")
            if said is not None:
                yield kind.sentence, said

    def _say(self, text: str, depth: int) -> str:
        whole = self._whole.get(text)
        if whole is not None or len(text) > MOST_CHARS or depth > MOST_NESTED:
            return whole or text
        if depth and _NUMBER.fullmatch(text):
            return catalogue.decimal(float(text.replace(",", "")), len(text.partition(".")[2]))
        for template, said in self._open:
            if text.startswith(template.parts[0]) and (facts := template.facts(text)) is not None:
                return said.filled(
                    {name: self._say(fact, depth + 1) for name, fact in facts.items()}
                )
        return text


def _kinds(kind: type[EngineError]) -> Iterator[type[EngineError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
