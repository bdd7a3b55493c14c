"""The number of pages of a crawl that load at once: a given one, or found while it runs.

Decisions fall at the end of pages: at other times neither more nor fewer pages could start.
"""

from __future__ import annotations

import asyncio
import math
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from engine.kinds.context import Context
from engine.kinds.crawl.concurrency_rule import (
    BUSY_FROM,
    MOST,
    ConcurrencyRule,
    Interval,
    Reason,
)
from engine.model import machine_load
from engine.model.errors import BrowserGone, PageError, UnitTimeout
from engine.model.machine_load import MachineMeter, TabRoom
from engine.pages import fetch
from engine.pages.fetch import Fetched, IdleState, PageWorkers
from engine.text import words
from engine.text.messages import ENGLISH

AUTO: Final = "auto"
Given = int | Literal["auto"]

# Pages that must stay idle to their end before further ones load: at first, for each page that may
# load at once, and after one that went on or was refused.
FIRST_A_PAGE, STAY_IDLE = 1, 20
START_INTERVAL_S, INTERVAL_S = 0.5, 2.0
TOLD_S: Final = 5.0  # least time between an event and one about a larger number


def is_refusal(answer: Fetched | PageError) -> bool:
    """Return whether the site asks for fewer requests; a 503 without a time is a failure."""
    return answer.status == 429 or (answer.status == 503 and answer.retry_after_s is not None)


def most_tabs(given: Given) -> int:
    """Return how many tabs a crawl may have open, where `given` pages load at once.

    `auto` has as many as its largest number.
    """
    return MOST if given == AUTO else machine_load.most_tabs(given)


class _Load:
    """One page that loads; without an outcome it does not count."""

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.fetched: Fetched | None = None


class Concurrency:
    """The number for one crawl, and the measurements that `auto` decides by."""

    def __init__(self, ctx: Context, given: Given, workers: PageWorkers | None = None) -> None:
        """Create the number of a crawl; with `workers` it is theirs, and changes with them."""
        self._elsewhere = workers
        self.workers = 0  # running ones; they end where there are too many
        self._ctx = ctx
        self._rule = None if given != AUTO else ConcurrencyRule()
        self._given = given
        self._meter: MachineMeter | None = None
        self._is_deciding = False
        self._told, self._told_at_s = 0, -math.inf
        self._risen: Reason = "start"
        self._fallen: Reason = "slow"
        self._idle = 0  # pages in which nothing happens
        self._counts_all = False  # of an automatic number, after the first refusal
        # Pages that must stay idle before further ones load; below 0: those that did since.
        self._to_stay = STAY_IDLE
        if workers is None:
            self._to_stay = FIRST_A_PAGE * self.at_once
        self._room = TabRoom()
        self._waiting = 0  # workers without a page to load
        self._restart()

    @property
    def at_once(self) -> int:
        """The number of pages that may load at once, without those that are idle."""
        if self._elsewhere is not None:
            return self._elsewhere.at_once
        if self._rule is not None:
            return self._rule.number
        assert self._given != AUTO
        return self._given

    @property
    def number(self) -> int:
        """The number of pages that may be open."""
        further = 0 if self._counts_all else min(self._idle, max(0, -self._to_stay))
        if self._elsewhere is not None:  # each worker measures its own machine
            most = self._elsewhere.most_open
        else:
            most = min(self._room.most, most_tabs(self.at_once), most_tabs(self._given))
        return max(self.at_once, min(self.at_once + further, most))

    @property
    def counts_idle(self) -> bool:
        """Whether more pages may load while others are idle."""
        return self._given == AUTO or most_tabs(self._given) > self._given

    def count_idle(self, state: IdleState) -> None:
        """Count a page in which nothing happens: another one may load, if the machine has room.

        Further ones load only after pages that stayed idle to their end: on a busy machine others
        may go on too late to be seen, and after one that went on they may do so all at once.
        """
        self._idle += 1 if state == "idle" else -1
        if state == "again":
            self._wait_for_others()
        elif state == "over":
            self._to_stay -= 1
        if self._elsewhere is None:
            self._room.look(self.workers, self._ctx.monotonic())

    def _wait_for_others(self) -> None:
        """Let further pages load only after a number of pages that begin from now on."""
        self._to_stay = max(self._to_stay, STAY_IDLE + self._idle)

    @property
    def is_exceeded(self) -> bool:
        """Whether a worker has to end, because the number was cut."""
        return self.workers > self.number

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a worker as idle: for the delay of a host, or for links."""
        self._count_waiting(1)
        try:
            yield
        finally:
            self._count_waiting(-1)

    @contextmanager
    def loading(self) -> Iterator[_Load]:
        """Measure one page; the block sets its `fetched`."""
        load = _Load(self._ctx.monotonic())
        try:
            yield load
        except (BrowserGone, PageError, UnitTimeout) as failed:
            if isinstance(failed, PageError) and is_refusal(failed):
                self._refused(load)
            elif self._counts(load) and fetch.is_passing(failed):
                self._failed += 1
            raise
        if load.fetched is not None:
            self._loaded(load, load.fetched)

    async def begin(self) -> None:
        """Begin to measure the machine, and write an event about the first number."""
        if self._rule is not None:
            self._meter = await asyncio.to_thread(MachineMeter)
            await self._tell()
            self._restart()

    async def adapt(self) -> None:
        """Change the number where it is due; to be called after each page."""
        rule, meter, now_s = self._rule, self._meter, self._ctx.monotonic()
        if rule is None or meter is None or self._is_deciding:
            return
        every_s = START_INTERVAL_S if rule.is_starting else INTERVAL_S
        if now_s - self._looked_s >= every_s:
            self._is_deciding = True
            try:
                await self._decide(rule, meter)
            finally:
                self._is_deciding = False
        await self._tell()

    async def _tell(self) -> None:
        """Write an event about a new number; about a larger one only if the last is a while ago."""
        before, now_s = self._told, self._ctx.monotonic()
        is_early = self.at_once > before and now_s - self._told_at_s < TOLD_S
        if self.at_once == before or is_early:
            return
        self._told, self._told_at_s = self.at_once, now_s
        reason = self._risen if self.at_once > before else self._fallen
        facts = {"number": self.at_once, "before": before}
        told = ENGLISH[words.CONCURRENCY_MESSAGES[reason]].format(**facts)
        note = f"Pages at once: {told}"
        await self._ctx.log(words.CONCURRENCY, note, **facts, reason=reason)

    async def _decide(self, rule: ConcurrencyRule, meter: MachineMeter) -> None:
        machine = await asyncio.to_thread(meter.read, self.workers)
        now_s = self._looked_s = self._ctx.monotonic()
        seen = self._interval(now_s)
        is_over = seen.pages + seen.failed >= rule.fewest_pages
        reason = rule.decide(seen, machine, now_s)
        if reason == "room":
            self._risen = reason
        elif reason:
            self._fallen = reason
        if reason or is_over or seen.busy < BUSY_FROM:  # at first there is one page
            meter.restart()
            self._restart()

    def _restart(self) -> None:
        """Begin an interval."""
        self._began_s = self._looked_s = self._waited_at_s = self._ctx.monotonic()
        self._waited_s = 0.0
        self._times: list[tuple[str, float]] = []
        self._failed = 0

    def _interval(self, now_s: float) -> Interval:
        self._count_waiting(0)
        engines = Counter(engine for engine, _ in self._times)
        most = max(engines, key=engines.__getitem__, default="")
        times = [seconds for engine, seconds in self._times if engine == most]
        elapsed_s = max(1e-3, now_s - self._began_s) * max(1, self.at_once)
        return Interval(
            pages=len(self._times),
            page_s=statistics.median(times) if times else 0.0,
            failed=self._failed,
            busy=max(0.0, 1 - self._waited_s / elapsed_s),
            engine=most,
        )

    def _refused(self, load: _Load) -> None:
        """Cut the number at once.

        All tabs have made the requests, so from then on an automatic number is that of all tabs.
        """
        self._wait_for_others()
        if self._rule is not None and not self._counts_all:
            self._counts_all = True
            # The event about the cut names the tabs that there were.
            self._told = self._rule.number = min(MOST, max(self._rule.number, self.workers))
        if self._rule is not None and self._rule.refuse(load.began_s, self._ctx.monotonic()):
            self._fallen = "refused"
            self._restart()

    def _loaded(self, load: _Load, fetched: Fetched) -> None:
        if is_refusal(fetched):
            self._refused(load)
        elif not self._counts(load):
            return
        elif fetch.passing_failure(fetched) is not None:
            self._failed += 1
        elif 200 <= fetched.status < 300:  # an error may be quicker than a page
            self._times.append((fetched.engine, self._ctx.monotonic() - load.began_s))

    def _counts(self, load: _Load) -> bool:
        """Return whether a page began with the present number."""
        return load.began_s >= self._began_s

    def _count_waiting(self, change: int) -> None:
        now_s = self._ctx.monotonic()
        self._waited_s += self._waiting * (now_s - self._waited_at_s)
        self._waiting += change
        self._waited_at_s = now_s
