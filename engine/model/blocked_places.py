"""Blocked requests of a task, collected from its events: places, reasons, counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.model.display import display
from engine.model.records import TaskEvent

PHASE = "egress"  # phase of the `log` events that report a blocked request
MOST = 200  # places kept, because a hostile page can invent addresses without end
BY_ROBOTS = "Blocked by robots.txt"  # the error of such a page
_PLACE_CHARS, _REASON_CHARS = 120, 120


class Refusal(NamedTuple):
    """Blocked place (`host:port`, or a scheme with its colon) and the reason."""

    place: str
    reason: str


def refusal(event: TaskEvent) -> Refusal | None:
    """Return the blocked request that this event reports, sanitised; None for other events."""
    data = event.data or {}
    place, reason = data.get("place"), data.get("reason")
    if event.kind != "log" or data.get("phase") != PHASE or not isinstance(place, str):
        return None
    why = reason if isinstance(reason, str) else ""
    return Refusal(display(place, _PLACE_CHARS), display(why, _REASON_CHARS))


class Refusals:
    """Count blocked requests by place, in order of first occurrence."""

    def __init__(self) -> None:
        self._times: dict[Refusal, int] = {}
        self._beyond = 0

    def __len__(self) -> int:
        return len(self._times) + self._beyond

    def add(self, found: Iterable[Refusal]) -> None:
        """Add these requests to the counts."""
        for one in found:
            if one in self._times or len(self._times) < MOST:
                self._times[one] = self._times.get(one, 0) + 1
            else:
                self._beyond += 1

    @property
    def each(self) -> list[tuple[Refusal, int]]:
        return list(self._times.items())
