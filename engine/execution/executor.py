"""Executor: a queue in order of acceptance in front of a few local slots.

Jobs that wait start in this order, unless new starts are held.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.execution.runner import Job, Runner
from engine.execution.task_context import TaskContext
from engine.kinds.context import Clock
from engine.kinds.spec import Tools
from engine.ledger.hold import read_hold
from engine.ledger.ledger import Ledger
from engine.ledger.ownership import AWAY_WORDS, Owner, Ownership
from engine.model.errors import EngineError, LedgerAway, ShuttingDown
from engine.model.records import Hold, TaskId

log = logging.getLogger(__name__)

LOOK_S: Final = 0.5  # interval of looks for the end of a hold, which another program may write
SETTLED_S: Final = 5.0  # for this long after its end a run counts as here


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


class Executor:
    """Runs accepted jobs in `slots` places; the others wait as PENDING in `starts`.

    Interface for another place of execution: callers need only `submit`, `nudge`, `owns` and
    `close`.
    """

    def __init__(
        self,
        ledger: Ledger,
        tools: Tools,
        clock: Clock,
        on_change: Callable[[TaskId], None],
    ) -> None:
        self._ledger = ledger
        self._tools = tools
        self._clock = clock
        self._on_change = on_change
        self.starts = StartQueue(tools.settings.slots, ledger.root)
        self._work: dict[TaskId, asyncio.Task[None]] = {}
        self._running: dict[TaskId, Runner] = {}
        self._closing = False
        self._end_times: dict[TaskId, float] = {}
        self._lost: dict[TaskId, EngineError] = {}
        self._newly_lost: list[EngineError] = []
        self.unsettled: set[TaskId] = set()  # lost, and their folders may come back
        self.trouble = ""

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def queued(self) -> int:
        return len(self._work) - len(self._running)

    @property
    def is_waiting(self) -> bool:
        """Whether any run waits for its absent folder."""
        return any(runner.is_waiting for runner in tuple(self._running.values()))

    @property
    def task_ids(self) -> tuple[TaskId, ...]:
        """Tasks that this process has accepted and that have not ended, oldest first."""
        return tuple(self._work)

    def owns(self, task_id: TaskId) -> bool:
        return task_id in self._work

    def waits(self, task_id: str) -> bool:
        """Return whether this process accepted the task and has not started it yet."""
        return task_id in self._work and task_id not in self._running

    def run_of(self, task_id: TaskId) -> Ownership:
        """Ownership of the task's run here, or the reason why it was given up. From any thread."""
        lost, runner = self._lost.get(task_id), self._running.get(task_id)
        if lost is not None:
            return Ownership(Owner.NOBODY, str(lost))
        if runner is not None and runner.is_waiting:
            return Ownership(Owner.AWAY, AWAY_WORDS)
        # Its last write may be newer than the record that the caller read.
        just_ended = time.monotonic() - self._end_times.get(task_id, -SETTLED_S) < SETTLED_S
        if task_id in self._work or just_ended:
            return Ownership(Owner.HERE, "")
        return Ownership(Owner.NOBODY, "the program that ran it has no such run any more")

    def submit(self, job: Job) -> None:
        """Queue `job`; its task is PENDING on disk already.

        Raises:
            ShuttingDown: the engine is closing.
        """
        if self._closing:
            raise ShuttingDown()
        work = asyncio.create_task(self._run(job), name=f"task {job.task_id}")
        self._work[job.task_id] = work
        work.add_done_callback(lambda ended: self._on_work_end(job.task_id, ended))

    def lost(self, task_id: TaskId) -> EngineError | None:
        """Reason why the task's run was given up without an end on disk, or None.

        It holds from the moment at which the run stops waiting for its folder.
        """
        runner = self._running.get(task_id)
        return self._lost.get(task_id) or (runner.lost if runner is not None else None)

    def take_lost(self) -> list[EngineError]:
        """Reasons of runs given up since the last call; an absent record cannot contain them."""
        found, self._newly_lost = self._newly_lost, []
        return found

    def request_stop(self, task_id: TaskId) -> None:
        """Stop a run whose folder is absent, at once; it ends when the folder is back."""
        runner = self._running.get(task_id)
        if runner is not None:
            runner.request_stop()

    def nudge(self, task_id: TaskId) -> None:
        """Notify the task's runner that its meta.json changed (a cancel request, mostly)."""
        runner = self._running.get(task_id)
        if runner is not None:
            runner.nudge()

    def drop(self, task_id: TaskId) -> None:
        """Remove a job that was cancelled before it got a slot; running ones are left alone."""
        work = self._work.get(task_id)
        if work is not None and task_id not in self._running:
            work.cancel()

    async def join(self, task_id: TaskId) -> None:
        """Wait until the task has left this process, however it ended."""
        work = self._work.get(task_id)
        if work is not None:
            await asyncio.wait({work})

    async def close(self, grace_s: float) -> None:
        """Refuse new jobs, wait `grace_s` for the current ones (asked to stop), then cancel
        them."""
        self._closing = True
        work = set(self._work.values())
        if not work:
            return
        _, late = await asyncio.wait(work, timeout=grace_s)
        for runner in tuple(self._running.values()):
            runner.give_up_waiting()
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1.0)
        await self.starts.close()

    async def _run(self, job: Job) -> None:
        async with self.starts.turn(job.task_id, job.queue):
            context = TaskContext(
                self._ledger, job.task_id, self._clock, self._on_change, job.observers, job.budgets
            )
            context.resumed = job.resumed
            context.scrub = job.kind.scrub(job.args)
            runner = Runner(self._ledger, job, self._tools, context, self._report_trouble)
            self._running[job.task_id] = runner
            showing = self._tools.browser.live_views
            showing.begin(job.task_id)
            try:
                await runner.run()
            finally:
                if runner.lost is not None:
                    self._lost[job.task_id] = runner.lost
                    self._newly_lost.append(runner.lost)
                    if isinstance(runner.lost, LedgerAway):
                        self.unsettled.add(job.task_id)
                self._running.pop(job.task_id, None)
                showing.end(job.task_id)
                self._on_change(job.task_id)

    def _on_work_end(self, task_id: TaskId, work: asyncio.Task[None]) -> None:
        now = time.monotonic()
        self._end_times = {k: v for k, v in self._end_times.items() if now - v < SETTLED_S}
        self._end_times[task_id] = now
        self._work.pop(task_id, None)
        self._on_change(task_id)
        if not work.cancelled() and work.exception() is not None:
            log.error("task %s: its runner failed", task_id, exc_info=work.exception())

    def _report_trouble(self, sentence: str) -> None:
        self.trouble = sentence
