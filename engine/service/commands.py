"""Acting on tasks that are there: asking them to stop, waiting, ending what dead processes left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from weakref import WeakValueDictionary

from engine.budgets.envelopes import DurationMeter, Envelopes, EnvelopeState, has_budget, state_of
from engine.contracts.contract_views import RunView
from engine.contracts.forced_completion import Force
from engine.contracts.lifecycle import LinkedRuns, Runs
from engine.execution.executor import Executor
from engine.execution.force_stop import force_stop
from engine.kinds.recording.recording_stop import request_stop
from engine.ledger.machine import wall_ms
from engine.ledger.ownership import Owner, Ownership
from engine.ledger.wait import wait_terminal
from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerUnusable, TaskNotFound, TaskUnreadable
from engine.model.records import ENVELOPE, Status, TaskId, TaskRecord, Unreadable
from engine.retention.pruning import discard
from engine.service.contracts import Minding
from engine.service.maintenance import Keeper
from engine.service.stop_many import Stopped, stop_all

log = logging.getLogger(__name__)

AWAY_LOOK_S = 0.1  # how often a request to stop is tried again while its folder is away

Records = list[TaskRecord]


class Steering(Minding):
    """The part of the engine that acts on tasks; see the module."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.runs = Runs(settings.home, route=settings.route, agent_id=settings.agent_id)
        self._linked = LinkedRuns(self.runs, settings.home, settings.root)
        self._ledger.on_state_change = self._linked.follow
        shelves = (*self.goals.folders, self.runs.folder)
        self._keeper = Keeper(settings.root, settings.reap_s, self._linked, shelves)
        self._keeper.known_ended = self._known_ended
        self._keeper.runs = self.run_of
        self._linked.runs_here = self.owns
        self._keeper.settle_lost = self._settle_lost
        self._executor: Executor | None = None
        self._accepting: set[asyncio.Task[TaskRecord]] = set()  # callers may be gone
        self._lasting = DurationMeter()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def envelopes(self) -> Envelopes:
        """The envelopes of the ledger as it is open now; synchronous, for a thread."""
        guard = self.goals.completing.guards
        return Envelopes(
            self._ledger, pid=self.settings.host_pid, guard=guard, lasting=self._lasting
        )

    async def update(
        self, task_id: str, *, phase: str | None = None, note: str | None = None
    ) -> TaskRecord:
        """Change an envelope's phase, or leave a note; see `Envelopes.update`."""
        task_id = await self.ledger_id(task_id)
        return await self._changed(
            task_id, partial(self.envelopes.update, task_id, phase=phase, note=note)
        )

    async def finish(self, task_id: str, outcome: str, *, note: str | None = None) -> TaskRecord:
        """End an envelope, if its contract does not stand against it; see `Envelopes.finish`."""
        task_id = await self.ledger_id(task_id)
        return await self._changed(
            task_id, partial(self.envelopes.finish, task_id, outcome, note=note)
        )

    async def budgets(self, task_id: str) -> EnvelopeState | None:
        """How a task's budgets stand now; None for a task that has none.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        found = await self.ledger_id(task_id)
        meta = {**await self.meta(found), "task_id": found}  # the folder's name, whatever it says
        if meta.get("kind") == ENVELOPE:
            return await asyncio.to_thread(self.envelopes.state, found)
        return state_of(meta, wall_ms()) if has_budget(meta) else None

    async def by_hand(self, run_id: str) -> None:
        """Raise RunOfTask for a run that ends with its task, and so not by hand."""
        await asyncio.to_thread(self._linked.by_hand, run_id)

    async def cancel(self, task_id: str, reason: str | None = None) -> TaskRecord:
        """Ask for a stop; a task that had not begun is CANCELLED at once, an ended one unchanged.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable, LockTimeout, LedgerWriteFailed.
        """
        task_id = await self.ledger_id(task_id)
        ask = partial(self._ledger.request_cancel, task_id, reason)
        while True:
            try:
                return await self._changed(task_id, ask)
            except (TaskNotFound, LedgerUnusable) as error:
                if await asyncio.to_thread(self.is_run, task_id):
                    return await self.give_up(task_id, reason)
                await self._stop_away(TaskId(task_id), error)

    async def _stop_away(self, task_id: TaskId, error: EngineError) -> None:
        """Stop a run of this process whose folder is away; the request is written down later.

        Raises:
            EngineError: why that cannot be: `error`, or why the run was given up.
        """
        executor = self._executor
        if executor is None or not executor.owns(task_id):
            raise (executor.lost(task_id) if executor is not None else None) or error
        executor.request_stop(task_id)
        await asyncio.sleep(AWAY_LOOK_S)

    async def cancel_all(self, task_ids: Iterable[str], reason: str | None = None) -> Stopped:
        """Ask each of these to stop; one that cannot be asked does not keep the others."""
        return await stop_all(self.cancel, task_ids, reason)

    async def stop(self, task_id: str) -> TaskRecord:
        """End a recording in good order: it will be COMPLETED; see `run.stopping`.

        Raises:
            NotStoppable: the task is no recording.
            NotATaskId, TaskNotFound, TaskUnreadable, LockTimeout, LedgerWriteFailed.
        """
        task_id = await self.ledger_id(task_id)
        return await self._changed(task_id, partial(request_stop, self._ledger, task_id))

    async def force_stop(self, task_id: str) -> TaskRecord:
        """End the worker of a task that was asked to stop and does not; what it did is kept.

        Raises:
            CannotForceStop: it is no worker of ours, or still has time to stop by itself.
            NotATaskId, TaskNotFound, TaskUnreadable, LedgerReadOnly.
        """
        found = await self.ledger_id(task_id)
        entry = (await self.get(found)).entry
        if isinstance(entry, Unreadable):
            raise TaskUnreadable(task_id=found, reason=entry.reason, path=entry.path)
        await asyncio.to_thread(force_stop, self.settings.root, entry)
        await self.reap()
        self._nudge(found)
        return await self.wait(found)

    async def wait(self, task_id: str, timeout_ms: int = 60_000) -> TaskRecord:
        """The record once the task has ended.

        Raises:
            WaitTimeout: it did not end within `timeout_ms`; it goes on.
            NotATaskId, TaskNotFound, TaskRemoved, TaskUnreadable.
        """
        return await wait_terminal(
            self._ledger, await self.ledger_id(task_id), timeout_ms, self.settings.away_s
        )

    async def complete(
        self, subject: str, *, status: Status = Status.COMPLETED, force: Force | None = None
    ) -> RunView | TaskRecord:
        """End a task run, an envelope, or (by force) a running crawl with a contract.

        FAILED and CANCELLED always pass; COMPLETED has to pass the guard of its contract.

        Raises:
            BulkCompletionRefused: the guard says no; nothing changed but an event.
            CannotComplete, InvalidRunStep, TransitionError: not now, or never.
            NotAnId, TaskNotFound, and what a write can raise.
        """
        subject = await self.ledger_id(subject)  # a task run's id passes as it is
        ended = await asyncio.to_thread(self._completed, subject, status, force)
        if isinstance(ended, TaskRecord):
            return self._pass_on(ended)
        self.told_of(ended)
        return ended

    def _completed(self, subject: str, status: Status, force: Force | None) -> RunView | TaskRecord:
        completing = self.goals.completing
        if self.goals.runs.has(subject):
            return completing.run(subject, {"status": status.value}, force)

        def finish() -> TaskRecord:
            return self.envelopes.finish(subject, status.lower())

        return completing.task(subject, status, force, finish)

    async def discard(self, task_id: str, *, delete: bool = False) -> None:
        """Move an ended task's folder to the trash; with `delete` it is gone for good.

        Raises:
            TaskStays: it has not ended, or somebody still writes there.
            NoTrash, DeleteFailed, NotATaskId, TaskNotFound.
        """
        found = await self.ledger_id(task_id)
        record = (await self.get(found)).entry
        lease, ours = self._keeper.lease, record.engine if isinstance(record, TaskRecord) else None
        # What this very process ran and has let go of is written by nobody any more.
        settled = bool(lease and ours and ours.runner == lease.nonce) and not self.owns(found)
        root = self.settings.root
        await asyncio.to_thread(discard, root, found, delete=delete, settled=settled)
        self._nudge(found)

    async def reap(self) -> Records:
        """End what dead processes left behind; `unreaped` then tells what could not be ended.

        Raises:
            LedgerReadOnly: nothing can be ended there.
        """
        return await self._keeper.reap()

    async def settled(self) -> Records:
        """Orphans that were locked by others, and ended since this was asked for last."""
        return await self._keeper.settled()

    def _has_listed(self) -> None:
        self._keeper.reap_soon()

    def _orphan_seen(self) -> None:
        self._keeper.orphan_seen()

    @property
    def unreaped(self) -> tuple[EngineError, ...]:
        """Why the last reaping had to leave tasks as they are."""
        return self._keeper.failures

    @property
    def unjudged(self) -> dict[TaskId, str]:
        """Live tasks that were left alone, because their owner cannot be judged; and why."""
        return self._keeper.unjudged

    def owns(self, task_id: str) -> bool:
        """Does this very process run (or queue) the task?"""
        return self._executor is not None and self._executor.owns(TaskId(task_id))

    def run_of(self, task_id: str) -> Ownership:
        """Does a task of this process' lease run here, or has its run been given up?"""
        if self._executor is None or self._accepting:  # one of these may be on disk already
            return Ownership(Owner.HERE, "")
        return self._executor.run_of(TaskId(task_id))

    async def _settle_lost(self) -> None:
        """End what was given up because its folder was away for too long, once it is back."""
        executor = self._executor
        for task_id in tuple(executor.unsettled) if executor is not None else ():
            if executor is not None and await asyncio.to_thread(self._is_there, task_id):
                await self.reap()
                executor.unsettled.discard(task_id)
                self._nudge(task_id)

    def _is_there(self, task_id: str) -> bool:
        try:
            return isinstance(self._ledger.read(task_id), TaskRecord)
        except EngineError:
            return False

    def lost(self, task_id: str) -> EngineError | None:
        """Why a run of this process was given up without an end on disk, if it was."""
        return self._executor.lost(TaskId(task_id)) if self._executor is not None else None

    def take_lost(self) -> list[EngineError]:
        """Why runs of this process were given up since the last call, for who shows it at once."""
        return self._executor.take_lost() if self._executor is not None else []

    def is_away(self, task_id: str) -> bool:
        """Does this process run the task, and wait for its folder?"""
        return self.owns(task_id) and self.run_of(task_id).owner is Owner.AWAY

    @property
    def trouble(self) -> str:
        """What stands in the way of a run's end (a full disk, a lock); empty where nothing does."""
        return self._executor.trouble if self._executor is not None else ""

    @property
    def own_tasks(self) -> tuple[TaskId, ...]:
        """What this process has accepted and not yet ended, oldest first."""
        return self._executor.task_ids if self._executor is not None else ()

    async def join(self, task_id: str) -> None:
        """Wait until an own task has left this process."""
        if self._executor is not None:
            await self._executor.join(await self.ledger_id(task_id))

    async def _changed(self, task_id: str, change: Callable[[], TaskRecord]) -> TaskRecord:
        """Make a change on a thread, and one of each task at a time: a program that stands still
        inside a task's lock must not keep every thread busy with those who wait for it."""
        turn = self._turns.setdefault(task_id, asyncio.Lock())
        async with turn:
            return self._pass_on(await asyncio.to_thread(change))

    def _pass_on(self, record: TaskRecord) -> TaskRecord:
        """Let the task's runner and the lists look at once at what was just written."""
        task_id = TaskId(record.task_id)
        if self._executor is not None:
            if record.is_terminal:
                self._executor.drop(task_id)
            self._executor.nudge(task_id)
        self._nudge(task_id)
        return record

    async def _stop_work(self, executor: Executor, grace_s: float) -> None:
        asking = [asyncio.create_task(self._ask_to_stop(one)) for one in executor.task_ids]
        if asking:  # a lock that somebody holds must not keep the others from being asked
            await asyncio.wait(asking, timeout=grace_s)
        await executor.close(grace_s)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _ask_to_stop(self, task_id: TaskId) -> None:
        try:
            await self.cancel(task_id, "the program that ran it was closed")
        except EngineError as error:
            log.warning("task %s: could not be asked to stop: %s", task_id, error)
