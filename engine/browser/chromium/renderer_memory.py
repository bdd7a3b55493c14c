"""Looks at what browsers hold in memory, and ends a renderer that holds too much.

Chromium lets a page take all the memory there is. Whoever works with a page learns of its
end as of a crash, and asks `Load.took_too_much` for the reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil

from engine.browser.chromium.browser_limits import Limits
from engine.browser.chromium.processes import Family, end, holds, holds_alone

TOLD_S = 3.0  # a page's crash is told within this time of its renderer's end


class Load:
    """What was last seen of one browser, and when a page of it was ended for its memory."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self.heavy = False  # a renderer holds more than half of what it may
        self._ended_at = -TOLD_S

    def took_too_much(self) -> bool:
        """Is the crash that was just told the end of a page that used too much memory?"""
        return time.monotonic() - self._ended_at < TOLD_S

    def weigh(self, family: Family, limits: Limits) -> None:
        """Look at every process of the browser; ends what is too heavy. For a thread."""
        members = family.members()
        held = {member: holds(member) for member in members}
        largest = sorted(held, key=held.__getitem__, reverse=True)
        self.total_bytes = sum(held.values())
        suspects = [one for one in largest if held[one] > limits.renderer_bytes / 2]
        renderers = [one for one in suspects if family.is_renderer(one)]
        self.heavy = bool(renderers)
        self._end(one for one in renderers if _too_heavy(one, held[one], limits))

    def _end(self, heavy: Iterable[psutil.Process]) -> None:
        for one in heavy:
            self._ended_at = time.monotonic()  # before its end: the crash is told at once
            end([one])


def _too_heavy(process: psutil.Process, held_bytes: int, limits: Limits) -> bool:
    most = limits.renderer_bytes
    return held_bytes > most and holds_alone(process) > most
