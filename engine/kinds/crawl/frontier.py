"""Breadth-first queue: each address once, within scope, patterns and depth.

Depths are exact although pages finish in any order: a page starts only after every page two levels
above it is done, and a shorter path that is found until then moves it up in the queue.

A page whose failure another page may have caused is isolated: it starts after all other pages, and
without any page in parallel, so its second attempt delays no other page.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from engine.model.addresses import Address, Fragments
from engine.pages.fetch import Failure


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


# Links that a crawl skipped, counted by reason, so that the result can report the gaps.

Reason = Literal[
    "outside",
    "too_deep",
    "repeating",
    "not_web",
    "over_limit",
    "fragments",
    "sign_out",
    "host_errors",
]

MOST_KEYS: Final = 1_000_000  # 16 MB; the count is a lower bound beyond it
_FEWEST_SLASHES: Final = 7  # two of the scheme, and five segments of the path
# One to three path segments, five times in a row: accumulated relative links.
_REPEATING = re.compile(r"(/[^/]+(?:/[^/]+){0,2}?)\1{4,}(?=/|$)")


class LeftOut:
    """Counter of skipped addresses, each once, by reason."""

    def __init__(self) -> None:
        self._counts: Counter[Reason] = Counter()
        self._seen = SeenKeys()
        self._deep = SeenKeys()

    def __contains__(self, key: str) -> bool:
        return key in self._seen

    def add(self, reason: Reason, key: str) -> None:
        """Count `key` as skipped; repetitions count once."""
        if len(self._seen) < MOST_KEYS and self._seen.add(key):
            self._counts[reason] += 1

    def opened(self, key: str) -> None:
        """Exclude an opened address from the skipped ones, also for later links."""
        self._seen.add(key)

    def too_deep(self, key: str) -> None:
        """Count a link beyond the maximum depth; a shorter path may still lead to it."""
        if len(self._deep) < MOST_KEYS and self._deep.add(key):
            self._counts["too_deep"] += 1

    def taken(self, key: str) -> None:
        """Remove an address that was queued after all from the count."""
        if key in self._deep:
            self._counts["too_deep"] -= 1

    def count(self, reason: Reason, number: int) -> None:
        """Count a number of addresses that are not known individually."""
        self._counts[reason] += number

    def told(self) -> dict[str, int]:
        """Return the counts above zero, for the summary."""
        return {f"links_{reason}": count for reason, count in sorted(self._counts.items()) if count}


def is_repeating(url: str) -> bool:
    """Return whether path segments repeat, as in a crawler trap or a broken template."""
    if url.count("/") < _FEWEST_SLASHES:
        return False
    return _REPEATING.search(url.partition("?")[0], len("http://")) is not None


SPARE = 10_000  # queued beyond max_pages, in case redirects lead to that many of them


class Visit(NamedTuple):
    """One queued address. `deaths` counts the attempts that led to isolation.

    `slept` marks a repetition because the machine slept during the load. `lastmod` is the page's
    change date in the sitemap. `tries` counts the temporary failures, `failure` is the last of
    them; `due_s` is the earliest time of the retry, on the crawl's monotonic clock. `earlier` are
    the errors of all attempts so far.
    """

    address: Address
    depth: int
    deaths: int = 0
    lastmod: str = ""
    slept: bool = False
    tries: int = 0
    failure: Failure | None = None
    due_s: float = 0.0
    earlier: tuple[str, ...] = ()

    @property
    def attempts(self) -> int:
        """The number of requests for the page, including the current attempt."""
        return 1 + self.tries + self.deaths + self.slept


_Queues = dict[int, deque[Visit]]
_Parked = tuple[_Queues, int, Visit]  # with the place to which it returns
PARKED_AT_ONCE: Final = 10_000  # 15 ms


class Frontier:
    """The queue of a crawl. `take` and `done` (or `put_back`, `put_off`, `set_apart`) are pairs.

    Args:
        max_depth: links away from the start, which is depth 0.
        max_queued: maximum number of queued addresses; the excess is counted in `dropped`.
        wanted: reports whether a link is inside the scope and the patterns.
        fragments: the fragments that identify separate pages.
        is_paused: reports whether pages of an origin wait, except for a probe. They do not delay
            pages of other origins, so that their own depths may be longer than the shortest ones.
    """

    def __init__(
        self,
        max_depth: int,
        max_queued: int,
        wanted: Callable[[Address], bool],
        fragments: Fragments = "ignore",
        is_paused: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.dropped = 0
        self.left = LeftOut()
        self._max_depth = max_depth
        self._max_queued = max_queued
        self._wanted = wanted
        self._is_paused = is_paused
        self._parked: dict[str, deque[_Parked]] = {}  # by origin; they still count as queued
        self._just_parked = 0
        self._fragments: Fragments = fragments
        self._seen = SeenKeys()
        self._landed: set[str] = set()
        self._depths: dict[str, int] = {}  # of the queued addresses; other entries are outdated
        self._queues: dict[int, deque[Visit]] = {}
        self._retries: dict[int, deque[Visit]] = {}  # by depth, after the rest of their level
        self._apart: dict[int, deque[Visit]] = {}  # by their rank, see `set_apart`
        self._apart_depths: Counter[int] = Counter()
        self._alone = False  # whether the current page is isolated
        self._queued = 0
        self.waiting = 0  # pages after a temporary failure, not restarted yet
        self._flying: Counter[int] = Counter()

    @property
    def known(self) -> int:
        """The number of pages that are queued or loading."""
        return self._queued + self.waiting + self.flying

    @property
    def flying(self) -> int:
        return self._flying.total()

    @property
    def is_empty(self) -> bool:
        """Whether no page is queued or loading."""
        return not self.known

    def start(self, visits: Iterable[Visit]) -> None:
        """Queue the start addresses, each once; the patterns do not apply."""
        for visit in visits:
            self._opened(visit.address)
            if self._seen.add(visit.address.key):
                self._push(visit)

    def add(self, links: Iterable[Address], depth: int) -> int:
        """Queue the links of a page at `depth`; return the number of new ones."""
        if self._max_depth == 0:
            return 0
        before = self._queued
        for given in links:
            link = given.page(self._fragments)
            self._count_route(given, depth)
            if link.key in self._seen:
                self._shorten(link, depth + 1)
                continue
            if link.key in self.left or not self._may(link, depth):
                continue
            if self._queued >= self._max_queued:
                self.dropped += 1
                continue
            self._seen.add(link.key)
            self.left.taken(link.key)
            self._push(Visit(link, depth + 1))
        return self._queued - before

    def _shorten(self, link: Address, depth: int) -> None:
        """Move a queued address up to `depth`, where a later link is a shorter path to it."""
        if self._depths.get(link.key, 0) > depth:
            self._queued -= 1
            self._push(Visit(link, depth))

    def carry(self, address: Address) -> None:
        """Mark a page that an earlier task has loaded as done."""
        self._seen.add(address.key)
        if self._depths.pop(address.key, None) is not None:
            self._queued -= 1

    def _may(self, link: Address, depth: int) -> bool:
        """Return whether a link of a page at `depth` qualifies; count a skipped one."""
        if not self._wanted(link):
            self.left.add("outside", link.key)
        elif is_repeating(link.url):
            self.left.add("repeating", link.key)
        elif depth >= self._max_depth:
            self.left.too_deep(link.key)
        else:
            return True
        return False

    def _opened(self, address: Address) -> None:
        if self._fragments == "ignore" and address.route:
            self.left.opened(address.own.key)

    def _count_route(self, link: Address, depth: int) -> None:
        """Count a link that is skipped only because of its fragment."""
        if self._fragments == "routes" or "#" not in link.url or depth >= self._max_depth:
            return
        if link.route and self._wanted(link):
            self.left.add("fragments", link.own.key)

    def land(self, address: Address, visit: Visit) -> None:
        """Mark the redirect target `address` of `visit` as visited."""
        self._opened(address)
        if self._fragments == "routes":
            address = address.own
        if address.key != visit.address.key:
            self._landed.add(address.key)
            self._seen.add(address.key)

    def take(self, *, fresh: bool = True) -> Visit | None:
        """Return the next page; None if none is available, or none yet (see `is_empty`).

        Without `fresh`, only pages that were started before are returned.
        """
        self._just_parked = 0
        if self._alone:
            return None
        visit = self._queued_visit(fresh=fresh)
        if visit is None and not self.flying:
            visit = self._take_apart()
            self._alone = visit is not None
        if visit is not None:
            self._flying[visit.depth] += 1
        return visit

    def _queued_visit(self, *, fresh: bool) -> Visit | None:
        while fresh and not self.has_more_to_park and (depth := self._next_depth()) is not None:
            if depth not in self._queues:
                break
            visit = self._popped(self._queues, depth)
            if self._depths.get(visit.address.key) != depth:
                continue  # moved up since, or carried over
            if self._park(self._queues, depth, visit):
                continue
            del self._depths[visit.address.key]
            self._queued -= 1
            if visit.address.key not in self._landed:
                return visit
        return self._retry()

    def _retry(self) -> Visit | None:
        """Return the first retry of the lowest level."""
        while self._retries:
            depth = min(self._retries)
            visit = self._popped(self._retries, depth)
            if self._park(self._retries, depth, visit):
                continue
            self.waiting -= 1
            if visit.address.key not in self._landed:
                return visit
        return None

    def _take_apart(self) -> Visit | None:
        while self._apart:
            rank = min(self._apart)
            visit = self._popped(self._apart, rank)
            _take_one(self._apart_depths, visit.depth)
            if self._park(self._apart, rank, visit):
                continue
            self.waiting -= 1
            if visit.address.key not in self._landed:
                return visit
        return None

    @property
    def has_parked(self) -> bool:
        """Whether the last `take` parked pages, so that those of greater depths may start now."""
        return self._just_parked > 0

    @property
    def has_more_to_park(self) -> bool:
        """Whether the last `take` stopped early, so as not to block the loop."""
        return self._just_parked >= PARKED_AT_ONCE

    @property
    def parked(self) -> Iterable[str]:
        """The origins whose pages wait for the end of a pause."""
        return self._parked.keys()

    def _park(self, queues: _Queues, key: int, visit: Visit) -> bool:
        """Keep a page of a paused origin until `probe` or `release`."""
        origin = visit.address.origin
        if not self._is_paused(origin):
            return False
        self._parked.setdefault(origin, deque()).append((queues, key, visit))
        self._just_parked += 1
        return True

    def probe(self, origin: str, *, fresh: bool) -> Visit | None:
        """Return the last queued page of a paused origin, which the failed ones are farthest from.

        Without one it is a page that was started before. None if no page may start now.
        """
        parked = self._parked.get(origin)
        if not parked or self._alone:
            return None
        for queues in (self._queues, self._retries, self._apart):
            if (queues is self._queues and not fresh) or (queues is self._apart and self.flying):
                continue
            for at in reversed(range(len(parked))):
                if parked[at][0] is queues and (visit := self._unparked(parked, at)) is not None:
                    return visit
        return None

    def _unparked(self, parked: deque[_Parked], at: int) -> Visit | None:
        """Start a parked page; None if it needs no visit any more."""
        queues, depth, visit = parked[at]
        del parked[at]
        key = visit.address.key
        if queues is self._queues:
            if self._depths.get(key) != depth:
                return None
            del self._depths[key]
            self._queued -= 1
        else:
            self.waiting -= 1
        if key in self._landed:
            return None
        self._alone = queues is self._apart
        self._flying[visit.depth] += 1
        return visit

    def release(self, origin: str) -> None:
        """Requeue the parked pages of an origin before the others, in their order."""
        for queues, key, visit in reversed(self._parked.pop(origin, ())):
            queues.setdefault(key, deque()).appendleft(visit)
            if queues is self._apart:
                self._apart_depths[visit.depth] += 1

    @staticmethod
    def _popped(queues: dict[int, deque[Visit]], depth: int) -> Visit:
        visit = queues[depth].popleft()
        if not queues[depth]:
            del queues[depth]
        return visit

    def done(self, visit: Visit) -> None:
        """Finish a page, successful or not, after its links were added."""
        self._alone = False
        _take_one(self._flying, visit.depth)

    def put_back(self, visit: Visit) -> None:
        """Requeue a page first in its level, because the machine slept during the load."""
        self.done(visit)
        self._queues.setdefault(visit.depth, deque()).appendleft(visit._replace(slept=True))
        self._depths[visit.address.key] = visit.depth
        self._queued += 1

    def set_apart(self, visit: Visit, error: str, rank: int = 0) -> None:
        """Isolate a page after `error`, which another page may have caused, for a second attempt.

        The lowest `rank` starts first.
        """
        self.done(visit)
        again = visit._replace(deaths=visit.deaths + 1, earlier=(*visit.earlier, error))
        self._apart.setdefault(rank, deque()).append(again)
        self._apart_depths[visit.depth] += 1
        self.waiting += 1

    def put_off(self, visit: Visit) -> None:
        """Requeue a page after the rest of its level, because of a temporary failure."""
        self.done(visit)
        self._retries.setdefault(visit.depth, deque()).append(visit)
        self.waiting += 1

    def _push(self, visit: Visit) -> None:
        self._queues.setdefault(visit.depth, deque()).append(visit)
        self._depths[visit.address.key] = visit.depth
        self._queued += 1

    def _next_depth(self) -> int | None:
        if not self._queues and not self._retries:
            return None
        depth = min((*self._queues, *self._retries))
        nearest = min((*self._flying, *self._apart_depths), default=depth)
        return depth if depth <= nearest + 1 else None


def _take_one(counted: Counter[int], depth: int) -> None:
    """Decrement the count of `depth`, and remove a key at zero."""
    counted[depth] -= 1
    if not counted[depth]:
        del counted[depth]
