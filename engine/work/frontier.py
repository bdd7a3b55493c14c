"""Which page comes next: breadth first, each address once, within scope, patterns and depth.

Depths are exact although pages finish in any order: a page is handed out only while every
page two levels above it is done, so whatever links it first is as near as anything can be.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple

from engine.work.addresses import Address

SPARE = 10_000  # queued beyond max_pages, for the case that robots.txt blocks that many


class Visit(NamedTuple):
    """One address whose turn has come. `deaths` counts browsers that died under it.

    `slept` says that the machine slept while it was loaded, and that it comes again for that.
    `lastmod` is when a sitemap says that the page changed.
    """

    address: Address
    depth: int
    deaths: int = 0
    lastmod: str = ""
    slept: bool = False


class SeenKeys:
    """A set of texts at 16 bytes or less each: a million take 16 MB instead of 200.

    Keeps 64-bit hashes in an open table; at a million the odds that any two of them meet,
    and a page is wrongly taken for seen, are about 1 in 37 million.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1_024))
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def add(self, text: str) -> bool:
        """Add `text`; tells whether it is new."""
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
    """Not `hash()`: that one is keyed per process only by a setting, and a site could aim at it."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") or 1


class Frontier:
    """The queue of a crawl. `take` and `done` (or `put_back`) come in pairs.

    Args:
        max_depth: links away from the start, which is depth 0.
        max_queued: how many addresses may wait; what exceeds it is counted in `dropped`.
        wanted: is a link inside the scope and the patterns?
    """

    def __init__(self, max_depth: int, max_queued: int, wanted: Callable[[Address], bool]) -> None:
        self.dropped = 0
        self._max_depth = max_depth
        self._max_queued = max_queued
        self._wanted = wanted
        self._seen = SeenKeys()
        self._landed: set[str] = set()
        self._queues: dict[int, deque[Visit]] = {}
        self._queued = 0
        self._flying: Counter[int] = Counter()

    @property
    def known(self) -> int:
        """Pages that wait or are being loaded."""
        return self._queued + self.flying

    @property
    def flying(self) -> int:
        return self._flying.total()

    @property
    def is_empty(self) -> bool:
        """Is there nothing left, and nothing under way that could bring more?"""
        return not self.known

    def start(self, visits: Iterable[Visit]) -> None:
        """Begin here, with each address once; the patterns are not asked."""
        for visit in visits:
            if self._seen.add(visit.address.key):
                self._push(visit)

    def add(self, links: Iterable[Address], depth: int) -> int:
        """Queue the links of a page at `depth`; returns how many were new."""
        if depth >= self._max_depth:
            return 0
        before = self._queued
        for link in links:
            if link.key in self._seen or not self._wanted(link):
                continue
            if self._queued >= self._max_queued:
                self.dropped += 1
                continue
            self._seen.add(link.key)
            self._push(Visit(link, depth + 1))
        return self._queued - before

    def land(self, address: Address, visit: Visit) -> None:
        """`visit` was redirected to `address`: that one need not be visited any more."""
        if address.key != visit.address.key:
            self._landed.add(address.key)
            self._seen.add(address.key)

    def take(self) -> Visit | None:
        """The next page; None when there is none, or none yet (see `is_empty`)."""
        while (depth := self._next_depth()) is not None:
            visit = self._queues[depth].popleft()
            self._queued -= 1
            if not self._queues[depth]:
                del self._queues[depth]
            if visit.address.key in self._landed:
                continue
            self._flying[depth] += 1
            return visit
        return None

    def done(self, visit: Visit) -> None:
        """The page is finished, for better or worse; its links were added before."""
        self._flying[visit.depth] -= 1
        if not self._flying[visit.depth]:
            del self._flying[visit.depth]

    def put_back(self, visit: Visit, *, slept: bool = False) -> None:
        """The browser died under it, or the machine slept: it comes again, first of its level."""
        self.done(visit)
        again = visit._replace(slept=True) if slept else visit._replace(deaths=visit.deaths + 1)
        self._queues.setdefault(visit.depth, deque()).appendleft(again)
        self._queued += 1

    def _push(self, visit: Visit) -> None:
        self._queues.setdefault(visit.depth, deque()).append(visit)
        self._queued += 1

    def _next_depth(self) -> int | None:
        if not self._queues:
            return None
        depth = min(self._queues)
        nearest = min(self._flying, default=depth)
        return depth if depth <= nearest + 1 else None
