"""How long the window's loop cannot answer: its stalls and its work, measured where they happen."""

from __future__ import annotations

import time
from dataclasses import dataclass

from PySide6.QtCore import QAbstractEventDispatcher, QObject, Qt, QTimer

BEAT_MS = 10


@dataclass(frozen=True, slots=True)
class Pulse:
    """What was seen since the last `take`; all times in milliseconds.

    `stall_ms` is the longest time for which the loop did not come round (wall time, so other
    programs count too); `busy_ms` and `busy_p99_ms` are the processor time of this thread
    between two sleeps, its longest and the one that 99 in 100 do not exceed.
    """

    beats: int
    stall_ms: float
    busy_ms: float
    busy_p99_ms: float


class Heartbeat(QObject):
    """Beats every 10 ms on this thread's Qt loop and notes by how much a beat came late.

    It keeps the loop from sleeping longer than that: for tests and benches, not for users.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._late: list[float] = []
        self._busy: list[float] = []
        self._last = self._worked = 0.0
        self._timer = QTimer(self, interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)

    def start(self) -> None:
        """Begin to measure this thread's loop."""
        self._last, self._worked = time.perf_counter(), time.thread_time()
        _dispatcher().aboutToBlock.connect(self._sleep)
        self._timer.start()

    def stop(self) -> None:
        """Stop measuring; what was seen can still be taken."""
        if self._timer.isActive():
            self._timer.stop()
            _dispatcher().aboutToBlock.disconnect(self._sleep)

    def take(self) -> Pulse:
        """What was measured since the last call; the next one starts anew."""
        self._beat()
        late, busy = self._late, sorted(self._busy)
        self._late, self._busy = [], []
        return Pulse(len(late), max(late), max(busy, default=0.0), percentile(busy, 0.99))

    def _beat(self) -> None:
        now = time.perf_counter()
        self._late.append(max(0.0, (now - self._last) * 1000 - BEAT_MS))
        self._last = now

    def _sleep(self) -> None:
        # Qt goes to sleep: all work since the last sleep kept a click waiting
        now = time.thread_time()
        self._busy.append((now - self._worked) * 1000)
        self._worked = now


def _dispatcher() -> QAbstractEventDispatcher:
    dispatcher = QAbstractEventDispatcher.instance()
    assert dispatcher is not None, "an application has a dispatcher"
    return dispatcher


def percentile(ordered: list[float], share: float) -> float:
    """The value that `share` (0–1) of the sorted values do not exceed; 0 without any."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
