"""Blocked requests of a task: each place with its reason and count, and subscribers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

MOST = 100  # a hostile page can invent addresses without end


class Refusal(NamedTuple):
    """A blocked place (`host:port`, or a scheme with its colon) and the reason."""

    place: str
    reason: str


class BlockedRequests:
    """Thread-safe counts of one policy's refusals; each listener gets each place once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Refusal, int] = {}
        self._listeners: dict[Callable[[Refusal], None], set[Refusal]] = {}

    def note(self, place: str, reason: str) -> None:
        """Count a refusal; beyond the hundredth place it is not stored."""
        refusal = Refusal(place, reason)
        with self._lock:
            if refusal in self._counts or len(self._counts) < MOST:
                self._counts[refusal] = self._counts.get(refusal, 0) + 1
            for listener, notified in self._listeners.items():
                if refusal not in notified and len(notified) < MOST:
                    notified.add(refusal)
                    listener(refusal)

    @contextmanager
    def subscribed(self, listener: Callable[[Refusal], None]) -> Iterator[None]:
        """Call `listener` for each place blocked meanwhile; it must not wait."""
        with self._lock:
            self._listeners[listener] = set()
        try:
            yield
        finally:
            with self._lock:
                del self._listeners[listener]

    @property
    def counts(self) -> dict[Refusal, int]:
        """Number of refusals of each place, in the order of the first one."""
        with self._lock:
            return dict(self._counts)
