"""Queue of change notices between watchdog's thread and the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.model.records import TaskId

FLUSH_S = 0.05  # one atomic write is 8-21 raw events; a reader sees them as one


@dataclass(frozen=True, slots=True)
class Changes:
    """Task ids that may have changed; with `rescan`, any task may have."""

    ids: frozenset[TaskId] = frozenset()
    rescan: bool = False


class ChangeQueue:
    """Bundle change notices into one call to the loop per bundle; the first goes out at once.

    A callback costs the loop 50-90 us under Qt, so a thousand notices must not cause a thousand
    calls.
    """

    def __init__(self) -> None:
        self.repair_needed = asyncio.Event()  # wakes the watch's own task: something needs repair
        self._lock = threading.Lock()
        self._ids: set[TaskId] = set()
        self._rescan = False
        self._scheduled = False
        self._lost = False
        self._lost_at = float("-inf")
        self._flushed_at = float("-inf")
        self._ready = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def close(self) -> None:
        with self._lock:
            self._loop = None

    def put(self, *ids: TaskId, rescan: bool = False) -> None:
        """Queue ids from any thread, and schedule one wake-up until the bundle is read."""
        with self._lock:
            self._ids.update(ids)
            self._rescan |= rescan
            if not self._scheduled:
                self._scheduled = self._call(self._release)

    def report_loss(self) -> None:
        """Record from any thread that notices were dropped, and request a rescan at once."""
        with self._lock:
            self._lost_at = time.monotonic()
            if not self._lost:
                self._lost = self._call(self.repair_needed.set)

    def wake(self) -> None:
        """Wake the watch's own task, from any thread."""
        with self._lock:
            self._call(self.repair_needed.set)

    def pop_lost(self) -> bool:
        """Return whether notices were dropped since the last call, and reset the flag."""
        with self._lock:
            lost, self._lost = self._lost, False
        return lost

    def lost_within(self, seconds: float) -> bool:
        return time.monotonic() - self._lost_at < seconds

    async def next_bundle(self, within_s: float | None) -> Changes:
        """Return all changes since the last call; empty when `within_s` passes without any."""
        try:
            async with asyncio.timeout(within_s):
                await self._ready.wait()
        except TimeoutError:
            return Changes()
        self._ready.clear()
        self._flushed_at = time.monotonic()
        with self._lock:
            bundle = Changes(frozenset(self._ids), self._rescan)
            self._ids.clear()
            self._rescan = self._scheduled = False
        return bundle

    def _call(self, call: Callable[[], object]) -> bool:
        """Schedule `call` on the loop; False when there is no running loop."""
        if self._loop is None:
            return False
        with contextlib.suppress(RuntimeError):  # the loop was closed before `stop`
            self._loop.call_soon_threadsafe(call)
            return True
        return False

    def _release(self) -> None:
        """Release the bundle on the loop: now, or when `FLUSH_S` since the last one has passed."""
        left = self._flushed_at + FLUSH_S - time.monotonic()
        if left <= 0 or self._loop is None:
            self._ready.set()
        else:
            self._loop.call_later(left, self._ready.set)
