"""The number of pages of a crawl that load at once: a given one, or found while it runs.

Decisions fall at the end of pages: at other times neither more nor fewer pages could start.
"""

from __future__ import annotations

import asyncio
import math
import os
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

import psutil

from engine.kinds.context import Context
from engine.kinds.crawl.concurrency_rule import (
    BUSY_FROM,
    MOST,
    START,
    ConcurrencyRule,
    Interval,
    Machine,
    Reason,
)
from engine.model.control_groups import group_value, groups, quotas, usable_processors
from engine.model.errors import BrowserGone, PageError, UnitTimeout
from engine.pages import fetch
from engine.pages.fetch import Fetched, IdleState, PageWorkers
from engine.text import words
from engine.text.messages import ENGLISH

AUTO: Final = "auto"
Given = int | Literal["auto"]

# Tabs for each page that may load at once, with those in which nothing happens: a page of which
# scripts wrote the text is idle for most of its time (540 ms of about 660). There are fewer further
# ones the more pages load at once, which slow each other down.
TABS_A_PAGE: Final = 6
MOST_TABS: Final = 24
# Pages that must stay idle to their end before further ones load: at first, for each page that may
# load at once, and after one that went on or was refused.
FIRST_A_PAGE, STAY_IDLE = 1, 20
ROOM_S: Final = 1.0  # between two looks at the memory and the processors for further tabs
ROOMY_CPU: Final = 0.9  # share of the processors up to which further tabs load
FEWER: Final = 0.75  # of the tabs, for each look at which the processors had no room
START_INTERVAL_S, INTERVAL_S = 0.5, 2.0
TOLD_S: Final = 5.0  # least time between an event and one about a larger number


def is_refusal(answer: Fetched | PageError) -> bool:
    """Return whether the site asks for fewer requests; a 503 without a time is a failure."""
    return answer.status == 429 or (answer.status == 503 and answer.retry_after_s is not None)


def most_tabs(given: Given) -> int:
    """Return how many tabs a crawl may have open, where `given` pages load at once.

    With one page at a time there is one tab; `auto` has as many as its largest number.
    """
    if given == AUTO:
        return MOST
    return 1 if given == 1 else min(TABS_A_PAGE * given, MOST_TABS, 2 * MOST - given)


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
        self._to_stay = FIRST_A_PAGE * (START if given == AUTO else given)
        self._most, self._room_at_s = 0, -math.inf  # workers that the machine has room for
        self._spent = _Spent()
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
        most = min(self._most, most_tabs(self.at_once), most_tabs(self._given))
        return max(self.at_once, min(self.at_once + further, most))

    @property
    def counts_idle(self) -> bool:
        """Whether more pages may load while others are idle."""
        if self._elsewhere is not None:
            return False
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
        now_s = self._ctx.monotonic()
        if now_s - self._room_at_s >= ROOM_S:
            self._room_at_s = now_s
            self._most = self.workers + room_for_tabs()
            if self._is_busy():
                self._most = min(self._most, int(self.workers * FEWER))

    def _wait_for_others(self) -> None:
        """Let further pages load only after a number of pages that begin from now on."""
        self._to_stay = max(self._to_stay, STAY_IDLE + self._idle)

    def _is_busy(self) -> bool:
        """Return whether the processors had no room since the last call, or are not measured."""
        before = self._spent
        try:
            self._spent = _Spent.read()
        except _UNREADABLE:
            return True
        return self._spent.busy_since(before) > ROOMY_CPU

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


# Load of the machine: processors, free memory, and what this process uses.
#
# This process and its descendants count together, because a crawl's browser serves other tasks of
# the same process as well. In a container its limits count: those of the group of this process and
# of each group around it.

LEAST_TAB_BYTES, MOST_TAB_BYTES = 50e6, 1e9
TAB_BYTES: Final = 100e6  # of one whose memory is not measured
# Without a measurement: the number does not rise.
BUSY_MACHINE: Final = Machine(cpu=1.0, own_cpu=1.0)
_UNREADABLE: Final = (OSError, psutil.Error)
# Limit, use and (in memory.stat) cached files of a group: of version 2, and of version 1.
_GROUP_FILES: Final = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


class MachineMeter:
    """Shares of the processors since `restart`, and the memory now. For a thread.

    Where the system does not tell, the machine counts as busy.
    """

    def __init__(self) -> None:
        self._began: _Used | None = None
        self._now: _Used | None = None
        with suppress(*_UNREADABLE):
            self._began = self._now = _Used.read()

    def restart(self) -> None:
        """Measure from the last reading on."""
        self._began = self._now

    def read(self, tabs: int) -> Machine:
        """Measure; `tabs` is the number of tabs that share the memory of this process."""
        try:
            now, (total, free) = _Used.read(), _memory()
        except _UNREADABLE:
            return BUSY_MACHINE
        began, self._now = self._began, now
        if began is None:
            self._began = now
            return BUSY_MACHINE
        spent = now.spent
        elapsed_s = max(1e-3, spent.at_s - began.spent.at_s) * spent.processors
        own_s = sum(
            max(0.0, spent_s - began.own_s.get(one, 0.0)) for one, spent_s in now.own_s.items()
        )
        own_cpu = min(1.0, own_s / elapsed_s)
        return Machine(
            cpu=max(own_cpu, spent.busy_since(began.spent)),
            own_cpu=own_cpu,
            free_bytes=free,
            total_bytes=total,
            tab_bytes=min(max(now.own_bytes / max(1, tabs), LEAST_TAB_BYTES), MOST_TAB_BYTES),
        )


class _Used:
    """Processor time, also of each own process, and memory of all own ones."""

    def __init__(self, spent: _Spent) -> None:
        self.spent = spent
        self.own_bytes = 0.0
        self.own_s: dict[psutil.Process, float] = {}  # equal by number and start time

    @classmethod
    def read(cls) -> _Used:
        used = cls(_Spent.read())
        processes = [psutil.Process()]
        with suppress(*_UNREADABLE):
            processes += processes[0].children(recursive=True)
        for process in processes:
            with suppress(*_UNREADABLE):
                spent = process.cpu_times()
                used.own_s[process] = spent.user + spent.system
                used.own_bytes += process.memory_info().rss
        return used


class _Spent:
    """Time of the processors that this process may use, and of its groups that have a quota.

    Created without a reading, it is the start of the system.
    """

    def __init__(self) -> None:
        self.at_s = self.all_s = self.busy_s = 0.0
        self.processors = 1.0  # that this process may use, or the smallest quota
        self.groups: dict[Path, tuple[float, float]] = {}  # quota in processors, and seconds used

    @classmethod
    def read(cls) -> _Spent:
        spent, usable = cls(), usable_processors()
        spent.at_s = time.monotonic()
        spent.all_s, spent.busy_s = _system_s(usable)
        spent.processors = float(len(usable))
        for group, processors in quotas().items():
            spent.processors = min(spent.processors, processors)
            with suppress(OSError, ValueError):
                used_s = group_value(group / "cpu.stat", "usage_usec") / 1e6
                spent.groups[group] = processors, used_s
        return spent

    def busy_since(self, began: _Spent) -> float:
        """Return the busy share since `began`; 1 if no time passed.

        It is the largest one of the processors and of each quota: other containers may use up the
        quota of a pod, and other programs the processors, before an own quota is used up.
        """
        all_s, elapsed_s = self.all_s - began.all_s, max(1e-3, self.at_s - began.at_s)
        if all_s <= 0:
            return 1.0
        shares = [(self.busy_s - began.busy_s) / all_s]
        for group, (processors, used_s) in self.groups.items():
            _, before_s = began.groups.get(group, (0.0, 0.0))
            shares.append((used_s - before_s) / (processors * elapsed_s))
        return min(1.0, max(shares))


def _system_s(usable: set[int]) -> tuple[float, float]:
    """Return the seconds of usable processors since the system's start, and the busy ones."""
    each = [psutil.cpu_times()]
    if len(usable) < (os.cpu_count() or 1):
        numbered = psutil.cpu_times(percpu=True)
        if max(usable) < len(numbered):  # else the system numbers them in another way
            each = [numbered[number] for number in usable]
    all_s = busy_s = 0.0
    for times in each:
        one_s = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        all_s += one_s
        busy_s += one_s - times.idle - getattr(times, "iowait", 0.0)
    return all_s, busy_s


def room_for_tabs() -> int:
    """Return the number of further tabs that the memory has room for; below 0: too many."""
    try:
        total, free = _memory()
    except _UNREADABLE:
        return -MOST
    spare = free - 2 * Machine(free_bytes=free, total_bytes=total).least_bytes
    return int(spare / TAB_BYTES)


def _memory() -> tuple[float, float]:
    """Return total and free memory in bytes, of the machine or of the narrowest group's limit."""
    found = psutil.virtual_memory()
    machine = float(found.total)
    total, free = machine, float(found.available)
    for folder, limit, usage, cached in _GROUP_FILES:
        for group in groups(folder):
            with suppress(OSError, ValueError):  # no such system, or no limit ("max")
                most = float((group / limit).read_text())
                if most < machine:
                    used = float((group / usage).read_text())
                    used -= group_value(group / "memory.stat", cached)
                    total, free = min(total, most), min(free, max(0.0, most - used))
    return total, free
