"""What a task was refused: every place with its reason once, how often, and who hears of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

MOST = 100  # a hostile page can make up addresses without end


class Refusal(NamedTuple):
    """A place (`host:port`, or a scheme with its colon) and why it may not be reached."""

    place: str
    reason: str


class TurnedAway:
    """The refusals of one policy. Any thread may add; each listener hears of each place once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Refusal, int] = {}
        self._ears: dict[Callable[[Refusal], None], set[Refusal]] = {}

    def note(self, place: str, reason: str) -> None:
        """Once more; what is beyond the hundredth place is still refused, but not kept."""
        refusal = Refusal(place, reason)
        with self._lock:
            if refusal in self._counts or len(self._counts) < MOST:
                self._counts[refusal] = self._counts.get(refusal, 0) + 1
            for tell, told in self._ears.items():
                if refusal not in told and len(told) < MOST:
                    told.add(refusal)
                    tell(refusal)

    @contextmanager
    def heard_by(self, tell: Callable[[Refusal], None]) -> Iterator[None]:
        """Call `tell` for each place that is refused in this block; it must not wait."""
        with self._lock:
            self._ears[tell] = set()
        try:
            yield
        finally:
            with self._lock:
                del self._ears[tell]

    @property
    def counts(self) -> dict[Refusal, int]:
        """How often each of them was refused, in the order of the first time."""
        with self._lock:
            return dict(self._counts)
