"""Observed idle time of a lock directory: the only proof that its holder is dead.

A living peer touches its lock every 5 s (npm proper-lockfile). The date of a lock proves nothing,
because clocks are set and folders are copied. So each observation is compared with the one before,
and the time between is measured by the monotonic clock.
"""

from __future__ import annotations

import os
import threading
from typing import Final, NamedTuple

from engine.ledger.files import Folder

UNMOVED_S: Final = 8.0  # a living peer moves its lock every 5 s, later when it is busy
GAP_S: Final = 1.0  # a longer gap counts as this: the machine may have slept
_MOST: Final = 4096
_UNUSED_S: Final = 60.0

Identity = tuple[int, int]


class _Observation(NamedTuple):
    identity: Identity
    unmoved_s: float
    at_s: float


class LockWatch:
    """Observations of lock directories by path. Safe to share between threads."""

    def __init__(self) -> None:
        self._observations: dict[str, _Observation] = {}
        self._guard = threading.Lock()

    def unmoved_s(self, place: str, identity: Identity, now_s: float) -> float:
        """Record that `place` is `identity` now; return the seconds for which this was observed."""
        with self._guard:
            last = self._observations.get(place)
            if last is None or last.identity != identity:
                self._drop_old(now_s)
                self._observations[place] = _Observation(identity, 0.0, now_s)
                return 0.0
            unmoved_s = last.unmoved_s + min(max(now_s - last.at_s, 0.0), GAP_S)
            self._observations[place] = _Observation(identity, unmoved_s, now_s)
            return unmoved_s

    def forget(self, place: str) -> None:
        with self._guard:
            self._observations.pop(place, None)

    def _drop_old(self, now_s: float) -> None:
        if len(self._observations) >= _MOST:
            kept = {p: one for p, one in self._observations.items() if now_s - one.at_s < _UNUSED_S}
            self._observations = kept


WATCHED: Final = LockWatch()  # one per process: every attempt adds to the observations


def identity_of(folder: Folder, name: str) -> Identity | None:
    """Identity of a lock directory: inode and mtime, because an inode alone is soon reused."""
    try:
        facts = folder.facts(name)
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns  # a file or a link blocks the lock as well


def place_of(folder: Folder, name: str) -> str:
    return os.path.join(folder.path, name)
