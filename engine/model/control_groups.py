"""Processors and control groups of this process: what a container lets it use.

The groups of Linux limit a process by their own limit and by that of each group around it. A
system without them, or one that hides them, has no limit here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

GROUPS: Final = Path("/sys/fs/cgroup")
OWN_GROUPS: Final = Path("/proc/self/cgroup")  # lines `number:controllers:path`
# Quota and period of a group: of version 2, and of version 1.
_QUOTA_FILES: Final = (("", ("cpu.max",)), ("cpu", ("cpu.cfs_quota_us", "cpu.cfs_period_us")))


def usable_processors() -> set[int]:
    """Return the numbers of the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def processors() -> float:
    """Return how many processors this process may use, or its smallest quota of them."""
    return min([float(len(usable_processors())), *quotas().values()])


def quotas() -> dict[Path, float]:
    """Return the groups that limit the time of processors, each with its number of them."""
    found: dict[Path, float] = {}
    for controller, files in _QUOTA_FILES:
        for group in groups(controller):
            with suppress(OSError, ValueError):  # no such system, or no quota ("max")
                words = " ".join((group / file).read_text() for file in files).split()
                quota, period = map(float, words)
                if quota > 0:  # -1 of version 1: no quota
                    found[group] = max(0.01, quota / max(1.0, period))
    return found


def groups(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's group and of the groups around it; "": of version 2."""
    root, own = GROUPS / controller, PurePosixPath()
    with suppress(OSError, ValueError):
        for line in OWN_GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                own = PurePosixPath(path.strip("/"))
    if ".." not in own.parts:  # else it is outside of what this container sees
        yield from (root / one for one in (own, *own.parents) if one.parts)
    yield root


def group_value(file: Path, name: str) -> float:
    """Return the value of `name` in a file of lines `name value`, 0 where it is missing.

    Raises:
        OSError, ValueError.
    """
    lines = (line.split() for line in file.read_text().splitlines())
    return next((float(line[1]) for line in lines if line[0] == name), 0.0)
