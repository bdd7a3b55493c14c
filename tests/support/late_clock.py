"""A clock for limits of time that count only once a test has come so far."""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.kinds.context import Clock


def late_clock(is_there: Callable[[], object]) -> Clock:
    """Return a clock whose monotonic time stands still until `is_there()` says so."""
    began_s, stood_s = time.monotonic(), list[float]()

    def monotonic() -> float:
        if not stood_s:
            if not is_there():
                return began_s
            stood_s.append(time.monotonic() - began_s)
        return time.monotonic() - stood_s[0]

    return Clock(monotonic=monotonic)
