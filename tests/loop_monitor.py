"""Measurement of event loop latency and busy time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from PySide6.QtCore import QAbstractEventDispatcher, QObject, Qt, QTimer

BEAT_MS = 10


@dataclass(frozen=True, slots=True)
class Pulse:
    """Measurements since the last `take`, in milliseconds.

    `stall_ms` is the longest delay of the loop in wall time, which includes other programs.
    `busy_ms` and `busy_p99_ms` are this thread's processor time between two sleeps, maximum and
    99th percentile.
    """

    beats: int
    stall_ms: float
    busy_ms: float
    busy_p99_ms: float


class Heartbeat(QObject):
    """Timer of 10 ms on this thread's Qt loop that records its delays.

    It keeps the loop from sleeping longer, so it is for tests and benchmarks only.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._late: list[float] = []
        self._busy: list[float] = []
        self._last = self._worked = 0.0
        self._timer = QTimer(self, interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)

    def start(self) -> None:
        """Start measuring this thread's loop."""
        self._last, self._worked = time.perf_counter(), time.thread_time()
        _dispatcher().aboutToBlock.connect(self._sleep)
        self._timer.start()

    def stop(self) -> None:
        """Stop measuring; the recorded values can still be read."""
        if self._timer.isActive():
            self._timer.stop()
            _dispatcher().aboutToBlock.disconnect(self._sleep)

    def take(self) -> Pulse:
        """Return the measurements since the last call, and reset them."""
        self._beat()
        late, busy = self._late, sorted(self._busy)
        self._late, self._busy = [], []
        return Pulse(len(late), max(late), max(busy, default=0.0), percentile(busy, 0.99))

    def _beat(self) -> None:
        now = time.perf_counter()
        self._late.append(max(0.0, (now - self._last) * 1000 - BEAT_MS))
        self._last = now

    def _sleep(self) -> None:
        # Qt goes to sleep: all work since the last sleep delayed a click.
        now = time.thread_time()
        self._busy.append((now - self._worked) * 1000)
        self._worked = now


def _dispatcher() -> QAbstractEventDispatcher:
    dispatcher = QAbstractEventDispatcher.instance()
    assert dispatcher is not None, "an application has a dispatcher"
    return dispatcher


def percentile(ordered: list[float], share: float) -> float:
    """Return the value that `share` (0-1) of the sorted values do not exceed, 0 without any."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
