"""Which page comes next: breadth first, each address once, within scope, patterns and depth.

Depths are exact although pages finish in any order: a page is handed out only while every
page two levels above it is done, so whatever links it first is as near as anything can be.

A page that may have failed because of another page is set apart: it is taken when nothing else
can be, and nothing is taken beside it. So its second attempt holds up no other page.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

from engine.kinds.crawl.retry_policy import Failure
from engine.kinds.crawl.seen_addresses import SeenKeys
from engine.model.addresses import Address, Fragments

# Which links a crawl left alone, and why: counted, so that its result can say what it lacks.

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


SPARE = 10_000  # queued beyond max_pages, for the case that robots.txt blocks that many


class Visit(NamedTuple):
    """One address whose turn has come. `deaths` counts attempts that were set apart.

    `slept` says that the machine slept while it was loaded, and that it comes again for that.
    `lastmod` is when a sitemap says that the page changed. `tries` counts the attempts that
    failed for a moment, `failure` tells of the last of them; `due_s` is when the page may be
    tried again, on the crawl's monotonic clock. `earlier` are the errors of all attempts so far.
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
        """How often the page has been asked for, with the attempt that is being made."""
        return 1 + self.tries + self.deaths + self.slept


class Frontier:
    """The queue of a crawl. `take` and `done` (or `put_back`, `put_off`, `set_apart`) are pairs.

    Args:
        max_depth: links away from the start, which is depth 0.
        max_queued: how many addresses may wait; what exceeds it is counted in `dropped`.
        wanted: is a link inside the scope and the patterns?
        fragments: which of them stand for pages of their own.
    """

    def __init__(
        self,
        max_depth: int,
        max_queued: int,
        wanted: Callable[[Address], bool],
        fragments: Fragments = "ignore",
    ) -> None:
        self.dropped = 0
        self.left = LeftOut()
        self._max_depth = max_depth
        self._max_queued = max_queued
        self._wanted = wanted
        self._fragments: Fragments = fragments
        self._seen = SeenKeys()
        self._landed: set[str] = set()
        self._queues: dict[int, deque[Visit]] = {}
        self._retries: dict[int, deque[Visit]] = {}  # by depth, after the rest of their level
        self._apart: dict[int, deque[Visit]] = {}  # by their rank, see `set_apart`
        self._apart_depths: Counter[int] = Counter()
        self._alone = False  # is the page that is being loaded one of these?
        self._queued = 0
        self.waiting = 0  # pages that failed for a moment and have not been taken again
        self._flying: Counter[int] = Counter()

    @property
    def known(self) -> int:
        """Pages that wait or are being loaded."""
        return self._queued + self.waiting + self.flying

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
            self._opened(visit.address)
            if self._seen.add(visit.address.key):
                self._push(visit)

    def add(self, links: Iterable[Address], depth: int) -> int:
        """Queue the links of a page at `depth`; returns how many were new."""
        if self._max_depth == 0:
            return 0
        before = self._queued
        for given in links:
            link = given.page(self._fragments)
            self._count_route(given, depth)
            if link.key in self._seen or link.key in self.left or not self._may(link, depth):
                continue
            if self._queued >= self._max_queued:
                self.dropped += 1
                continue
            self._seen.add(link.key)
            self.left.taken(link.key)
            self._push(Visit(link, depth + 1))
        return self._queued - before

    def _may(self, link: Address, depth: int) -> bool:
        """May a link of a page at `depth` be followed at all? What may not is counted."""
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
        """What nobody follows only because of its fragment is counted as well."""
        if self._fragments == "routes" or "#" not in link.url or depth >= self._max_depth:
            return
        if link.route and self._wanted(link):
            self.left.add("fragments", link.own.key)

    def land(self, address: Address, visit: Visit) -> None:
        """`visit` was redirected to `address`: that one need not be visited any more."""
        self._opened(address)
        if self._fragments == "routes":
            address = address.own
        if address.key != visit.address.key:
            self._landed.add(address.key)
            self._seen.add(address.key)

    def take(self, *, fresh: bool = True) -> Visit | None:
        """The next page; None when there is none, or none yet (see `is_empty`).

        Without `fresh` only pages that were taken before and put off.
        """
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
        while fresh and (depth := self._next_depth()) is not None:
            if depth not in self._queues:
                break
            visit = self._popped(self._queues, depth)
            self._queued -= 1
            if visit.address.key not in self._landed:
                return visit
        return self._retry()

    def _retry(self) -> Visit | None:
        """The first of the pages that were put off, whose level is the nearest."""
        while self._retries:
            depth = min(self._retries)
            visit = self._popped(self._retries, depth)
            self.waiting -= 1
            if visit.address.key not in self._landed:
                return visit
        return None

    def _take_apart(self) -> Visit | None:
        while self._apart:
            visit = self._popped(self._apart, min(self._apart))
            self.waiting -= 1
            _take_one(self._apart_depths, visit.depth)
            if visit.address.key not in self._landed:
                return visit
        return None

    @staticmethod
    def _popped(queues: dict[int, deque[Visit]], depth: int) -> Visit:
        visit = queues[depth].popleft()
        if not queues[depth]:
            del queues[depth]
        return visit

    def done(self, visit: Visit) -> None:
        """The page is finished, for better or worse; its links were added before."""
        self._alone = False
        _take_one(self._flying, visit.depth)

    def put_back(self, visit: Visit) -> None:
        """The machine slept while it was loaded: it comes again, first of its level."""
        self.done(visit)
        self._queues.setdefault(visit.depth, deque()).appendleft(visit._replace(slept=True))
        self._queued += 1

    def set_apart(self, visit: Visit, error: str, rank: int = 0) -> None:
        """It failed of `error`, maybe because of another page: it comes again, alone.

        Of several, the lowest `rank` comes first.
        """
        self.done(visit)
        again = visit._replace(deaths=visit.deaths + 1, earlier=(*visit.earlier, error))
        self._apart.setdefault(rank, deque()).append(again)
        self._apart_depths[visit.depth] += 1
        self.waiting += 1

    def put_off(self, visit: Visit) -> None:
        """It failed for a moment: it comes again, after the rest of its level."""
        self.done(visit)
        self._retries.setdefault(visit.depth, deque()).append(visit)
        self.waiting += 1

    def _push(self, visit: Visit) -> None:
        self._queues.setdefault(visit.depth, deque()).append(visit)
        self._queued += 1

    def _next_depth(self) -> int | None:
        if not self._queues and not self._retries:
            return None
        depth = min((*self._queues, *self._retries))
        nearest = min((*self._flying, *self._apart_depths), default=depth)
        return depth if depth <= nearest + 1 else None


def _take_one(counted: Counter[int], depth: int) -> None:
    """One less at `depth`; a depth without any is none of the keys."""
    counted[depth] -= 1
    if not counted[depth]:
        del counted[depth]
