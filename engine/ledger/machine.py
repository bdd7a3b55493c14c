"""This machine, its clocks and its processes: host, boot, and when a process started.

Every difference between platforms in telling one process from another, and one clock from
another, is here. A pid alone proves nothing: it is reused, so it always goes with its start
time; and a start time is told by a clock that may have been set.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
import time
from enum import Enum
from pathlib import Path

import psutil

PID_LIMIT = 2**31  # no system hands out more, and the kernel's type ends here
REUSE_SLACK_MS = (
    2_000  # a start time is rounded to clock ticks, and a record is written a bit later
)


class Presence(Enum):
    """What can be said of a pid."""

    GONE = "gone"
    REUSED = "reused"
    ALIVE = "alive"
    UNKNOWN = "unknown"


def wall_ms() -> int:
    """Milliseconds since 1970: for instants that are stored, never for durations."""
    return time.time_ns() // 1_000_000


def awake_s() -> float:
    """Seconds on a clock that nobody can set and that stands still while the machine sleeps."""
    if sys.platform == "win32":
        from ctypes import byref, c_ulonglong, windll

        ticks = c_ulonglong()  # of 100 ns; Python's own monotonic clock runs on in sleep there
        windll.kernel32.QueryUnbiasedInterruptTime(byref(ticks))
        return ticks.value / 1e7
    return time.monotonic()


# Linux has a clock of its own for it; on macOS this one runs on where Python's stands still.
_SLEEPLESS = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def since_boot_s() -> float:
    """Seconds on a clock that nobody can set either, but that goes on in sleep."""
    return time.monotonic() if _SLEEPLESS is None else time.clock_gettime(_SLEEPLESS)


_APART_S = time.time() - since_boot_s()  # moves only when the wall clock is set


def clock_step_ms() -> float:
    """How far the wall clock was set ahead (or back: below 0) since this process began."""
    return (time.time() - since_boot_s() - _APART_S) * 1_000


def unhurried_ms() -> int:
    """Now, for judging whether something is old enough to be ended or let go.

    `wall_ms`, but for a clock that was set ahead in this process' life: the jump itself
    makes nothing older. One that was set back stays behind, and so keeps everything longer.
    """
    return wall_ms() - round(max(0.0, clock_step_ms()))


@functools.cache
def host() -> str:
    """This machine's name, as it is written beside a task."""
    return _lasting(platform.node()) or "localhost"


def same_host(recorded: str) -> bool:
    """Is `recorded` this machine's name?"""
    return _lasting(recorded) == host()


def _lasting(name: str) -> str:
    """`name` without what changes with the network.

    macOS takes its domain (`.local`, `.lan`) from the network it is in. Its lasting id is not
    to be had without another process or a private call, and elsewhere a domain tells apart
    machines that may share a ledger.
    """
    return name.partition(".")[0].lower() if platform.system() == "Darwin" else name


@functools.cache
def boot_id() -> str:
    """Changes with every start of the machine; empty where nobody can tell."""
    if platform.system() == "Linux":
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        except OSError:
            return ""
    # Others only know the moment of the boot, which moves with the clock: to a minute, then.
    return f"boot-{round(psutil.boot_time() / 60)}"


def same_boot(recorded: str) -> bool:
    """Was `recorded` made since this machine was started? True when nobody can tell."""
    mine = boot_id()
    if not mine or not recorded or recorded == mine:
        return True
    numbers = [text.removeprefix("boot-") for text in (recorded, mine)]
    if all(number.isdecimal() for number in numbers):
        return abs(int(numbers[0]) - int(numbers[1])) <= 1
    return False


def started_at_ms(pid: int) -> float | None:
    """When the process began, in ms since 1970; None when it is gone or hidden."""
    try:
        return float(psutil.Process(pid).create_time() * 1_000)
    except (psutil.Error, OSError, ValueError):
        return None


@functools.cache
def own_start_ms(pid: int) -> float:
    """Start time of this process (`pid` is given so that a fork asks again)."""
    return started_at_ms(pid) or float(wall_ms())


def me() -> tuple[int, float]:
    """This process' pid and start time (ms since 1970)."""
    return os.getpid(), own_start_ms(os.getpid())


@functools.cache
def pid_space() -> int:
    """Which processes this one can see (a container has pids of its own); 0 where there is one."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def as_pid(value: object) -> int | None:
    """`value` as a pid that may be asked about; None for anything that cannot be one.

    0 and -1 address groups of processes, so they must never reach a system call.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value != value or value != int(min(max(value, -PID_LIMIT), PID_LIMIT)):
        return None
    return int(value) if 0 < value < PID_LIMIT else None


def presence(pid: int, since_ms: float | None) -> Presence:
    """Is the process `pid`, which was there at `since_ms`, still the same and running?

    A clock that was set between that moment and now tells one of both times wrong by just
    that step, so a step that was seen is granted to the process.
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
    """Does the very process live that had this pid and start time? None when nobody can tell."""
    found = presence(pid, started_ms)
    if found is not Presence.ALIVE:
        return None if found is Presence.UNKNOWN else False
    now_ms = started_at_ms(pid)
    return now_ms is not None and abs(now_ms - started_ms) <= _slack_ms()


def _slack_ms() -> float:
    return REUSE_SLACK_MS + abs(clock_step_ms())
