"""Quick filter: every word must occur. Every text is valid."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

_WORDS = re.compile(r'"([^"]*)"?|([^\s"]+)')


class Searchable(Protocol):
    """Object searched by quick words: text that was folded once by `haystack`."""

    @property
    def haystack(self) -> str: ...


Match = Callable[[Searchable], bool]
S = TypeVar("S", bound=Searchable)


def terms(text: str) -> tuple[str, ...]:
    """Split a quick filter into folded words; `"two words"` are one. Never raises."""
    # A quote that is still open while typing extends to the end.
    found = (phrase or word for phrase, word in _WORDS.findall(text))
    return tuple(word.casefold() for word in found if word.strip())


def keep(subjects: Sequence[S], text: str) -> list[S]:
    """Return the subjects that contain every word of `text`, in their order."""
    found = list(subjects)
    for term in terms(text):
        found = [one for one in found if term in one.haystack]
    return found


def match(text: str) -> Match | None:
    """Build the test for one subject; None when everything matches."""
    wanted = terms(text)
    if not wanted:
        return None
    return lambda subject: all(term in subject.haystack for term in wanted)
