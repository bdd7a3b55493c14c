"""What a task's browser was refused, gathered from its events: places, reasons, how often."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.model.display import display
from engine.model.records import TaskEvent

PHASE = "egress"  # of the `log` events that tell of a refusal
MOST = 200  # places that are kept: a hostile page can make up addresses without end
_PLACE_CHARS, _REASON_CHARS = 120, 120


class Refusal(NamedTuple):
    """A place (`host:port`, or a scheme with its colon) and why it may not be reached."""

    place: str
    reason: str


def refusal(event: TaskEvent) -> Refusal | None:
    """What this event says was refused, fit to be shown; None when it says something else."""
    data = event.data or {}
    place, reason = data.get("place"), data.get("reason")
    if event.kind != "log" or data.get("phase") != PHASE or not isinstance(place, str):
        return None
    why = reason if isinstance(reason, str) else ""
    return Refusal(display(place, _PLACE_CHARS), display(why, _REASON_CHARS))


class Refusals:
    """Every place once, in the order of the first time, with how often it was told."""

    def __init__(self) -> None:
        self._times: dict[Refusal, int] = {}
        self._beyond = 0

    def __len__(self) -> int:
        return len(self._times) + self._beyond

    def add(self, found: Iterable[Refusal]) -> None:
        """Count these."""
        for one in found:
            if one in self._times or len(self._times) < MOST:
                self._times[one] = self._times.get(one, 0) + 1
            else:
                self._beyond += 1

    @property
    def each(self) -> list[tuple[Refusal, int]]:
        return list(self._times.items())
