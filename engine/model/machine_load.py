"""The load of the machine, and the room that it has for pages.

In a container its limits count: those of the group of this process and of each group around it.
This process and its descendants count together, because its browser serves several tasks.
"""

from __future__ import annotations

import math
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from engine.model.control_groups import group_value, groups, quotas, usable_processors
from engine.model.process_memory import bytes_together

# Tabs for each page that may load at once, with those in which nothing happens: a page of which
# scripts wrote the text is idle for most of its time (540 ms of about 660). There are fewer further
# ones the more pages load at once, which slow each other down.
TABS_A_PAGE: Final = 6
MOST_TABS: Final = 24
_PAGES_AND_TABS: Final = 32  # together at most, if there are further tabs
FULL_FROM: Final = 0.95  # share of the processors in use
ROOM_S: Final = 1.0  # between two looks at the memory and the processors for further tabs
ROOMY_CPU: Final = 0.9  # share of the processors up to which further tabs load
FEWER: Final = 0.75  # of the tabs, for each look at which the processors had no room


def most_tabs(at_once: int) -> int:
    """Return how many tabs may be open where so many pages may load at once; 1 for one page."""
    if at_once == 1:
        return 1
    return max(at_once, min(TABS_A_PAGE * at_once, MOST_TABS, _PAGES_AND_TABS - at_once))


class Machine(NamedTuple):
    """The machine, or what a container may use of it.

    `cpu` and `own_cpu` (of this process and its browsers) are busy shares of its processors;
    `tab_bytes` is what one more tab takes.
    """

    cpu: float = 0.0
    own_cpu: float = 0.0
    free_bytes: float = math.inf
    total_bytes: float = math.inf
    tab_bytes: float = 0.0

    @property
    def least_bytes(self) -> float:
        """Free memory below which the number is cut; twice as much is left free by a raise."""
        return min(max(self.total_bytes / 20, 128e6), 1e9)

    @property
    def is_full(self) -> bool:
        """Whether the processors are the limit, and not by other programs' work."""
        return self.cpu >= FULL_FROM and self.own_cpu >= self.cpu / 2

    @property
    def room(self) -> int:
        """The number of further tabs that the memory has room for."""
        spare = self.free_bytes - 2 * self.least_bytes
        return MOST_TABS if math.isinf(spare) else max(0, int(spare // max(1.0, self.tab_bytes)))


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
        self.own_bytes = 0
        self.own_s: dict[psutil.Process, float] = {}  # equal by number and start time

    @classmethod
    def read(cls) -> _Used:
        used = cls(_Spent.read())
        processes = [psutil.Process()]
        with suppress(*_UNREADABLE):
            processes += processes[0].children(recursive=True)
        resident: dict[psutil.Process, int] = {}
        for process in processes:
            with suppress(*_UNREADABLE):
                spent = process.cpu_times()
                used.own_s[process] = spent.user + spent.system
                resident[process] = process.memory_info().rss
        used.own_bytes = bytes_together(resident)
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


class TabRoom:
    """The number of tabs that the machine has room for, looked at once a second.

    Without a measurement, or with busy processors, it falls.
    """

    def __init__(self) -> None:
        self.most = 0
        self._looked_s = -math.inf
        self._spent = _Spent()

    def look(self, tabs: int, now_s: float) -> None:
        """Look if it is due; `tabs` are open."""
        if now_s - self._looked_s < ROOM_S:
            return
        self._looked_s = now_s
        self.most = tabs + room_for_tabs()
        if self._is_busy():
            self.most = min(self.most, int(tabs * FEWER))

    def _is_busy(self) -> bool:
        """Return whether the processors had no room since the last call, or are not measured."""
        before = self._spent
        try:
            self._spent = _Spent.read()
        except _UNREADABLE:
            return True
        return self._spent.busy_since(before) > ROOMY_CPU


def room_for_tabs() -> int:
    """Return the number of further tabs that the memory has room for; below 0: too many."""
    try:
        total, free = _memory()
    except _UNREADABLE:
        return -MOST_TABS
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
