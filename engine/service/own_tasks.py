"""Tasks of this process, and the objects that all parts of one engine share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from engine.contracts.contract_service import Goals
from engine.contracts.lifecycle import LinkedRuns, Runs
from engine.execution.executor import Executor
from engine.ledger.ledger import Ledger
from engine.ledger.ownership import Owner, Ownership
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.records import TaskId, TaskRecord
from engine.service.maintenance import LedgerMaintenance
from engine.service.router.ledger_router import LedgerRouter

log = logging.getLogger(__name__)


class OwnTasks:
    """Tasks that this process has accepted; none without an executor."""

    def __init__(self) -> None:
        self.executor: Executor | None = None
        self.accepting: set[asyncio.Task[TaskRecord]] = set()  # callers may be cancelled

    def owns(self, task_id: str) -> bool:
        """Return whether this process runs or has queued the task."""
        return self.executor is not None and self.executor.owns(TaskId(task_id))

    def run_of(self, task_id: str) -> Ownership:
        """Return the owner of a task of this process' lease: here, or its run was given up.

        From any thread.
        """
        if self.executor is None or self.accepting:  # one of them may be on disk already
            return Ownership(Owner.HERE, "")
        return self.executor.run_of(TaskId(task_id))

    def lost(self, task_id: str) -> EngineError | None:
        """Return why a run of this process was given up without an end on disk; None otherwise."""
        return self.executor.lost(TaskId(task_id)) if self.executor is not None else None

    def take_lost(self) -> list[EngineError]:
        """Return the errors of runs of this process that were given up since the last call."""
        return self.executor.take_lost() if self.executor is not None else []

    def is_away(self, task_id: str) -> bool:
        """Return whether this process runs the task and waits for its folder."""
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
        """Stop running tasks with `cancel`, and wait at most about `grace_s` for their end."""
        if self.accepting:  # each ends its task, since the engine accepts no more
            await asyncio.wait(self.accepting, timeout=grace_s)
        if self.executor is None:
            return

        async def ask(task_id: TaskId) -> None:
            try:
                await cancel(task_id, "the program that ran it was closed")
            except EngineError as error:
                log.warning("task %s: could not be asked to stop: %s", task_id, error)

        asking = [asyncio.create_task(ask(one)) for one in self.executor.task_ids]
        if asking:  # a lock of one task must not block the requests for others
            await asyncio.wait(asking, timeout=grace_s)
        await self.executor.close(grace_s)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


class TaskChanges:
    """Serialised changes of records, one per task at a time; `nudge` refreshes the lists."""

    def __init__(self, own: OwnTasks, nudge: Callable[[TaskId], None]) -> None:
        self._own = own
        self._nudge = nudge
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def make(self, task_id: str, change: Callable[[], TaskRecord]) -> TaskRecord:
        """Make a change in a thread, one per task at a time.

        A program that hangs inside a task's lock must not occupy every thread.
        """
        turn = self._turns.setdefault(task_id, asyncio.Lock())
        async with turn:
            return self.publish(await asyncio.to_thread(change))

    def publish(self, record: TaskRecord) -> TaskRecord:
        """Notify the task's runner and the lists of a new record at once."""
        task_id, executor = TaskId(record.task_id), self._own.executor
        if executor is not None:
            if record.is_terminal:
                executor.drop(task_id)
            executor.nudge(task_id)
        self._nudge(task_id)
        return record


@dataclass(frozen=True, slots=True)
class LedgerContext:
    """One ledger with its settings, its lease, its own tasks, and the router to other ledgers."""

    settings: Settings
    maintenance: LedgerMaintenance
    own: OwnTasks
    goals: Goals
    runs: Runs
    linked: LinkedRuns
    router: LedgerRouter

    @property
    def ledger(self) -> Ledger:
        """The currently open ledger; it gets a lease when the engine opens."""
        return self.maintenance.ledger
