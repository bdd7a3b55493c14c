"""Did this process, or the whole machine, stand still? Then what was late meanwhile is no failure.

A machine that sleeps lets its monotonic clock stand (Linux, macOS), and another clock of its
own go on; a process that is stopped, and a machine whose monotonic clock goes on in its sleep
(Windows), shows as a beat that comes too late.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, Self

BEAT_S: Final = 1.0
STILL_S: Final = 5.0  # later than any load makes a beat
_GOES_ON: Final = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


class Awake:
    """Beats for one block of work, on the loop's timers; `since` is then about any moment in it."""

    def __init__(self, still_s: float | None = None) -> None:
        self._still_s = STILL_S if still_s is None else still_s
        self._timer: asyncio.TimerHandle | None = None
        self._beat_at = self._slept_at = 0.0
        self._slept_s = 0.0

    def __enter__(self) -> Self:
        self._beat_at, self._slept_s = time.monotonic(), _slept_s()
        self._slept_at = self._beat_at - 1
        self._beat()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def since(self, moment_s: float) -> bool:
        """Nothing stood still since this moment of the monotonic clock."""
        self._look()
        return self._slept_at < moment_s

    def _beat(self) -> None:
        self._look()
        self._timer = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _look(self) -> None:
        now, slept = time.monotonic(), _slept_s()
        if now - self._beat_at > self._still_s or slept - self._slept_s > self._still_s:
            self._slept_at = now
        self._beat_at, self._slept_s = now, slept


def _slept_s() -> float:
    """Seconds that the machine slept so far, on a scale of their own; 0 where it does not tell."""
    if _GOES_ON is None:
        return 0.0
    return time.clock_gettime(_GOES_ON) - time.monotonic()
