"""How long tasks last, for their time budget: by a clock that nobody sets, and without sleep.

What is measured stands in the record beside the wall time of its measuring, so that every
other process goes on from there. From its first look at a task on a process measures
itself; what was before goes by what is stored. Source: rule "time that the machine slept,
and a clock that was set, do not count against maxWallMs".
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from engine import budgets
from engine.ledger import changes, machine

DRIFT_MS: Final = 2_000  # so far the stored times may be off before it is worth a write
_MOST: Final = 10_000  # tasks that one process remembers


class Lasting:
    """Measures the tasks of this process. Safe to share between threads.

    `asleep_s` is for who looks at a steady pace: a longer silence than that means that the
    process itself was stopped, and does not count.
    """

    def __init__(
        self, awake_s: Callable[[], float] = machine.awake_s, *, asleep_s: float = math.inf
    ) -> None:
        self._awake_s = awake_s
        self._asleep_s = asleep_s
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, float]] = {}  # (ms that it lasted, when seen)

    def measure(self, meta: dict[str, Any], now_ms: int) -> bool:
        """Note in `meta` how long its task has lasted by `now_ms`; nothing is written to disk.

        True when the times that are stored told otherwise. A task without a budget of time
        is left alone.
        """
        policy = meta.get("policy")
        if not isinstance(policy, Mapping) or policy.get("maxWallMs") is None:
            return False
        told = budgets.lasted_ms(meta, now_ms)
        lasted = self._lasted_ms(str(meta.get("task_id")), told)
        changes.engine_of(meta).update(lasted_ms=round(lasted), lasted_at=now_ms)
        return abs(told - lasted) > DRIFT_MS

    def forget(self, task_id: str) -> None:
        """The task has ended."""
        with self._lock:
            self._seen.pop(task_id, None)

    def _lasted_ms(self, task_id: str, told: float) -> float:
        with self._lock:
            now_s = self._awake_s()
            lasted, seen_s = self._seen.pop(task_id, (told, now_s))
            if now_s - seen_s <= self._asleep_s:
                lasted += (now_s - seen_s) * 1_000
            self._seen[task_id] = lasted, now_s
            if len(self._seen) > _MOST:  # ended by somebody else, long ago
                del self._seen[next(iter(self._seen))]
            return lasted
