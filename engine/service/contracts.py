"""Contracts and task runs: live rows of task runs, completion checks, resume and cancel."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Final

from engine.budgets import has_budget
from engine.budgets.envelopes import DurationMeter, Envelopes, EnvelopeState, state_of
from engine.contracts import task_run_folders
from engine.contracts.bulk_progress import Guard
from engine.contracts.completing import CompletionCheck, Force, force_of, whoami
from engine.contracts.contract_progress import ContractView, RunView
from engine.contracts.task_runs import TaskRuns, contract_of
from engine.ledger.machine import wall_ms
from engine.ledger.meta import without_surrogates
from engine.ledger.reader import LedgerReader
from engine.ledger.record_store import RecordUnreadable
from engine.ledger.routing import routed
from engine.ledger.watch import Changes, Watch
from engine.model.errors import EngineError
from engine.model.ledger_ids import SIGN, ledger_label, plain_id
from engine.model.records import (
    ENVELOPE,
    TASK_RUN,
    TASK_RUNS_FOLDER,
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
from engine.service.maintenance import LedgerContext, TaskChanges
from engine.service.queries import TaskQueries
from engine.service.router.merging import Merging

log = logging.getLogger(__name__)

SHOWN = (
    *("goal", "success_criteria", "progress_summary", "current_cursor", "needs_help", "forced"),
    *("session_id", "workflow_id", "ledger_task_ids"),
)


def record_of(view: RunView) -> TaskRecord:
    """Convert the run to a record of kind `task_run`; its file is untrusted."""
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
    """Count the items with an outcome; the total is known only from a contract."""
    message = _text(raw, "progress_summary") or None
    if progress is not None:
        one = progress.contract
        return Units(one.observed, one.expected_total, message, one.failed_total)
    counts = task_run_folders.counts(raw)
    failed = counts["failed_count"]
    return Units(counts["completed_count"] + failed, None, message, failed)


def _text(raw: Mapping[str, Any], name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""


# Open and recently ended task runs as live rows in the window's list of tasks. Older ones
# are listed by `octask task-run list` only.


ENDED_LATELY_MS: Final = 24 * 3600 * 1000
ABSENT_S: Final = 5.0  # between two looks for the folder of the runs, which the first run makes


class GoalFeed:
    """Live list of the task runs in `root`, for one reader."""

    def __init__(self, runs: TaskRuns, root: Path) -> None:
        self._runs, self._root = runs, root
        self._watch = Watch(root, gone_s=ABSENT_S)
        self._stamps: dict[TaskId, Stamp | None] = {}
        self._shown: dict[TaskId, TaskView] = {}
        self._called = False
        self._closed = threading.Event()

    def nudge(self, run_id: TaskId) -> None:
        """Report a change by this process at once. From any thread."""
        self._watch.nudge(run_id)

    def rescan(self) -> None:
        """Read every run again."""
        self._watch.rescan()

    def call(self) -> None:
        """Request a batch soon, even an empty one. From any thread."""
        self._called = True
        self._watch.wake()

    async def close(self) -> None:
        """End `batches`. Idempotent."""
        self._closed.set()
        self._watch.rescan()
        await self._watch.stop()

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Yield all rows, then changes, until `close`."""
        await self._watch.start()
        try:
            while not self._closed.is_set():
                changes = await self._watch.changes()
                views, gone = list[TaskView](), list[TaskId]()
                if changes.ids or self._shown or self._watch.state != "gone":
                    views, gone = await asyncio.to_thread(self._look, changes)
                if views or gone or self._called:
                    self._called = False
                    number = len(self._shown)
                    yield Batch(tuple(views), tuple(gone), number, number, True)
                self._watch.follow([one for one, view in self._shown.items() if _is_open(view)])
        finally:
            await self._watch.stop()

    def _look(self, changes: Changes) -> tuple[list[TaskView], list[TaskId]]:
        """Return changed rows and removed ids since the last batch; for a worker thread."""
        wanted = set(changes.ids)
        gone: set[TaskId] = set()
        if changes.rescan:
            try:
                stamps = dict(LedgerReader(self._root).scan())
            except EngineError as error:  # an unreadable folder does not remove rows
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
        """Return one run as a row; None if it is missing or ended too long ago."""
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


class ContractService:
    """Contracts, task runs and envelopes of the own and of other ledgers."""

    part_name = "contracts"

    def __init__(self, context: LedgerContext, tasks: TaskQueries, changes: TaskChanges) -> None:
        self.router = context.router
        self._context = context
        self._settings = context.settings
        self._goals = context.goals
        self._tasks = tasks
        self._changes = changes
        self._feeds: set[GoalFeed] = set()
        self._lasting = DurationMeter()

    @property
    def envelopes(self) -> Envelopes:
        """The envelopes of the currently open ledger; synchronous, for a thread."""
        return Envelopes(
            self._context.ledger,
            pid=self._settings.host_pid,
            guard=self._goals.completing.guards,
            lasting=self._lasting,
        )

    def run_changes(self) -> AsyncGenerator[Batch, None]:
        """Return the task runs as live rows, of all ledgers whose runs are known."""
        merging = Merging("runs", self._call, counts=False)
        return self.router.merged(self._run_changes(), merging)

    async def _run_changes(self) -> AsyncGenerator[Batch, None]:
        feed = GoalFeed(self._goals.runs, self._settings.home / TASK_RUNS_FOLDER)
        self._feeds.add(feed)
        try:
            async with aclosing(feed.batches()) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self._feeds.discard(feed)
            await feed.close()

    def _call(self) -> None:
        for feed in self._feeds:
            feed.call()

    async def close(self) -> None:
        """End every reader of `run_changes`."""
        for feed in tuple(self._feeds):
            await feed.close()

    @routed("write")
    async def resume(self, run_id: str, reason: str) -> TaskRecord:
        """Resume a task run that waits for a person; `reason` describes the change.

        Raises:
            InvalidArguments, InvalidRunStep, NotAnId, TaskRunNotFound, and errors of a write.
        """
        given = {"status": "RUNNING", "resume_reason": reason}
        return self.published(await asyncio.to_thread(self._goals.runs.update, run_id, given))

    @routed("write")
    async def give_up(self, run_id: str, reason: str | None = None) -> TaskRecord:
        """End a task run as CANCELLED; its tasks continue. `reason` is stored in its events.

        Raises:
            InvalidRunStep: it has already ended.
            NotAnId, TaskRunNotFound, and errors of a write.
        """
        end = partial(self._goals.completing.run, reason=reason)
        return self.published(await asyncio.to_thread(end, run_id, {"status": Status.CANCELLED}))

    @routed("write")
    async def update(
        self, task_id: str, *, phase: str | None = None, note: str | None = None
    ) -> TaskRecord:
        """Change an envelope's phase, or add a note; see `Envelopes.update`."""
        task_id = await self._tasks.ledger_id(task_id)
        change = partial(self.envelopes.update, task_id, phase=phase, note=note)
        return await self._changes.make(task_id, change)

    @routed("write")
    async def finish(self, task_id: str, outcome: str, *, note: str | None = None) -> TaskRecord:
        """End an envelope, if its contract allows; see `Envelopes.finish`."""
        task_id = await self._tasks.ledger_id(task_id)
        change = partial(self.envelopes.finish, task_id, outcome, note=note)
        return await self._changes.make(task_id, change)

    @routed()
    async def budgets(self, task_id: str) -> EnvelopeState | None:
        """Return the current state of a task's budgets; None for a task without budgets.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        found = await self._tasks.ledger_id(task_id)
        meta = {**await self._tasks.meta(found), "task_id": found}  # the folder's name counts
        if meta.get("kind") == ENVELOPE:
            return await asyncio.to_thread(self.envelopes.state, found)
        return state_of(meta, wall_ms()) if has_budget(meta) else None

    @routed()
    async def prospect(self, subject: str, *, named: bool = False) -> CompletionCheck:
        """Check whether the subject could be completed; `named` lists missing items. Read-only.

        Raises:
            NotAnId, NotATaskId, TaskNotFound, RecordUnreadable.
        """
        subject = await self._tasks.ledger_id(subject)
        return await asyncio.to_thread(self._goals.prospect, subject, named=named)

    def force(self, reason: str, by: str = "") -> Force:
        """Validate a forced completion and its stored reason; `by` defaults to the user.

        Raises:
            InvalidArguments: the reason is blank, or too short.
        """
        return force_of(reason, by or self._settings.agent_id or whoami())

    @routed("write")
    async def complete(
        self, subject: str, *, status: Status = Status.COMPLETED, force: Force | None = None
    ) -> RunView | TaskRecord:
        """End a task run, an envelope, or (by force) a running crawl with a contract.

        FAILED and CANCELLED always pass; COMPLETED must pass the guard of the contract.

        Raises:
            BulkCompletionRefused: the guard refuses; only an event is written.
            CannotComplete, InvalidRunStep, TransitionError: the state does not allow it.
            NotAnId, TaskNotFound, and errors of a write.
        """
        subject = await self._tasks.ledger_id(subject)  # a task run's id stays unchanged
        ended = await asyncio.to_thread(self._completed, subject, status, force)
        if isinstance(ended, TaskRecord):
            return self._changes.publish(ended)
        self.published(ended)
        return ended

    def _completed(self, subject: str, status: Status, force: Force | None) -> RunView | TaskRecord:
        completing = self._goals.completing
        if self._goals.runs.has(subject):
            return completing.run(subject, {"status": status.value}, force)

        def finish(*before: tuple[str, dict[str, Any]]) -> TaskRecord:
            return self.envelopes.finish(subject, status.lower(), before=before)

        return completing.task(subject, status, force, finish)

    @routed("contracts")
    async def get(self, contract_id: str, *, items: bool = True) -> ContractView:
        """Return a contract with its guard, and the first items without an outcome.

        Without `items`, these lists are not read.

        Raises:
            ContractNotFound, RecordUnreadable, NotAnId.
        """
        read = partial(self._goals.contracts.get, contract_id, include_items=items)
        return await asyncio.to_thread(read)

    async def counts(self, contract_ids: Collection[str]) -> dict[str, Guard]:
        """Return the counts of these contracts for a list, without unreadable ones."""
        own = [one for one in contract_ids if SIGN not in one]
        found = await asyncio.to_thread(self._goals.counts, own)
        for there in self.router.all_with_runs():
            wanted = [plain_id(one) for one in contract_ids if ledger_label(one) == there.label]
            if wanted:
                contracts: ContractService = there.part(self.part_name)
                counts = await there.ask(contracts.counts(wanted))
                found |= {there.qualified(one): guard for one, guard in counts.items()}
        return found

    def published(self, run: RunView) -> TaskRecord:
        """Return a changed task run as its row, and notify the lists at once."""
        for feed in self._feeds:
            feed.nudge(TaskId(run.run_id))
        return record_of(run)
