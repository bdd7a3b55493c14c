"""Speed of a task from its finished units: rate, end time and stall limit."""

from __future__ import annotations

import math
from collections import deque
from statistics import median

RATE_WINDOW_S = 30.0
ETA_MIN_UNITS = 5
ETA_MIN_MS = 10_000
STALL_MIN_MS = 30_000
STALL_UNITS = 5
_KEPT_UNITS = 15


class Pace:
    """Speed of one live task. Times are ms since 1970, `rate` is units per second."""

    __slots__ = (
        *("_first_at", "_first_done", "_seen_at", "_done", "_unit_ms"),
        *("_rate", "_summed", "_known"),
    )

    def __init__(self, started_at: float | None = None) -> None:
        self._first_at = self._seen_at = started_at
        self._first_done = self._done = 0
        self._rate: float | None = None
        self._summed = self._known = 0.0
        self._unit_ms: deque[float] = deque(maxlen=_KEPT_UNITS)

    def seen(self, done: int, at_ms: float) -> None:
        """Record that `done` units were finished at `at_ms`; out-of-order reports are ignored."""
        if self._seen_at is None or self._first_at is None or done < self._done:
            self._first_at = self._seen_at = at_ms
            self._first_done = self._done = done
            self._rate, self._summed, self._known = None, 0.0, 0.0
            return
        passed_ms = at_ms - self._seen_at
        if done == self._done or passed_ms <= 0:
            return
        new = done - self._done
        self._unit_ms.append(passed_ms / new)
        self._blend(new * 1000 / passed_ms, passed_ms / 1000)
        self._done, self._seen_at = done, at_ms

    def _blend(self, latest: float, over_s: float) -> None:
        """Average the rate with exponential weights by time, so bursts and gaps count by duration.

        The weights are summed, so a fast first unit counts only for its own time.
        """
        weight = -math.expm1(-over_s / RATE_WINDOW_S)
        self._summed += weight * (latest - self._summed)
        self._known += weight * (1 - self._known)
        self._rate = self._summed / self._known

    @property
    def rate(self) -> float | None:
        """Units per second; None until a unit has finished."""
        return self._rate

    @property
    def stall_after_ms(self) -> float:
        """Stall limit in ms: 30 s, or five times the median unit."""
        usual = median(self._unit_ms) if self._unit_ms else 0.0
        return max(STALL_MIN_MS, STALL_UNITS * usual)

    def ends_at(self, total: int | None) -> float | None:
        """Estimate the time of the last unit's end; None while there is too little data."""
        if not self._rate or total is None or total <= self._done:
            return None
        if self._seen_at is None or self._first_at is None:
            return None
        enough = self._done - self._first_done >= ETA_MIN_UNITS
        if not enough or self._seen_at - self._first_at < ETA_MIN_MS:
            return None
        return self._seen_at + (total - self._done) * 1000 / self._rate
