"""Load of the machine for `concurrency: auto`: processors, free memory, and what this process uses.

This process and its descendants count together, because a crawl's browser serves other tasks of
the same process as well. In a container its limits count: those of the group of this process and of
each group around it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

import psutil

from engine.kinds.crawl.concurrency_rule import Machine

LEAST_TAB_BYTES, MOST_TAB_BYTES = 50e6, 1e9
BUSY: Final = Machine(cpu=1.0, own_cpu=1.0)  # without a measurement: the number does not rise
_UNREADABLE: Final = (OSError, psutil.Error)
_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN_GROUPS: Final = Path("/proc/self/cgroup")  # lines `number:controllers:path`
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
            return BUSY
        began, self._now = self._began, now
        if began is None:
            self._began = now
            return BUSY
        elapsed_s = max(1e-3, now.at_s - began.at_s) * _processors()
        all_s = max(1e-3, now.all_s - began.all_s)
        own_s = sum(
            max(0.0, spent_s - began.own_s.get(one, 0.0)) for one, spent_s in now.own_s.items()
        )
        own_cpu = min(1.0, own_s / elapsed_s)
        return Machine(
            cpu=max(own_cpu, min(1.0, (now.busy_s - began.busy_s) / all_s)),
            own_cpu=own_cpu,
            free_bytes=free,
            total_bytes=total,
            tab_bytes=min(max(now.own_bytes / max(1, tabs), LEAST_TAB_BYTES), MOST_TAB_BYTES),
        )


class _Used:
    """Processor time of the machine and of each own process, and memory of all own ones."""

    def __init__(self) -> None:
        self.at_s = time.monotonic()
        self.all_s = self.busy_s = self.own_bytes = 0.0
        self.own_s: dict[psutil.Process, float] = {}  # equal by number and start time

    @classmethod
    def read(cls) -> _Used:
        used = cls()
        times = psutil.cpu_times()
        used.all_s = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        used.busy_s = used.all_s - times.idle - getattr(times, "iowait", 0.0)
        processes = [psutil.Process()]
        with suppress(*_UNREADABLE):
            processes += processes[0].children(recursive=True)
        for process in processes:
            with suppress(*_UNREADABLE):
                spent = process.cpu_times()
                used.own_s[process] = spent.user + spent.system
                used.own_bytes += process.memory_info().rss
        return used


def _memory() -> tuple[float, float]:
    """Return total and free memory in bytes, of the machine or of the narrowest group's limit."""
    found = psutil.virtual_memory()
    machine = float(found.total)
    total, free = machine, float(found.available)
    for folder, limit, usage, cached in _GROUP_FILES:
        for group in _groups(folder):
            with suppress(OSError, ValueError):  # no such system, or no limit ("max")
                most = float((group / limit).read_text())
                if most < machine:
                    used = float((group / usage).read_text()) - _stat(group, cached)
                    total, free = min(total, most), min(free, max(0.0, most - used))
    return total, free


def _processors() -> float:
    """Return the number of processors, or the smaller share of them that a group may use."""
    number = float(os.cpu_count() or 1)
    for group in _groups(""):
        with suppress(OSError, ValueError):
            quota, period = map(float, (group / "cpu.max").read_text().split())
            number = min(number, quota / max(1.0, period))
    return max(0.01, number)


def _groups(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's group and of the groups around it; "": of version 2."""
    root, own = _GROUPS / controller, PurePosixPath()
    with suppress(OSError):
        for line in _OWN_GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                own = PurePosixPath(path.strip("/"))
    if ".." not in own.parts:  # else it is outside of what this container sees
        yield from (root / one for one in (own, *own.parents) if one.parts)
    yield root


def _stat(group: Path, name: str) -> float:
    lines = (line.split() for line in (group / "memory.stat").read_text().splitlines())
    return next((float(line[1]) for line in lines if line[0] == name), 0.0)
