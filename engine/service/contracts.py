"""Task runs beside the tasks: live rows, what completing meets, and letting one go on or go."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Final

from engine.contracts import task_run_folders, task_run_steps
from engine.contracts.bulk_progress import Guard
from engine.contracts.completing import force_of
from engine.contracts.contract_service import Goals
from engine.contracts.contract_views import ContractView, RunView
from engine.contracts.forced_completion import Force
from engine.contracts.forcing import CompletionCheck, whoami
from engine.contracts.task_runs import TaskRuns, contract_of
from engine.ledger.change_queue import Changes
from engine.ledger.machine import wall_ms
from engine.ledger.meta import without_surrogates
from engine.ledger.reader import LedgerReader
from engine.ledger.record_store import RecordUnreadable
from engine.ledger.watch import Watch
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.records import (
    TASK_RUN,
    EngineFields,
    Stamp,
    Status,
    TaskId,
    TaskRecord,
    TaskView,
    Units,
    Unreadable,
)
from engine.model.status import moment
from engine.service.feed import Batch
from engine.service.queries import Looking

# A task run as a row beside the tasks: the same record, so that lists, filters and words fit.

SHOWN = (
    *("goal", "success_criteria", "progress_summary", "current_cursor", "needs_help", "forced"),
    *("session_id", "workflow_id", "ledger_task_ids"),
)


def record_of(view: RunView) -> TaskRecord:
    """The run as a record of kind `task_run`; nothing in its file is trusted."""
    raw: dict[str, Any] = without_surrogates(view.raw)
    created = moment(raw.get("created_at")) or 0
    forced = raw.get("forced")
    return TaskRecord(
        task_id=view.run_id,
        kind=TASK_RUN,
        status=_text(raw, "status"),
        created_at=created,
        started_at=created or None,
        ended_at=moment(raw.get("completed_at")),
        last_activity_at=moment(raw.get("updated_at")),
        objective=_text(raw, "goal") or None,
        args_summary={name: raw[name] for name in SHOWN if raw.get(name) not in (None, [], "")},
        engine=EngineFields(
            contract_id=contract_of(raw),
            units=_units(raw, view.progress),
            forced_at=moment(forced.get("at")) if isinstance(forced, Mapping) else None,
        ),
    )


def _units(raw: Mapping[str, Any], progress: ContractView | None) -> Units:
    """How many items somebody has said a word on; all of them only where a contract says so."""
    message = _text(raw, "progress_summary") or None
    if progress is not None:
        one = progress.contract
        return Units(one.observed, one.expected_total, message, one.failed_total)
    counts = task_run_steps.counts(raw)
    failed = counts["failed_count"]
    return Units(counts["completed_count"] + failed, None, message, failed)


def _text(raw: Mapping[str, Any], name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""


# Task runs as live rows: the open ones, and those that ended lately, as they change on disk.
#
# The window's list has them beside the tasks. What ended longer than a day ago is a record to
# be asked for (`octask task-run list`), not something to watch.

log = logging.getLogger(__name__)

ENDED_LATELY_MS: Final = 24 * 3600 * 1000


class GoalFeed:
    """One reader's live picture of the task runs in `root`."""

    def __init__(self, runs: TaskRuns, root: Path, watch: Watch | None = None) -> None:
        self._runs, self._root = runs, root
        self._watch = watch or Watch(root)
        self._stamps: dict[TaskId, Stamp | None] = {}
        self._shown: dict[TaskId, TaskView] = {}
        self._called = False
        self._closed = threading.Event()

    def nudge(self, run_id: TaskId) -> None:
        """Tell of a change made by this very process, at once. From any thread."""
        self._watch.nudge(run_id)

    def rescan(self) -> None:
        """Look at every run again, now."""
        self._watch.rescan()

    def call(self) -> None:
        """Have `batches` tell something soon, if only an empty batch. From any thread."""
        self._called = True
        self._watch.wake()

    async def close(self) -> None:
        """End `batches`. Harmless when called twice."""
        self._closed.set()
        self._watch.rescan()
        await self._watch.stop()

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """All that are to be shown, and then whatever changes, until `close`."""
        await self._watch.start()
        try:
            while not self._closed.is_set():
                changes = await self._watch.changes()
                views, gone = await asyncio.to_thread(self._look, changes)
                if views or gone or self._called:
                    self._called = False
                    number = len(self._shown)
                    yield Batch(tuple(views), tuple(gone), number, number, True)
                self._watch.follow([one for one, view in self._shown.items() if _is_open(view)])
        finally:
            await self._watch.stop()

    def _look(self, changes: Changes) -> tuple[list[TaskView], list[TaskId]]:
        """What differs from what was told; for a worker thread."""
        wanted = set(changes.ids)
        gone: set[TaskId] = set()
        if changes.rescan:
            try:
                stamps = dict(LedgerReader(self._root).scan())
            except EngineError as error:  # for now nothing is known, and nothing is taken away
                log.debug("the task runs cannot be looked at: %s", error)
                return [], []
            gone = self._shown.keys() - stamps.keys()
            known, self._stamps = self._stamps, stamps
            wanted |= {one for one, stamp in stamps.items() if stamp != known.get(one)}
        found = {one: self._read(one) for one in wanted}
        gone |= {one for one, view in found.items() if view is None and one in self._shown}
        news = {one: view for one, view in found.items() if view and view != self._shown.get(one)}
        for one in gone:
            self._shown.pop(one, None)
        self._shown |= news
        return list(news.values()), list(gone)

    def _read(self, run_id: TaskId) -> TaskView | None:
        """One run as a row; None for what is gone, or ended too long ago."""
        try:
            record = record_of(self._runs.get(run_id))
        except RecordUnreadable as error:
            return TaskView(Unreadable(run_id, str(error), str(error.fields["path"])))
        except EngineError:
            return None
        ended = record.ended_at
        if record.is_terminal and ended is not None and wall_ms() - ended > ENDED_LATELY_MS:
            return None
        return TaskView(record, units=record.units)


def _is_open(view: TaskView) -> bool:
    return isinstance(view.entry, TaskRecord) and not view.entry.is_terminal


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

    async def prospect(self, subject: str, *, named: bool = False) -> CompletionCheck:
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

    def _place_of(self, task_id: str) -> LedgerReader:
        """Where its events stand: a task run's folder is made like a task's."""
        if not self.is_run(task_id):
            return self._ledger
        return LedgerReader(self.settings.home / task_run_folders.FOLDER)

    def folder_of(self, task_id: str) -> Path:
        """Where a task, or a task run, keeps its files."""
        return self._place_of(task_id).root / task_id

    def told_of(self, run: RunView) -> TaskRecord:
        """A task run that was just changed, as its row; the lists look at it at once."""
        for feed in self._goal_feeds:
            feed.nudge(TaskId(run.run_id))
        return record_of(run)
