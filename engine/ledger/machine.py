"""This machine, its clocks and its processes: host, boot, and process start times.

All platform differences in identifying processes and clocks are here. A pid alone proves nothing,
because it is reused: it always goes with its start time, whose clock may have been set meanwhile.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path

import psutil

PID_LIMIT = 2**31  # no system assigns larger ones, and the kernel's type ends here
REUSE_SLACK_MS = (
    2_000  # a start time is rounded to clock ticks, and a record is written a bit later
)


class Presence(Enum):
    """State of a pid."""

    GONE = "gone"
    REUSED = "reused"
    ALIVE = "alive"
    UNKNOWN = "unknown"


def wall_ms() -> int:
    """Milliseconds since 1970: for instants that are stored, never for durations."""
    return time.time_ns() // 1_000_000


def awake_s() -> float:
    """Seconds on a monotonic clock that pauses while the machine sleeps."""
    if sys.platform == "win32":
        from ctypes import byref, c_ulonglong, windll

        # In units of 100 ns; Python's own monotonic clock runs on in sleep there.
        ticks = c_ulonglong()
        windll.kernel32.QueryUnbiasedInterruptTime(byref(ticks))
        return ticks.value / 1e7
    return time.monotonic()


# Linux has CLOCK_BOOTTIME; on macOS CLOCK_MONOTONIC runs on in sleep, unlike Python's.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def since_boot_s() -> float:
    """Seconds on a monotonic clock that runs on in sleep."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


_CLOCK_OFFSET_S = time.time() - since_boot_s()  # changes only when the wall clock is set


def clock_step_ms() -> float:
    """Milliseconds by which the wall clock was set ahead since this process began (back: below
    0)."""
    return (time.time() - since_boot_s() - _CLOCK_OFFSET_S) * 1_000


def age_clock_ms() -> int:
    """Current time for age limits, without a forward jump of the clock.

    `wall_ms`, but a clock that was set ahead in this process' life makes nothing older. One that
    was set back stays behind, and so keeps everything longer.
    """
    return wall_ms() - round(max(0.0, clock_step_ms()))


@functools.cache
def host() -> str:
    """Name of this machine, as recorded in a task."""
    return _stable_name(platform.node()) or "localhost"


@functools.cache
def user() -> str:
    """Name of the user who runs this process; empty where the system does not tell."""
    try:
        return psutil.Process().username()
    except (psutil.Error, OSError, KeyError):
        return ""


def same_host(recorded: str) -> bool:
    """Return whether `recorded` is this machine's name."""
    return _stable_name(recorded) == host()


def _stable_name(name: str) -> str:
    """Return `name` without the part that changes with the network.

    macOS takes its domain (`.local`, `.lan`) from the current network. Its permanent id needs
    another process or a private call. On other systems a domain distinguishes machines that may
    share a ledger.
    """
    return name.partition(".")[0].lower() if platform.system() == "Darwin" else name


@functools.cache
def boot_id() -> str:
    """Identifier that changes with every start of the machine; empty where unavailable."""
    if platform.system() == "Linux":
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        except OSError:
            return ""
    # Other systems only have the time of the boot, which moves with the clock: to a minute, then.
    return f"boot-{round(psutil.boot_time() / 60)}"


def same_boot(recorded: str) -> bool:
    """Return whether `recorded` belongs to this boot of the machine; True when unknown."""
    current = boot_id()
    if not current or not recorded or recorded == current:
        return True
    numbers = [text.removeprefix("boot-") for text in (recorded, current)]
    if all(number.isdecimal() for number in numbers):
        return abs(int(numbers[0]) - int(numbers[1])) <= 1
    return False


def started_at_ms(pid: int) -> float | None:
    """Start time of the process, in ms since 1970; None when it is gone or hidden."""
    try:
        return float(psutil.Process(pid).create_time() * 1_000)
    except (psutil.Error, OSError, ValueError):
        return None


@functools.cache
def own_start_ms(pid: int) -> float:
    """Start time of this process (`pid` is given so that a fork does not use the cached value)."""
    return started_at_ms(pid) or float(wall_ms())


def own_process() -> tuple[int, float]:
    """Pid and start time (ms since 1970) of this process."""
    return os.getpid(), own_start_ms(os.getpid())


@functools.cache
def pid_space() -> int:
    """Id of the pid namespace (a container has its own pids); 0 on systems without namespaces."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def as_pid(value: object) -> int | None:
    """Return `value` as a pid that is safe to query; None for anything that cannot be one.

    0 and -1 address groups of processes, so they must never reach a system call.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value != value or value != int(min(max(value, -PID_LIMIT), PID_LIMIT)):
        return None
    return int(value) if 0 < value < PID_LIMIT else None


def presence(pid: int, since_ms: float | None) -> Presence:
    """Return whether process `pid`, seen at `since_ms`, is still the same and running.

    A clock set between that moment and now shifts one of the two times by exactly that step, so a
    known step is added to the tolerance.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return Presence.GONE
        started_ms = process.create_time() * 1_000
    except psutil.NoSuchProcess:
        return Presence.GONE
    except (psutil.Error, OSError, ValueError):
        return Presence.UNKNOWN
    if since_ms is not None and started_ms > since_ms + _slack_ms():
        return Presence.REUSED
    return Presence.ALIVE


def is_process(pid: int, started_ms: float) -> bool | None:
    """Return whether the process with this pid and start time is alive; None when unknown."""
    found = presence(pid, started_ms)
    if found is not Presence.ALIVE:
        return None if found is Presence.UNKNOWN else False
    now_ms = started_at_ms(pid)
    return now_ms is not None and abs(now_ms - started_ms) <= _slack_ms()


def memory_bytes() -> int:
    """Memory of this process and of the processes that it started, in bytes.

    Memory that several processes share counts once, as far as the system tells it cheaply: the
    private sizes of Linux take a hundred times as long.
    """
    own = psutil.Process()
    total = _private_bytes(own, shared=True)
    for process in own.children(recursive=True):
        with suppress(psutil.Error, OSError):  # it ends just now, or belongs to another user
            total += _private_bytes(process, shared=False)
    return total


def _private_bytes(process: psutil.Process, *, shared: bool) -> int:
    found = process.memory_info()
    return int(found.rss) - (0 if shared else int(getattr(found, "shared", 0)))


def _slack_ms() -> float:
    return REUSE_SLACK_MS + abs(clock_step_ms())
