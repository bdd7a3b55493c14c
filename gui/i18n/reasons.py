"""Translate reasons that are stored as English sentences.

The process in which a task failed writes the reason to its ledger in English; a mistake in a
request has an English sentence from its rule. Each sentence is recognised by its template, and its
fields are inserted into the translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from string import Formatter
from typing import NamedTuple

from engine.model.errors import EngineError
from engine.text import messages

MOST_CHARS = 2_000  # longer texts are not translated: templates are shorter without their fields
_NUMBER = re.compile(r"\d{1,3}(,\d{3})+|\d+\.\d{1,3}")  # in English format
MOST_NESTED = 4  # depth of a reason in a reason


class Template(NamedTuple):
    """Sentence template with named fields; `parts` has one more entry than `names`."""

    parts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Template:
        """Parse a template with fields in braces; format specifiers are ignored."""
        parts, names = [""], []
        for part, name, _, _ in Formatter().parse(text):
            parts[-1] += part
            if name is not None:
                names.append(name)
                parts.append("")
        return cls(tuple(parts), tuple(names))

    @property
    def weight(self) -> int:
        """The number of fixed characters: more make a false match less likely."""
        return len("".join(self.parts).strip())

    def facts(self, text: str) -> dict[str, str] | None:
        """Return the fields of a matching text; None without a match. Linear in `text`."""
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
        """Fill in the fields."""
        gaps = (facts[name] for name in self.names)
        return "".join(part + next(gaps, "") for part in self.parts)


class ReasonTranslator:
    """Translator of this program's sentences, by English text, or by code for errors."""

    def __init__(
        self, told: Mapping[str, str], errors: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        self._told, self._errors = told, errors or {}
        self._whole: dict[str, str] = {}
        self._open: tuple[tuple[Template, Template], ...] = ()
        self._again = lru_cache(maxsize=2_000)(self._say)

    def __call__(self, text: str) -> str:
        """Translate `text` with its fields; unknown texts are returned unchanged."""
        if not self._whole:
            self._build_templates()
        return self._again(text, 0) if text else text

    def _build_templates(self) -> None:
        """Build the templates on first use, which few windows need."""
        both = [(Template.of(source), Template.of(said)) for source, said in self._known()]
        self._whole = {one.parts[0]: said.parts[0] for one, said in both if not one.names}
        gaps = (pair for pair in both if pair[0].names and pair[0].weight)
        self._open = tuple(sorted(gaps, key=lambda pair: -pair[0].weight))

    def _known(self) -> Iterator[tuple[str, str]]:
        yield from self._told.items()
        for kind in _kinds(EngineError):  # the loaded classes: each may be why a task failed
            said = self._errors.get(kind.code, {}).get("sentence")
            if said is not None:
                yield kind.sentence, said

    def _say(self, text: str, depth: int) -> str:
        whole = self._whole.get(text)
        if whole is not None or len(text) > MOST_CHARS or depth > MOST_NESTED:
            return whole or text
        if depth and _NUMBER.fullmatch(text):
            return messages.decimal(float(text.replace(",", "")), len(text.partition(".")[2]))
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
