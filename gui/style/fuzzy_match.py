"""Fuzzy match score of a typed text: letters in order, words in any order."""

from __future__ import annotations

from typing import Final

_WHOLE: Final = 100  # The text starts with the word
_WORD: Final = 80  # A word of the text starts with it
_WITHIN: Final = 55
_LETTERS: Final = 30  # All letters occur in order
_GAP: Final = 2  # Penalty for each letter between
_FARTHEST: Final = 12  # Most letters between; more are chance


def score(typed: str, text: str) -> int | None:
    """Return the match score, higher is better; None without a match, 0 for empty input.

    Every typed word must match: "the dar" finds "Theme: Dark".
    """
    level = text.casefold()
    total = 0
    for word in typed.casefold().split():
        found = _score_of(word, level)
        if found is None:
            return None
        total += found
    return total


def _score_of(word: str, level: str) -> int | None:
    at = level.find(word)
    if at == 0:
        return _WHOLE
    if at > 0:
        while at > 0:
            if not level[at - 1].isalnum():
                return _WORD
            at = level.find(word, at + 1)
        return _WITHIN
    return _in_order(word, level)


def _in_order(word: str, level: str) -> int | None:
    """Return the best score of letters in order, over all start positions."""
    best: int | None = None
    begin = level.find(word[0])
    while begin >= 0:
        gaps = _gaps(word, level, begin)
        if gaps is None:
            break
        if gaps <= _FARTHEST and (best is None or _LETTERS - _GAP * gaps > best):
            best = _LETTERS - _GAP * gaps
        begin = level.find(word[0], begin + 1)
    return best


def _gaps(word: str, level: str, begin: int) -> int | None:
    at = begin
    for letter in word[1:]:
        at = level.find(letter, at + 1)
        if at < 0:
            return None
    return at - begin + 1 - len(word)
