"""Duration of tasks for their time budget: by a monotonic clock, without sleep.

The measured duration is stored in the record with the wall time of the measurement, so that every
other process continues from there. A process measures a task from its first read; before that the
stored times count. Source: rule "time that the machine slept, and a clock that was set, do not
count against maxWallMs".
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from engine import budgets
from engine.ledger import changes, machine

DRIFT_MS: Final = 2_000  # smaller differences from the stored times are not written
_MOST: Final = 10_000  # tasks that one process remembers


class DurationMeter:
    """Measures the tasks of this process. Safe to share between threads.

    `asleep_s` is for callers with a fixed interval: a longer gap means that the process itself was
    stopped, and does not count.
    """

    def __init__(
        self, awake_s: Callable[[], float] = machine.awake_s, *, asleep_s: float = math.inf
    ) -> None:
        self._awake_s = awake_s
        self._asleep_s = asleep_s
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, float]] = {}  # (duration in ms, time of the measurement)

    def measure(self, meta: dict[str, Any], now_ms: int) -> bool:
        """Update the duration of a task in `meta` as of `now_ms`; nothing is written to disk.

        True when the stored times differ. A task without a time budget is left unchanged.
        """
        policy = meta.get("policy")
        if not isinstance(policy, Mapping) or policy.get("maxWallMs") is None:
            return False
        stored = budgets.lasted_ms(meta, now_ms)
        lasted = self._lasted_ms(str(meta.get("task_id")), stored)
        changes.engine_of(meta).update(lasted_ms=round(lasted), lasted_at=now_ms)
        return abs(stored - lasted) > DRIFT_MS

    def forget(self, task_id: str) -> None:
        """Drop a task that has ended."""
        with self._lock:
            self._seen.pop(task_id, None)

    def _lasted_ms(self, task_id: str, stored: float) -> float:
        with self._lock:
            now_s = self._awake_s()
            lasted, seen_s = self._seen.pop(task_id, (stored, now_s))
            if now_s - seen_s <= self._asleep_s:
                lasted += (now_s - seen_s) * 1_000
            self._seen[task_id] = lasted, now_s
            if len(self._seen) > _MOST:  # tasks that other processes ended, long ago
                del self._seen[next(iter(self._seen))]
            return lasted
