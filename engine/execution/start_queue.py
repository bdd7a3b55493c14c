"""Queue in front of the slots: jobs start in order of acceptance, unless new starts are held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from engine.ledger.hold import read_hold
from engine.model.records import Hold, TaskId

LOOK_S = 0.5  # interval of looks for the end of a hold, which another program may write


@dataclass(eq=False, slots=True)
class _Waiter:
    task_id: TaskId
    queue: str | None
    may_start: asyncio.Future[None]


class StartQueue:
    """Grant `slots` turns at once, in order of acceptance; jobs of one queue get one at a time.

    The hold of the ledger in `root` is read right before every start, so that no task starts by an
    outdated state. `close_to_starts` holds the jobs of this process alone.
    """

    def __init__(self, slots: int, root: Path) -> None:
        self._free = slots
        self._root = root
        self._hold: Hold | None = None
        self._held = False
        self._waiting: list[_Waiter] = []
        self._busy_queues: set[str] = set()
        self._closed_to_starts = False
        self._look, self._looked = asyncio.Event(), asyncio.Event()
        self._pump: asyncio.Task[None] | None = None

    @property
    def is_closed_to_starts(self) -> bool:
        """Whether this process starts no waiting job."""
        return self._closed_to_starts

    @property
    def held(self) -> bool:
        """Whether a hold kept a job from its free slot at the last look."""
        return self._held

    async def looked(self) -> None:
        """Wait for the end of the next look at the waiting jobs."""
        self._looked.clear()
        self._look.set()
        await self._looked.wait()

    def close_to_starts(self, closed: bool) -> None:
        """Start no waiting job of this process, or start them again."""
        self._closed_to_starts = closed
        self.look()

    def look(self) -> None:
        """Check now whether a waiting job may start."""
        self._look.set()

    async def close(self) -> None:
        """End the own task; jobs that still wait are never started."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait({self._pump})

    @asynccontextmanager
    async def turn(self, task_id: TaskId, queue: str | None) -> AsyncIterator[None]:
        """Wait for a slot, and hold it within the block."""
        loop = asyncio.get_running_loop()
        waiter = _Waiter(task_id, queue, loop.create_future())
        self._waiting.append(waiter)
        self._look.set()
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._start_waiting(), name="start waiting tasks")
        try:
            await waiter.may_start
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif not waiter.may_start.cancelled():
                self._give_back(waiter)
            self._look.set()
            raise
        try:
            yield
        finally:
            self._give_back(waiter)

    def _give_back(self, waiter: _Waiter) -> None:
        self._free += 1
        if waiter.queue is not None:
            self._busy_queues.discard(waiter.queue)
        self._look.set()

    async def _start_waiting(self) -> None:
        """Start waiting jobs as slots become free; ends when none waits."""
        self._held = False
        while self._waiting:
            # Only a hold ends without a notice: slots and jobs of this process set the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S if self._held else None):
                    await self._look.wait()
            self._look.clear()
            self._held = await self._start_some()
            self._looked.set()

    async def _start_some(self) -> bool:
        """Start the jobs that may; return whether a hold keeps one that has a slot."""
        if not any(map(self._has_slot, self._waiting)):
            return False
        tasks = [waiter.task_id for waiter in self._waiting]
        hold = self._hold = await asyncio.to_thread(read_hold, self._root, tasks, self._hold)
        held = False
        for waiter in tuple(self._waiting):
            if waiter.may_start.done() or not self._has_slot(waiter):  # done: just cancelled
                continue
            if hold is not None and waiter.task_id not in hold.released:
                held = True
            elif not self._closed_to_starts:
                self._waiting.remove(waiter)
                self._free -= 1
                if waiter.queue is not None:
                    self._busy_queues.add(waiter.queue)
                waiter.may_start.set_result(None)
        return held

    def _has_slot(self, waiter: _Waiter) -> bool:
        return self._free > 0 and waiter.queue not in self._busy_queues
