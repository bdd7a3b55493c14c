"""Commands on tasks: ask them to stop, remove them, end what dead processes left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from engine.execution.force_stop import force_stop
from engine.kinds.recording.recording_stop import request_stop
from engine.ledger.routing import routed
from engine.model.errors import EngineError, LedgerUnusable, TaskNotFound, TaskUnreadable
from engine.model.records import TaskId, TaskRecord, Unreadable
from engine.retention.pruning import discard
from engine.service.contracts import ContractService
from engine.service.ledger_context import LedgerContext
from engine.service.own_tasks import TaskChanges
from engine.service.queries import TaskQueries
from engine.service.stop_many import Stopped, stop_all

AWAY_LOOK_S = 0.1  # how often a request to stop is tried again while its folder is away

Records = list[TaskRecord]


class TaskCommands:
    """Change tasks of the own ledger, and by qualified ids those of the others."""

    part_name = "commands"

    def __init__(
        self,
        context: LedgerContext,
        tasks: TaskQueries,
        contracts: ContractService,
        changes: TaskChanges,
    ) -> None:
        self.router = context.router
        self._context = context
        self._maintenance = context.maintenance
        self._own = context.own
        self._tasks = tasks
        self._contracts = contracts
        self._changes = changes

    @routed("write")
    async def cancel(self, task_id: str, reason: str | None = None) -> TaskRecord:
        """Ask for a stop; a task that had not begun is CANCELLED at once, an ended one unchanged.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable, LockTimeout, LedgerWriteFailed.
        """
        task_id = await self._tasks.ledger_id(task_id)
        ask = partial(self._context.ledger.request_cancel, task_id, reason)
        while True:
            try:
                return await self._changes.make(task_id, ask)
            except (TaskNotFound, LedgerUnusable) as error:
                if await asyncio.to_thread(self._tasks.is_run, task_id):
                    return await self._contracts.give_up(task_id, reason)
                await self._stop_away(TaskId(task_id), error)

    async def _stop_away(self, task_id: TaskId, error: EngineError) -> None:
        """Stop a run of this process whose folder is away; the request is written down later.

        Raises:
            EngineError: why that cannot be: `error`, or why the run was given up.
        """
        executor = self._own.executor
        if executor is None or not executor.owns(task_id):
            raise (executor.lost(task_id) if executor is not None else None) or error
        executor.request_stop(task_id)
        await asyncio.sleep(AWAY_LOOK_S)

    async def cancel_all(self, task_ids: Iterable[str], reason: str | None = None) -> Stopped:
        """Ask each of these to stop; one that cannot be asked does not keep the others."""
        return await stop_all(self.cancel, task_ids, reason)

    @routed("write")
    async def stop(self, task_id: str) -> TaskRecord:
        """End a recording in good order: it will be COMPLETED; see `recording_stop`.

        Raises:
            NotStoppable: the task is no recording.
            NotATaskId, TaskNotFound, TaskUnreadable, LockTimeout, LedgerWriteFailed.
        """
        task_id = await self._tasks.ledger_id(task_id)
        return await self._changes.make(
            task_id, partial(request_stop, self._context.ledger, task_id)
        )

    @routed("own")
    async def force_stop(self, task_id: str) -> TaskRecord:
        """End the worker of a task that was asked to stop and does not; what it did is kept.

        Raises:
            CannotForceStop: it is no worker of ours, or still has time to stop by itself.
            NotATaskId, TaskNotFound, TaskUnreadable, LedgerReadOnly.
        """
        found = await self._tasks.ledger_id(task_id)
        entry = (await self._tasks.get(found)).entry
        if isinstance(entry, Unreadable):
            raise TaskUnreadable(task_id=found, reason=entry.reason, path=entry.path)
        await asyncio.to_thread(force_stop, self._context.settings.root, entry)
        await self.reap()
        self._tasks.nudge(found)
        return await self._tasks.wait(found)

    @routed("write")
    async def discard(self, task_id: str, *, delete: bool = False) -> None:
        """Move an ended task's folder to the trash; with `delete` it is gone for good.

        Raises:
            TaskStays: it has not ended, or somebody still writes there.
            NoTrash, DeleteFailed, NotATaskId, TaskNotFound.
        """
        found = await self._tasks.ledger_id(task_id)
        record = (await self._tasks.get(found)).entry
        lease, ours = (
            self._maintenance.lease,
            record.engine if isinstance(record, TaskRecord) else None,
        )
        # What this very process ran and has let go of is written by nobody any more.
        settled = bool(lease and ours and ours.runner == lease.nonce) and not self._own.owns(found)
        root = self._context.settings.root
        await asyncio.to_thread(discard, root, found, delete=delete, settled=settled)
        self._tasks.nudge(found)

    @routed()
    async def by_hand(self, run_id: str) -> None:
        """Raise RunOfTask for a run that ends with its task, and so not by hand."""
        await asyncio.to_thread(self._context.linked.by_hand, run_id)

    async def reap(self) -> Records:
        """End what dead processes left behind; `unreaped` then tells what could not be ended.

        Raises:
            LedgerReadOnly: nothing can be ended there.
        """
        return await self._maintenance.reap()

    async def settled(self) -> Records:
        """Orphans that were locked by others, and ended since this was asked for last."""
        return await self._maintenance.settled()

    @property
    def unreaped(self) -> tuple[EngineError, ...]:
        """Why the last reaping had to leave tasks as they are."""
        return self._maintenance.failures

    @property
    def unjudged(self) -> dict[TaskId, str]:
        """Live tasks that were left alone, because their owner cannot be judged; and why."""
        return self._maintenance.unjudged

    async def settle_lost(self) -> None:
        """End what was given up because its folder was away for too long, once it is back."""
        executor = self._own.executor
        for task_id in tuple(executor.unsettled) if executor is not None else ():
            if executor is not None and await asyncio.to_thread(self._is_there, task_id):
                await self.reap()
                executor.unsettled.discard(task_id)
                self._tasks.nudge(task_id)

    def _is_there(self, task_id: str) -> bool:
        try:
            return isinstance(self._context.ledger.read(task_id), TaskRecord)
        except EngineError:
            return False
