"""The processes of one browser: their memory use, and their termination.

psutil identifies a process by its number and its start time, so that no other process is ended
after a number was reused. Functions that read the whole process tree take some milliseconds:
call them on a thread, not on the loop.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil

_RENDERER = "--type=renderer"
_PROFILE = "--user-data-dir="
_BUSY_S = 0.25  # sampling time for CPU use


class Family:
    """A browser's first process and all its descendants."""

    def __init__(self, root: psutil.Process) -> None:
        self._root = root

    @classmethod
    def of(cls, pid: int) -> Family | None:
        """Return the family of the process with this number; None if it is gone."""
        try:
            return cls(psutil.Process(pid)) if pid else None
        except psutil.Error:
            return None

    def members(self) -> list[psutil.Process]:
        """Return the running processes, children first; empty if the first one is gone."""
        try:
            return [*reversed(self._root.children(recursive=True)), self._root]
        except psutil.Error:
            return []

    def profile(self) -> str:
        """Return the browser's profile folder; "" if the process is gone."""
        try:
            words = self._root.cmdline()
        except psutil.Error:
            return ""
        return next(
            (word.removeprefix(_PROFILE) for word in words if word.startswith(_PROFILE)), ""
        )

    def renderers(self) -> list[psutil.Process]:
        """Return the processes that run pages."""
        return [member for member in self.members() if self.is_renderer(member)]

    @staticmethod
    def is_renderer(member: psutil.Process) -> bool:
        try:
            return _RENDERER in member.cmdline()
        except psutil.Error:
            return False

    def ports(self) -> frozenset[int] | None:
        """Return the local ports of their TCP connections; None if the system denies access."""
        found: set[int] = set()
        for member in self.members():
            try:
                if _RENDERER not in member.cmdline():  # renderers have none
                    found.update(one.laddr.port for one in member.net_connections("tcp4"))
            except psutil.NoSuchProcess:
                continue
            except psutil.Error:
                return None
        return frozenset(found) or None

    def end(self) -> None:
        """Kill all processes at once."""
        end(self.members())

    def end_busiest(self) -> bool:
        """End the renderer that uses most of a processor; return False if none is busy.

        The process of a flooding page cannot be requested from the browser: all its messages are in
        one queue, behind the flood.
        """
        busiest = _busiest(self.renderers())
        end([busiest] if busiest else [])
        return busiest is not None


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill each process; ignore those that are gone."""
    for process in processes:
        try:
            process.kill()  # checks the start time, in case the number was reused
        except psutil.Error:
            continue


def holds(process: psutil.Process) -> int:
    """Return the bytes in memory, shared ones included; 0 if it is gone."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def holds_alone(process: psutil.Process) -> int:
    """Return the bytes that its end would free: slower than `holds`, and not always permitted."""
    try:
        return int(process.memory_full_info().uss)
    except psutil.AccessDenied:
        return holds(process)
    except psutil.Error:
        return 0


def _busiest(processes: list[psutil.Process]) -> psutil.Process | None:
    before = {process: _spent_s(process) for process in processes}
    time.sleep(_BUSY_S)
    spent = {process: _spent_s(process) - began for process, began in before.items()}
    busiest = max(spent, key=spent.__getitem__, default=None)
    # On a crowded machine, or blocked by its own messages, even a busy renderer gets little CPU.
    return busiest if busiest is not None and spent[busiest] > _BUSY_S * 0.1 else None


def _spent_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
