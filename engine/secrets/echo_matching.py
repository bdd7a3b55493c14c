"""Detection of typed secrets that a page displays: texts that a screenshot must not show.

Pages show them differently from how they were typed: in capitals, over several elements, a card's
number in groups, or in another spelling (`value_search`). Values of three characters and more are
searched, in memory only.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from engine.secrets.value_search import Search

SHORTEST: Final = 3
_WORD: Final = 4  # shorter ones match only as a word: "the" occurs in half of all texts
_DIGITS: Final = 6  # so many digits are one number, however they are grouped
_GAPS: Final = re.compile(r"[\s\u00ad\u200b-\u200d\u2060\ufeff]+")
_GROUPS: Final = re.compile(r"[-./()+]+")


class Echoes:
    """Search for `values` anywhere in a text, and for `whole` only as the complete text."""

    def __init__(self, values: Iterable[str], whole: Iterable[str] = ()) -> None:
        values = list(dict.fromkeys(values))
        self._search = Search([value for value in values if len(value.strip()) >= _WORD])
        found = {
            normalised for value in values if len(normalised := _normalised(value)) >= SHORTEST
        }
        self._values = [value for value in found if len(value) >= _WORD]
        words = "|".join(re.escape(value) for value in found if len(value) < _WORD)
        self._words = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None
        ungrouped = (_GROUPS.sub("", value) for value in self._values)
        self._numbers = [one for one in ungrouped if one.isdigit() and len(one) >= _DIGITS]
        self._whole = {
            normalised for one in whole if len(normalised := _normalised(one)) >= SHORTEST
        }

    def __bool__(self) -> bool:
        return bool(self._values or self._words or self._whole)

    def within(self, texts: Sequence[str]) -> set[int]:
        """Indexes of texts that show one of the values, alone or together with their neighbours."""
        normalised_texts = [_normalised(text) for text in texts]
        found = {
            at
            for at, normalised in enumerate(normalised_texts)
            if self._matches_alone(texts[at], normalised)
        }
        found |= _covered_by(normalised_texts, self._values)
        found |= self._matches_spelled(texts)
        if self._numbers:
            found |= _covered_by(
                [_GROUPS.sub("", normalised) for normalised in normalised_texts], self._numbers
            )
        return found

    def _matches_spelled(self, texts: Sequence[str]) -> set[int]:
        """Indexes of texts that show a value in another spelling, alone and joined."""
        found = {at for at, text in enumerate(texts) if self._search.spans(text)}
        starts = list(accumulate(map(len, texts), initial=0))[:-1]
        for begin, end, _ in self._search.spans("".join(texts)):
            found |= _covered(starts, begin, end)
        return found

    def _matches_alone(self, text: str, normalised: str) -> bool:
        return normalised in self._whole or bool(
            self._words and self._words.search(text.casefold())
        )


def _normalised(text: str) -> str:
    return _GAPS.sub("", text.casefold())


def _covered_by(texts: Sequence[str], values: Iterable[str]) -> set[int]:
    """Indexes of texts that a value covers in their concatenation."""
    whole = "".join(texts)
    starts = list(accumulate(map(len, texts), initial=0))[:-1]
    found: set[int] = set()
    for value in values:
        at = whole.find(value)
        while at >= 0:
            found |= _covered(starts, at, at + len(value))
            at = whole.find(value, at + 1)
    return found


def _covered(starts: Sequence[int], begin: int, end: int) -> set[int]:
    """Indexes of texts that the range from `begin` to `end` of their concatenation covers."""
    return set(range(bisect_right(starts, begin) - 1, bisect_right(starts, end - 1)))
