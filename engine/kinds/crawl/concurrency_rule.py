"""The rule of `concurrency: auto`: how many pages of a crawl load at once.

The number rises while more pages at once load as fast as fewer, and falls when they do not: growth
by a half at first, by one after the first cut (additive increase, multiplicative decrease). Each
number that was too much is avoided for a while, longer each time, so that the number rests below
it instead of swinging around it.

A cut for slow or failing pages is a test as well. If fewer pages at once load no better, the number
was not the cause (the pages are larger, a part of the site is broken): what they show becomes the
standard, and the number may rise again.

The rule reads no clock and no machine: it gets what was measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from engine.model.machine_load import Machine

MOST: Final = 16  # as of a given number
START: Final = 3  # the default of a given number

Reason = Literal["start", "room", "slow", "failures", "refused", "memory"]
"""Why the number changed; `refused` is an answer 429, or 503 with Retry-After."""

BUSY_FROM: Final = 0.9  # below it tabs wait for the delay of a host, or for links: more do not help
RAISE_TO: Final = 1.2  # times the best page time; noise of a median is below it
CUT_FROM: Final = 1.5
SLACK_S: Final = 0.02  # page times that differ by less are alike
SLOW_S: Final = 20.0  # between the two for so long: a cut tests whether the number is the cause
FAILING_FROM: Final = 0.1  # share of failures beyond the usual one
FIRST_PAUSE_S, LAST_PAUSE_S = 60.0, 600.0  # until a number that was too much is tried again
MEMORY_S: Final = 15.0  # between two cuts for memory: unused tabs are closed meanwhile
_FEWEST_PAGES: Final = 5  # of a median


class Interval(NamedTuple):
    """Measurements of pages that began after the number last changed.

    `page_s` is the median of the `pages` that were loaded, most of them by `engine`; `failed` is
    the number of the others. `busy` is the share of the time in which the tabs had a page to load.
    """

    pages: int = 0
    page_s: float = 0.0
    failed: int = 0
    busy: float = 1.0
    engine: str = ""

    @property
    def failed_share(self) -> float:
        return self.failed / max(1, self.pages + self.failed)


class _Limit(NamedTuple):
    """The number that was too much until `until_s`, and the pause after the next such number.

    `is_certain`: the site refused it, or memory was short; else slow or failing pages suggest it.
    """

    number: int
    until_s: float = 0.0
    pause_s: float = FIRST_PAUSE_S
    is_certain: bool = False


@dataclass(frozen=True, slots=True)
class _Cut:
    """A cut whose effect the next interval shows; `reason` is `slow` or `failures`.

    `limit` is that before it.
    """

    number: int
    reason: Reason
    seen: Interval
    limit: _Limit

    def helped(self, number: int, seen: Interval) -> bool:
        """Return whether `number` pages at once load better, by half of the difference or more."""
        if seen.engine != self.seen.engine:
            return True  # not comparable
        expected = (1 + number / self.number) / 2
        if self.reason == "failures":
            return seen.failed_share <= self.seen.failed_share * expected
        return seen.page_s <= self.seen.page_s * expected


class ConcurrencyRule:
    """The number of one crawl, always from 1 to `most`."""

    def __init__(self, most: int = MOST, start: int = START) -> None:
        self.number = max(1, min(start, most))
        self.is_starting = True  # the number grows by a half
        self._most = most
        self._best_s: dict[str, float] = {}  # lowest median of page times, by engine
        self._usual_failed = 0.0
        self._limit = _Limit(most + 1)
        self._slow_since_s = math.inf
        self._cut_at_s = -math.inf
        self._freeing_until_s = 0.0
        self._tested: _Cut | None = None

    @property
    def fewest_pages(self) -> int:
        """The pages that an interval needs, before it tells something about the number."""
        return max(_FEWEST_PAGES, self.number)

    def refuse(self, began_s: float, now_s: float) -> bool:
        """Cut the number after a refusal of a page that began at `began_s`.

        The pages that began before a cut had the same cause: together they cut once. Returns
        whether the number changed.
        """
        return began_s >= self._cut_at_s and self._cut(0.5, now_s)

    def decide(self, seen: Interval, machine: Machine, now_s: float) -> Reason | None:
        """Change the number after an interval; return why, or None if it stays.

        Lack of memory cuts it at once, also after an interval with too few pages.
        """
        if machine.free_bytes < machine.least_bytes:
            if now_s < self._freeing_until_s:
                return None
            self._freeing_until_s = now_s + MEMORY_S
            return "memory" if self._cut(0.5, now_s) else None
        if seen.pages + seen.failed < self.fewest_pages or self._was_in_vain(seen):
            return None
        if seen.failed > 1 and seen.failed_share > self._usual_failed + FAILING_FROM:
            return self._test_cut(0.5, "failures", seen, now_s)
        self._usual_failed = min(self._usual_failed, seen.failed_share)
        slowdown = self._slowdown(seen)
        if slowdown > CUT_FROM or self._is_slow_for_long(slowdown, now_s):
            return self._test_cut(0.75, "slow", seen, now_s)
        if slowdown > RAISE_TO or seen.busy < BUSY_FROM:
            return None
        return "room" if self._raise(machine, now_s) else None

    def _raise(self, machine: Machine, now_s: float) -> bool:
        if self.number >= self._limit.number:
            self._limit = _Limit(self._most + 1)  # it is well now
        step = max(1, self.number // 2) if self.is_starting else 1
        to = min(self.number + min(step, machine.room), self._most)
        if now_s < self._limit.until_s:
            to = min(to, self._limit.number - 1)
        if machine.is_full or to <= self.number:
            self.is_starting = self.is_starting and not machine.is_full
            return False
        self.number = to
        return True

    def _cut(self, factor: float, now_s: float, *, is_certain: bool = True) -> bool:
        """Lower the number, and avoid the former one for a while; return whether it changed."""
        self.is_starting = False
        self._slow_since_s = math.inf
        self._cut_at_s = now_s
        self._tested = None
        if self.number == 1:
            return False
        before, self.number = self.number, max(1, int(self.number * factor))
        pause_s = self._limit.pause_s
        next_s = min(2 * pause_s, LAST_PAUSE_S)
        self._limit = _Limit(before, now_s + pause_s, next_s, is_certain)
        return True

    def _test_cut(
        self, factor: float, reason: Reason, seen: Interval, now_s: float
    ) -> Reason | None:
        before, limit = self.number, self._limit
        if self._cut(factor, now_s, is_certain=False):
            self._tested = _Cut(before, reason, seen, limit)
            return reason
        self._take_as_usual(seen)  # one page at once is not slow because of others
        if not limit.is_certain:
            self._limit = _Limit(self._most + 1)
        return None

    def _was_in_vain(self, seen: Interval) -> bool:
        """Return whether the last cut changed nothing; then what it shows is the standard.

        Where pages that fail are the new trouble, a cut for slow pages is not judged.
        """
        cut, self._tested = self._tested, None
        if cut is None or cut.helped(self.number, seen):
            return False
        if cut.reason == "slow" and seen.failed_share > self._usual_failed + FAILING_FROM:
            return False
        self._take_as_usual(seen)
        self._limit = cut.limit
        self.is_starting = not cut.limit.is_certain
        return True

    def _take_as_usual(self, seen: Interval) -> None:
        if seen.pages:
            self._best_s[seen.engine] = seen.page_s
        self._usual_failed = seen.failed_share

    def _slowdown(self, seen: Interval) -> float:
        """Return the page time as a multiple of the best one."""
        if not seen.pages:
            return 1.0
        best_s = min(seen.page_s, self._best_s.get(seen.engine, math.inf))
        self._best_s[seen.engine] = best_s
        return (seen.page_s + SLACK_S) / (best_s + SLACK_S)

    def _is_slow_for_long(self, slowdown: float, now_s: float) -> bool:
        if slowdown <= RAISE_TO:
            self._slow_since_s = math.inf
            return False
        self._slow_since_s = min(self._slow_since_s, now_s)
        return now_s - self._slow_since_s >= SLOW_S
