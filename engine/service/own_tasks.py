"""The tasks of this very process, and changes that its runner and its lists notice at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from engine.execution.executor import Executor
from engine.ledger.ownership import Owner, Ownership
from engine.model.errors import EngineError
from engine.model.records import TaskId, TaskRecord

log = logging.getLogger(__name__)


class OwnTasks:
    """The tasks that this process has accepted; without an executor there are none."""

    def __init__(self) -> None:
        self.executor: Executor | None = None
        self.accepting: set[asyncio.Task[TaskRecord]] = set()  # callers may be gone

    def owns(self, task_id: str) -> bool:
        """Does this very process run (or queue) the task?"""
        return self.executor is not None and self.executor.owns(TaskId(task_id))

    def run_of(self, task_id: str) -> Ownership:
        """The owner of a task of this process' lease: here, or its run was given up.

        From any thread.
        """
        if self.executor is None or self.accepting:  # one of these may be on disk already
            return Ownership(Owner.HERE, "")
        return self.executor.run_of(TaskId(task_id))

    def lost(self, task_id: str) -> EngineError | None:
        """Why a run of this process was given up without an end on disk, if it was."""
        return self.executor.lost(TaskId(task_id)) if self.executor is not None else None

    def take_lost(self) -> list[EngineError]:
        """Why runs of this process were given up since the last call."""
        return self.executor.take_lost() if self.executor is not None else []

    def is_away(self, task_id: str) -> bool:
        """Does this process run the task, and wait for its folder?"""
        return self.owns(task_id) and self.run_of(task_id).owner is Owner.AWAY

    @property
    def trouble(self) -> str:
        """The obstacle to a run's end (a full disk, a lock); empty without one."""
        return self.executor.trouble if self.executor is not None else ""

    @property
    def task_ids(self) -> tuple[TaskId, ...]:
        """The tasks that were accepted and have not ended yet, oldest first."""
        return self.executor.task_ids if self.executor is not None else ()

    async def join(self, task_id: TaskId) -> None:
        """Wait until a task has left this process."""
        if self.executor is not None:
            await self.executor.join(task_id)

    async def close(
        self, cancel: Callable[[str, str | None], Awaitable[TaskRecord]], grace_s: float
    ) -> None:
        """Ask what runs to stop with `cancel`, and wait for it; about `grace_s` at most."""
        if self.accepting:  # each ends its task, since the engine takes none any more
            await asyncio.wait(self.accepting, timeout=grace_s)
        if self.executor is None:
            return

        async def ask(task_id: TaskId) -> None:
            try:
                await cancel(task_id, "the program that ran it was closed")
            except EngineError as error:
                log.warning("task %s: could not be asked to stop: %s", task_id, error)

        asking = [asyncio.create_task(ask(one)) for one in self.executor.task_ids]
        if asking:  # a lock that somebody holds must not keep the others from being asked
            await asyncio.wait(asking, timeout=grace_s)
        await self.executor.close(grace_s)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


class TaskChanges:
    """Changes of records, one of each task at a time; `nudge` has the lists read a task again."""

    def __init__(self, own: OwnTasks, nudge: Callable[[TaskId], None]) -> None:
        self._own = own
        self._nudge = nudge
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def make(self, task_id: str, change: Callable[[], TaskRecord]) -> TaskRecord:
        """Make a change on a thread, one of each task at a time.

        A program that hangs inside a task's lock must not keep every thread busy.
        """
        turn = self._turns.setdefault(task_id, asyncio.Lock())
        async with turn:
            return self.publish(await asyncio.to_thread(change))

    def publish(self, record: TaskRecord) -> TaskRecord:
        """Have the task's runner and the lists read at once what was just written."""
        task_id, executor = TaskId(record.task_id), self._own.executor
        if executor is not None:
            if record.is_terminal:
                executor.drop(task_id)
            executor.nudge(task_id)
        self._nudge(task_id)
        return record
