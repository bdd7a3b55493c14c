"""Waits of a crawl that a host requested: host, duration and reason."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from engine.model.display import display
from engine.model.records import TaskEvent
from engine.text.catalogue import decimal, say

PHASE: Final = "wait"  # phase of the `log` events that report a wait
RETRY_AFTER: Final = "retry_after"
CRAWL_DELAY: Final = "crawl_delay"
_MESSAGES: Final = {RETRY_AFTER: "wait.retry_after", CRAWL_DELAY: "wait.crawl_delay"}
_HOST_CHARS: Final = 120
_WHOLE_FROM_S: Final = 10  # longer waits are shown without tenths
_LONGEST_S: Final = 86_400.0


class Wait(NamedTuple):
    """A wait of `seconds` from `ts` (ms since 1970); with Crawl-delay before each request."""

    host: str
    seconds: float
    reason: str
    ts: float = 0.0

    def holds(self, now_ms: float) -> bool:
        """Return whether the wait is in effect; a Crawl-delay is, to the crawl's end."""
        return self.reason == CRAWL_DELAY or self.ts <= now_ms < self.ts + self.seconds * 1000


def wait_of(event: TaskEvent) -> Wait | None:
    """Return the wait that this event reports, sanitised; None for other events."""
    data = event.data or {}
    host, seconds, reason = data.get("host"), data.get("seconds"), data.get("reason")
    if event.kind != "log" or data.get("phase") != PHASE or not isinstance(host, str):
        return None
    if not isinstance(reason, str) or reason not in _MESSAGES:
        return None
    if not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_S:
        return None
    ts = event.ts if isinstance(event.ts, int | float) and math.isfinite(event.ts) else 0
    return Wait(display(host, _HOST_CHARS), seconds, reason, ts)


def wait_words(wait: Wait) -> str:
    """Format `The answer of site.test asked to wait 30 s (Retry-After)`."""
    is_whole = wait.seconds >= _WHOLE_FROM_S or wait.seconds == int(wait.seconds)
    seconds = decimal(wait.seconds, 0 if is_whole else 1)
    return say(_MESSAGES[wait.reason], host=wait.host, seconds=seconds)
