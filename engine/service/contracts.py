"""Task runs beside the tasks: live rows, what completing meets, and letting one go on or go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from functools import partial
from pathlib import Path

from engine.contracts import task_run_folders
from engine.contracts.bulk_progress import Guard
from engine.contracts.completing import force_of
from engine.contracts.contract_service import Goals
from engine.contracts.contract_views import ContractView, RunView
from engine.contracts.forced_completion import Force
from engine.contracts.forcing import Prospect, whoami
from engine.contracts.task_run_rows import record_of
from engine.ledger.reader import LedgerLook
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.records import Status, TaskId, TaskRecord
from engine.service.contract_feed import GoalFeed
from engine.service.feed import Batch
from engine.service.queries import Looking


class Minding(Looking):
    """The part of the engine that minds goals: contracts and task runs; see the module."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.root)
        self.settings = settings
        self.goals = Goals(settings.home, lambda: self._ledger)
        self._goal_feeds: set[GoalFeed] = set()

    async def run_changes(self) -> AsyncGenerator[Batch, None]:
        """The task runs as live rows, for a list that shows them beside the tasks."""
        feed = GoalFeed(self.goals.runs, self.settings.home / task_run_folders.FOLDER)
        self._goal_feeds.add(feed)
        try:
            async with aclosing(feed.batches()) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self._goal_feeds.discard(feed)
            await feed.close()

    async def resume(self, run_id: str, reason: str) -> TaskRecord:
        """Let a task run go on that waits for a person; `reason` says what has changed.

        Raises:
            InvalidArguments, InvalidRunStep, NotAnId, TaskRunNotFound, and what a write can raise.
        """
        given = {"status": "RUNNING", "resume_reason": reason}
        return self.told_of(await asyncio.to_thread(self.goals.runs.update, run_id, given))

    async def give_up(self, run_id: str, reason: str | None = None) -> TaskRecord:
        """End a task run as CANCELLED; its tasks go on. `reason` stands in its events.

        Raises:
            InvalidRunStep: it has ended already.
            NotAnId, TaskRunNotFound, and what a write can raise.
        """
        end = partial(self.goals.completing.run, reason=reason)
        return self.told_of(await asyncio.to_thread(end, run_id, {"status": Status.CANCELLED}))

    async def prospect(self, subject: str, *, named: bool = False) -> Prospect:
        """What completing this would meet; `named` also lists what is missing. Writes nothing.

        Raises:
            NotAnId, NotATaskId, TaskNotFound, RecordUnreadable.
        """
        subject = await self.ledger_id(subject)
        return await asyncio.to_thread(self.goals.prospect, subject, named=named)

    def force(self, reason: str, by: str = "") -> Force:
        """A force, checked, with its reason as it will be kept; without `by` whoever sits here.

        Raises:
            InvalidArguments: the reason is blank, or too short.
        """
        return force_of(reason, by or self.settings.agent_id or whoami())

    async def contract(self, contract_id: str, *, items: bool = True) -> ContractView:
        """A contract with what its guard says now, and the first items nobody said a word on.

        Without `items` it is read without these lists.

        Raises:
            ContractNotFound, RecordUnreadable, NotAnId.
        """
        read = partial(self.goals.contracts.get, contract_id, include_items=items)
        return await asyncio.to_thread(read)

    async def contract_counts(self, contract_ids: Collection[str]) -> dict[str, Guard]:
        """The counts of these contracts, for a list; those that cannot be read are left out."""
        return await asyncio.to_thread(self.goals.counts, contract_ids)

    def is_run(self, subject: str) -> bool:
        """Is it the id of a task run? Whatever else it is, the ledger will say."""
        try:
            return self.goals.runs.has(subject)
        except EngineError:
            return False

    def _place_of(self, task_id: str) -> LedgerLook:
        """Where its events stand: a task run's folder is made like a task's."""
        if not self.is_run(task_id):
            return self._ledger
        return LedgerLook(self.settings.home / task_run_folders.FOLDER)

    def folder_of(self, task_id: str) -> Path:
        """Where a task, or a task run, keeps its files."""
        return self._place_of(task_id).root / task_id

    def told_of(self, run: RunView) -> TaskRecord:
        """A task run that was just changed, as its row; the lists look at it at once."""
        for feed in self._goal_feeds:
            feed.nudge(TaskId(run.run_id))
        return record_of(run)
