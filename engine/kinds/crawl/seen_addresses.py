"""Compact set of a million texts, for the addresses of a crawl."""

from __future__ import annotations

from array import array
from hashlib import blake2b


class SeenKeys:
    """A set of texts in at most 16 bytes each: a million take 16 MB, not 200.

    Keeps 64-bit hashes in an open table; at a million the odds that any two of them collide, and a
    page is wrongly skipped as seen, are about 1 in 37 million.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1_024))
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def add(self, text: str) -> bool:
        """Add `text`; return whether it is new."""
        if self._used * 3 > len(self._slots) * 2:
            self._grow()
        hashed = _hash(text)
        at = self._place(self._slots, hashed)
        if self._slots[at]:
            return False
        self._slots[at] = hashed
        self._used += 1
        return True

    def __contains__(self, text: str) -> bool:
        return self._slots[self._place(self._slots, _hash(text))] != 0

    @staticmethod
    def _place(slots: array[int], hashed: int) -> int:
        mask = len(slots) - 1
        at = hashed & mask
        while slots[at] and slots[at] != hashed:
            at = (at + 1) & mask
        return at

    def _grow(self) -> None:
        larger = array("Q", bytes(16 * len(self._slots)))
        for hashed in self._slots:
            if hashed:
                larger[self._place(larger, hashed)] = hashed
        self._slots = larger


def _hash(text: str) -> int:
    """Hash without `hash()`, whose key may be fixed, so that a site could force collisions."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") or 1
