"""The clock of the locks, given: no machine is too slow or too quick for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.ledger import lock


class LockClock:
    """Stands in for `time` in `engine.ledger.lock`; it goes on only while somebody sleeps by it.

    `slept` are the sleeps (s), `step_s` is by how much the wall clock was set. `meanwhile`
    is called in each sleep: there is what others do.
    """

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.step_s = 0.0
        self.meanwhile: Callable[[], object] = lambda: None
        self._began = time.monotonic()
        self._apart = time.time() - time.monotonic()

    @property
    def passed_s(self) -> float:
        return sum(self.slept)

    def monotonic(self) -> float:
        return self._began + self.passed_s

    def time(self) -> float:
        return self.monotonic() + self._apart + self.step_s

    def time_ns(self) -> int:
        return round(self.time() * 1e9)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.meanwhile()

    def aged(self, place: Path, seconds: float) -> None:
        """As if `place` had been touched so long ago."""
        then = self.time() - seconds
        os.utime(place, (then, then))


def given_clock(monkeypatch: pytest.MonkeyPatch) -> LockClock:
    """The clock by which all locks of this test wait and judge."""
    clock = LockClock()
    monkeypatch.setattr(lock, "time", clock)
    return clock
