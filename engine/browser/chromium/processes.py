"""The processes of one browser: how much memory they hold, and how they are ended.

psutil knows a process by its number and by when it began, so that nothing else is ended when
a number was given out again. Whatever looks at the whole tree takes some milliseconds:
for a thread, not for the loop.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil

_RENDERER = "--type=renderer"
_BUSY_S = 0.25  # how long is looked who is busy


class Family:
    """A browser's first process and every process below it."""

    def __init__(self, root: psutil.Process) -> None:
        self._root = root

    @classmethod
    def of(cls, pid: int) -> Family | None:
        """The family of the process with this number; None when it is gone."""
        try:
            return cls(psutil.Process(pid)) if pid else None
        except psutil.Error:
            return None

    def members(self) -> list[psutil.Process]:
        """All of them that run now, children first; nothing when the first one is gone."""
        try:
            return [*reversed(self._root.children(recursive=True)), self._root]
        except psutil.Error:
            return []

    def renderers(self) -> list[psutil.Process]:
        """Those that hold pages."""
        return [member for member in self.members() if self.is_renderer(member)]

    @staticmethod
    def is_renderer(member: psutil.Process) -> bool:
        try:
            return _RENDERER in member.cmdline()
        except psutil.Error:
            return False

    def ports(self) -> frozenset[int] | None:
        """The local ports of their TCP connections; None where the system does not tell."""
        found: set[int] = set()
        for member in self.members():
            try:
                if _RENDERER not in member.cmdline():  # those have none
                    found.update(one.laddr.port for one in member.net_connections("tcp4"))
            except psutil.NoSuchProcess:
                continue
            except psutil.Error:
                return None
        return frozenset(found) or None

    def end(self) -> None:
        """End them all at once, whatever they are doing."""
        end(self.members())

    def end_busiest(self) -> bool:
        """End the renderer that takes most of a processor; False when none is busy.

        A page that floods its browser cannot be asked for its process any more: everything
        that the browser says stands in one queue, behind the flood.
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
    """End each at once; one that is gone already is none the worse for it."""
    for process in processes:
        try:
            process.kill()  # not another one that was given its number
        except psutil.Error:
            continue


def holds(process: psutil.Process) -> int:
    """Bytes in memory, those that it shares with others included; 0 when it is gone."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def holds_alone(process: psutil.Process) -> int:
    """Bytes that its end would free: slower to tell than `holds`, and not everywhere allowed."""
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
    # On a crowded machine, or held up by what it has sent, even a busy one gets little.
    return busiest if busiest is not None and spent[busiest] > _BUSY_S * 0.1 else None


def _spent_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
