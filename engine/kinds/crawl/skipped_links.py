"""Which links a crawl left alone, and why: counted, so that its result can say what it lacks."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, Literal

from engine.kinds.crawl.seen_addresses import SeenKeys

Reason = Literal["outside", "too_deep", "repeating", "not_web", "over_limit", "fragments"]

MOST_KEYS: Final = 1_000_000  # 16 MB; of a site that makes up more, the count is a lower bound
_FEWEST_SLASHES: Final = 7  # two of the scheme, and five parts of the path
# One to three parts of a path, five times in a row: relative links that pile up.
_REPEATING = re.compile(r"(/[^/]+(?:/[^/]+){0,2}?)\1{4,}(?=/|$)")


class LeftOut:
    """Counts addresses, each once, by the reason why they were not taken."""

    def __init__(self) -> None:
        self._counts: Counter[Reason] = Counter()
        self._seen = SeenKeys()
        self._deep = SeenKeys()

    def __contains__(self, key: str) -> bool:
        return key in self._seen

    def add(self, reason: Reason, key: str) -> None:
        """`key` is not taken; said twice it counts once."""
        if len(self._seen) < MOST_KEYS and self._seen.add(key):
            self._counts[reason] += 1

    def opened(self, key: str) -> None:
        """It was opened, and so is not left out, whatever links to it from now on."""
        self._seen.add(key)

    def too_deep(self, key: str) -> None:
        """A link too far from the start; another page may still lead there by a shorter way."""
        if len(self._deep) < MOST_KEYS and self._deep.add(key):
            self._counts["too_deep"] += 1

    def taken(self, key: str) -> None:
        """It is taken after all."""
        if key in self._deep:
            self._counts["too_deep"] -= 1

    def count(self, reason: Reason, number: int) -> None:
        """So many more that have no address to be told apart by."""
        self._counts[reason] += number

    def told(self) -> dict[str, int]:
        """For the summary: only what there is."""
        return {f"links_{reason}": count for reason, count in sorted(self._counts.items()) if count}


def is_repeating(url: str) -> bool:
    """Does the path say the same again and again, as a trap's or a broken template's does?"""
    if url.count("/") < _FEWEST_SLASHES:
        return False
    return _REPEATING.search(url.partition("?")[0], len("http://")) is not None
