"""Commands on tasks: cancel one or many, stop, remove, force-stop, and reap those of the dead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from engine.kinds.recording.recording_kind import request_stop
from engine.ledger import machine
from engine.ledger.ownership import Owner, owner_of
from engine.ledger.routing import routed
from engine.ledger.task_import import Imported as Imported
from engine.ledger.task_import import ImportProgress as ImportProgress
from engine.ledger.task_import import import_task
from engine.model.errors import EngineError, LedgerUnusable, TaskNotFound, TaskUnreadable
from engine.model.records import (
    EngineFields,
    Status,
    TaskId,
    TaskRecord,
    Unreadable,
)
from engine.model.status import moment
from engine.service.contracts import ContractService
from engine.service.maintenance import LedgerContext, TaskChanges
from engine.service.pruning import discard
from engine.service.queries import TaskQueries
from engine.service.stop_plan import Stopped

AT_ONCE: Final = 4  # concurrent requests: each waits for a disk


async def stop_all(
    cancel: Callable[[str, str | None], Awaitable[TaskRecord]],
    task_ids: Iterable[str],
    reason: str | None,
) -> Stopped:
    """Request the stop of every task; a failed request does not prevent the others."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(task_id: str) -> TaskRecord | EngineError:
        async with gate:
            try:
                return await cancel(task_id, reason)
            except EngineError as error:
                return error

    answered = await asyncio.gather(*map(one, dict.fromkeys(task_ids)))
    return Stopped(
        tuple(each for each in answered if isinstance(each, TaskRecord)),
        tuple(each for each in answered if isinstance(each, EngineError)),
    )


AWAY_LOOK_S = 0.1  # interval between retries of a cancel request while the task's folder is away

Records = list[TaskRecord]


class TaskCommands:
    """Change tasks of the own ledger, and by qualified ids those of other ledgers."""

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
        """Request a stop; a pending task is CANCELLED at once, an ended one stays unchanged.

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
        """Stop a run of this process whose folder is away; the request is stored later.

        Raises:
            EngineError: the stop is impossible: `error`, or the reason the run was given up.
        """
        executor = self._own.executor
        if executor is None or not executor.owns(task_id):
            raise (executor.lost(task_id) if executor is not None else None) or error
        executor.request_stop(task_id)
        await asyncio.sleep(AWAY_LOOK_S)

    async def cancel_all(self, task_ids: Iterable[str], reason: str | None = None) -> Stopped:
        """Request the stop of every task; a failed request does not prevent the others."""
        return await stop_all(self.cancel, task_ids, reason)

    @routed("write")
    async def stop(self, task_id: str) -> TaskRecord:
        """End a recording as COMPLETED; see `recording_stop`.

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
        """Kill the worker of a task that ignores a stop request; its results so far are kept.

        A task that has ended meanwhile is left as it is.

        Raises:
            CannotForceStop: the worker is not ours, or may still stop by itself.
            NotATaskId, TaskNotFound, TaskUnreadable, LedgerReadOnly.
        """
        found = await self._tasks.ledger_id(task_id)
        entry = (await self._tasks.get(found)).entry
        if isinstance(entry, Unreadable):
            raise TaskUnreadable(task_id=found, reason=entry.reason, path=entry.path)
        if entry.is_terminal:
            return entry
        await asyncio.to_thread(force_stop, self._context.settings.root, entry)
        await self.reap()
        self._tasks.nudge(found)
        return await self._tasks.wait(found)

    @routed("write")
    async def discard(self, task_id: str, *, delete: bool = False) -> None:
        """Move an ended task's folder to the trash; with `delete`, delete it permanently.

        Raises:
            TaskStays: it has not ended, or a process still writes to its folder.
            NoTrash, DeleteFailed, NotATaskId, TaskNotFound.
        """
        found = await self._tasks.ledger_id(task_id)
        record = (await self._tasks.get(found)).entry
        lease, ours = (
            self._maintenance.lease,
            record.engine if isinstance(record, TaskRecord) else None,
        )
        # A task that this process ran and released has no writer any more.
        settled = bool(lease and ours and ours.runner == lease.nonce) and not self._own.owns(found)
        root = self._context.settings.root
        await asyncio.to_thread(discard, root, found, delete=delete, settled=settled)
        self._tasks.nudge(found)

    async def import_task(self, place: Path, watch: ImportProgress | None = None) -> Imported:
        """Bring the task in an exported zip file into this ledger, unchanged.

        Raises:
            ImportRefused, ImportExists, ImportStopped: see there; nothing was written.
            LedgerReadOnly, LedgerWriteFailed, LedgerUnusable: the ledger cannot be written.
        """
        watch = watch or ImportProgress()
        try:
            made = await asyncio.to_thread(import_task, self._context.ledger, place, watch)
        finally:
            watch.stop.set()  # a cancelled import leaves no thread writing
        self._tasks.nudge(TaskId(made.task_id))
        return made

    @routed()
    async def by_hand(self, run_id: str) -> None:
        """Raise RunOfTask for a run that ends with its task, and so cannot be ended manually."""
        await asyncio.to_thread(self._context.linked.by_hand, run_id)

    async def reap(self) -> Records:
        """End orphans of dead processes; `unreaped` lists those that could not be ended.

        Raises:
            LedgerReadOnly: the ledger cannot be written.
        """
        return await self._maintenance.reap()

    async def settled(self) -> Records:
        """Return orphans that others had locked and that ended since the last call."""
        return await self._maintenance.settled()

    @property
    def unreaped(self) -> tuple[EngineError, ...]:
        """The errors of the last reaping, for tasks that it left unchanged."""
        return self._maintenance.failures

    @property
    def unjudged(self) -> dict[TaskId, str]:
        """Live tasks whose owner is unknown, with the reason."""
        return self._maintenance.unjudged

    async def settle_lost(self) -> None:
        """End the runs that were given up because their folder was away, once it is back."""
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


PATIENCE_MS: Final = 10_000  # a healthy one stops within 2 s of the request
WORKER_VERB: Final = "_worker"  # of the command line, as its processes show it


class CannotForceStop(EngineError):
    """The task's process must not be ended from outside, or not yet."""

    code = "cannot_force_stop"
    title = "It cannot be stopped by force"
    sentence = "Task {task_id} cannot be stopped by force: {reason}."
    advice_text = "Ask whoever runs the program that owns it to end that program."


def force_stop(root: Path, record: TaskRecord) -> None:
    """Kill the worker that runs this task, and its children. Reaping settles the task.

    A worker (`start --detach`) owns one task and nothing else, so killing it ends only its own
    browser. A window or a server may run other tasks: those are never ended from outside.

    Raises:
        CannotForceStop: it is no worker of ours, or it still has time to stop by itself.
    """
    owner = record.engine
    if record.status != Status.RUNNING or owner is None or not owner.runner:
        raise _cannot(record, "no worker of this program runs it")
    asked = moment(record.cancel_requested_at)
    if asked is None or machine.wall_ms() - asked < PATIENCE_MS:
        raise _cannot(record, f"it has {PATIENCE_MS // 1000} s to stop by itself when it is asked")
    worker = _worker_of(root, record, owner)
    try:
        family = [worker, *worker.children(recursive=True)]
    except psutil.Error as error:
        raise _cannot(record, f"its process cannot be asked ({error})") from error
    for process in family:
        try:
            process.kill()  # psutil checks the identity, so a reused pid is safe
        except psutil.NoSuchProcess:
            continue
        except psutil.Error as error:
            raise _cannot(record, f"its process cannot be ended ({error})") from error
    psutil.wait_procs(family, timeout=5)


def has_worker(record: TaskRecord) -> bool:
    """Return whether a worker on this machine runs this task, by its process alone.

    Cheap, for an offer; `force_stop` also asks the lease.
    """
    try:
        _worker_process(record, record.engine or EngineFields())
    except CannotForceStop:
        return False
    return True


def _worker_of(root: Path, record: TaskRecord, owner: EngineFields) -> psutil.Process:
    """Find the living process that holds the task's lease, if it is a worker on this machine."""
    worker = _worker_process(record, owner)
    if owner_of(root, record).owner is not Owner.ELSEWHERE:
        raise _cannot(record, "no other process of this machine runs it")
    return worker


def _worker_process(record: TaskRecord, owner: EngineFields) -> psutil.Process:
    pid, began = machine.as_pid(record.pid), moment(owner.owner_started_at)
    if owner.host and not machine.same_host(owner.host):
        raise _cannot(record, "it runs on another machine")
    if pid is None or began is None or not machine.is_process(pid, began):
        raise _cannot(record, "its process is not to be found")
    try:
        found = psutil.Process(pid)
        words = found.cmdline()
    except psutil.Error as error:
        raise _cannot(record, f"its process cannot be asked ({error})") from error
    if WORKER_VERB not in words:
        raise _cannot(record, "the program that runs it may run others, too")
    return found


def _cannot(record: TaskRecord, reason: str) -> CannotForceStop:
    return CannotForceStop(task_id=record.task_id, reason=reason)
