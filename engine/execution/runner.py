"""Life of one task: claim → body → settle. The settle is shielded and does not give up."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine.execution.folder_wait import FolderWait
from engine.execution.task_context import BudgetObserver, TaskContext, TaskObserver
from engine.kinds.context import StopReason, UnitStopped, with_way_out
from engine.kinds.spec import Head, KindSpec, Tools
from engine.ledger.changes import BUDGET_EXCEEDED, OVERRULED
from engine.ledger.ledger import Ledger
from engine.logging.logs import log_path
from engine.model import redact
from engine.model.errors import (
    EngineError,
    LedgerFileTooLarge,
    OwnershipLost,
    PageOutOfFiles,
    TaskFailed,
    TransitionError,
    UnitsMissing,
)
from engine.model.process_limits import is_shortage
from engine.model.records import ErrorInfo, Status, TaskId, TaskRecord, Units, Unreadable
from engine.model.tally import StoppedBy, own_id

log = logging.getLogger(__name__)

LOOK_S = 0.25  # interval of reads of meta.json while a unit is in flight
HARD_STOP_S = 1.2  # a stopped body is cancelled after this time (2 s are promised)
AGAIN_S = 1.0  # pause between tries to write a change of state (a full disk may be freed)


@dataclass(frozen=True, slots=True)
class Job:
    """Accepted task: the full arguments exist only here, never on disk.

    Jobs of one `queue` run one after another. `route` is how the request came (None: the
    engine's own route), which decides what the body may reach. `resumed` is the task whose units
    the job keeps.
    """

    task_id: TaskId
    kind: KindSpec
    args: Any
    observers: tuple[TaskObserver, ...] = ()
    budgets: Mapping[str, Any] = field(default_factory=dict)
    route: str | None = None
    resumed: TaskId | None = None

    @property
    def queue(self) -> str | None:
        return self.kind.queue(self.args)


@dataclass(slots=True)
class Outcome:
    """Result of a body: the head of a result, stopped, or an error."""

    status: Status
    head: Head | None = None
    error: ErrorInfo | None = None


class Runner:
    """Runs one job. `nudge()` makes it read its meta.json now instead of within 250 ms."""

    def __init__(
        self,
        ledger: Ledger,
        job: Job,
        tools: Tools,
        context: TaskContext,
        trouble: Callable[[str], None],
    ) -> None:
        self._ledger = ledger
        self._job = job
        self._tools = tools.on_route(job.route)
        self._context = context
        self._trouble = trouble
        self._read_now = asyncio.Event()
        self._stop_requested = asyncio.Event()
        self._fault: UnitsMissing | None = None
        self._folder = FolderWait(
            ledger,
            job.task_id,
            tools.settings.away_s,
            trouble,
            context.pause_deadlines,
            lambda: context.lines,
        )
        context.folder = self._folder
        self._lost: TaskRecord | None = None
        self._stop_reason: StopReason = "cancelled"
        self._began = 0.0

    def nudge(self) -> None:
        self._read_now.set()

    def request_stop(self) -> None:
        """Stop now, without reading meta.json: its folder is absent, and the end waits for it."""
        self._stop_requested.set()

    def give_up_waiting(self) -> None:
        """Give up on an absent folder, because the program ends."""
        self._folder.give_up_waiting()

    @property
    def lost(self) -> EngineError | None:
        """Reason why the run was given up: its folder is gone, or its record cannot be written."""
        return self._folder.lost

    @property
    def is_waiting(self) -> bool:
        """Whether the run waits for its absent folder."""
        return self._folder.since is not None

    async def run(self) -> TaskRecord | None:
        """Run the task to its end.

        None when another process claimed or ended it first, or when it is `lost`.
        """
        await self._folder.open()
        try:
            return await self._run()
        finally:
            self._folder.close()

    async def _run(self) -> TaskRecord | None:
        if not await self._claim():
            return None
        self._began = time.monotonic()
        outcome, cancelled = await self._drive()
        record = await asyncio.shield(self._settle(outcome))
        if cancelled is not None:
            raise cancelled
        return record

    async def _claim(self) -> bool:
        """Set PENDING → RUNNING; False when another process was first (a cancel, mostly)."""
        while True:
            try:
                await asyncio.to_thread(self._ledger.claim, self._job.task_id)
            except TransitionError:
                return False
            except EngineError as error:
                if not await self._can_go_on(error):
                    return False
            else:
                return True

    async def _can_go_on(self, error: EngineError) -> bool:
        """Wait until a failed change of state can be repeated; False when the run is lost."""
        if isinstance(error, LedgerFileTooLarge):  # it would fail for ever
            self._folder.give_up(error)
            return False
        try:
            await self._folder.wait_out(error)
        except EngineError as final:
            if self.lost is not None:
                return False
            await self._wait_out(final)
        return True

    async def _drive(self) -> tuple[Outcome, asyncio.CancelledError | None]:
        cancelled: asyncio.CancelledError | None = None
        body = asyncio.create_task(self._body(), name=f"body {self._job.task_id}")
        watcher = asyncio.create_task(self._watch(), name=f"cancel watch {self._job.task_id}")
        requested = asyncio.create_task(
            self._stop_requested.wait(), name=f"asked {self._job.task_id}"
        )
        try:
            await asyncio.wait({body, watcher, requested}, return_when=asyncio.FIRST_COMPLETED)
            if not body.done():
                self._context.stop(self._stop_reason)
                await asyncio.wait({body}, timeout=HARD_STOP_S)
        except asyncio.CancelledError as error:
            cancelled = error  # raised again once the pages are settled
            self._context.stop()
        for task in (body, watcher, requested):
            task.cancel()
        ended, *_ = await asyncio.gather(body, watcher, requested, return_exceptions=True)
        if self._fault is not None:
            missing = ErrorInfo(message=str(self._fault), code=self._fault.code)
            return Outcome(Status.FAILED, error=missing), cancelled
        return ended if isinstance(ended, Outcome) else self._cut_short(ended), cancelled

    def _cut_short(self, ended: BaseException) -> Outcome:
        """Convert a body without outcome: it was cancelled late in a stop, or failed."""
        if isinstance(ended, asyncio.CancelledError) and self._context.stopping:
            return self._stopped(self._context.stop_reason)
        log.error("task %s: its body broke down", self._job.task_id, exc_info=ended)
        return _internal_error(ended)

    async def _body(self) -> Outcome:
        job, context = self._job, self._context
        try:
            head = await job.kind.body(job.args, context, self._tools)
        except UnitStopped:
            return self._stopped(context.stop_reason)
        except TaskFailed as failed:
            error = ErrorInfo(message=str(failed), code=failed.failure)
            return Outcome(Status.FAILED, failed.head, error)
        except EngineError as error:
            return Outcome(Status.FAILED, error=ErrorInfo(message=str(error), code=error.code))
        except Exception as error:  # a defect of ours must end as a state that the user can see
            log.exception("task %s: its body failed", job.task_id)
            return _internal_error(error)
        return self._stopped(context.stop_reason, head)

    async def _watch(self) -> None:
        """Return when a stop was requested, or another process ended the task."""
        seen: object = None
        while not self._is_stop(await self._context.tick()):
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._read_now.wait()
            except TimeoutError:
                pass
            self._read_now.clear()
            try:
                await self._folder.check()
                stamp = await asyncio.to_thread(self._ledger.stamp, self._job.task_id)
                if stamp == seen:
                    continue
                seen = stamp
                if await asyncio.to_thread(self._must_stop):
                    return
            except UnitsMissing as error:
                self._fault = error
                return
            except EngineError as error:
                if not await self._can_watch_on(error):
                    return

    async def _can_watch_on(self, error: EngineError) -> bool:
        """Wait while the folder is absent; False when it is gone and the work is pointless."""
        try:
            await self._folder.wait_out(error)
        except EngineError as final:  # a passing failure (descriptors, a network folder)
            if self.lost is None:
                log.warning("task %s: cannot look for a request: %s", self._job.task_id, final)
        return self.lost is None

    def _must_stop(self) -> bool:
        record = self._ledger.read(self._job.task_id)
        if isinstance(record, Unreadable):
            return False
        if record.is_terminal:
            self._lost = record
        elif record.cancel_requested_at is None and record.engine is not None:
            if record.engine.forced_at is not None:
                self._stop_reason = "forced"
            elif record.engine.stop_requested_at is not None:
                self._stop_reason = "stopped"
            return self._stop_reason != "cancelled"
        return record.is_terminal or record.cancel_requested_at is not None

    def _is_stop(self, reason: StopReason) -> bool:
        self._stop_reason = reason or self._stop_reason
        return bool(reason)

    async def _settle(self, outcome: Outcome) -> TaskRecord | None:
        """Write the end: result, then terminal meta, then the event. Retries until it is written.

        What no retry can write is left out, and the task is FAILED with this reason.
        """
        if self.lost is not None:  # its body was stopped for that, and by no request
            reason = ErrorInfo(message=str(self.lost), code=self.lost.code)
            outcome = Outcome(Status.FAILED, error=reason)
        write_end = self._write_end
        while True:
            try:
                return await asyncio.to_thread(write_end, outcome)
            except TransitionError:
                await self._log_ownership_lost()
                return None
            except EngineError as error:
                if isinstance(error, LedgerFileTooLarge) and write_end != self._write_meta:
                    log.warning("task %s: it ends without a result: %s", self._job.task_id, error)
                    outcome, write_end = _unwritable(outcome, error), self._write_meta
                    continue
                if not await self._can_go_on(error):
                    return None
            except Exception as error:  # as in the body; else it would stay RUNNING for ever
                if write_end == self._write_meta:
                    raise
                log.exception("task %s: its end cannot be written", self._job.task_id)
                outcome, write_end = _internal_error(error), self._write_meta

    async def _wait_out(self, error: EngineError) -> None:
        """Report the obstacle (a full disk, a lock) and pause before the next try."""
        text = str(error)
        self._trouble(text if text.startswith(error.title) else f"{error.title}: {text}")
        log.warning("task %s: %s; trying again", self._job.task_id, error)
        await asyncio.sleep(AGAIN_S)

    def _write_end(self, outcome: Outcome) -> TaskRecord:
        ledger, task_id = self._ledger, self._job.task_id
        if self._lost is not None:
            raise TransitionError(subject=task_id, source=self._lost.status, target=outcome.status)
        self._context.flush()
        self._context.notify_end()
        outcome = self._check_contracts(outcome)
        head = outcome.head if outcome.head is not None else self._partial(outcome)
        # A completed task has a result, even an empty one.
        whole = outcome.status is Status.COMPLETED
        if whole or outcome.head is not None or self._context.units.done:
            # A start address may hold a password, and the scope is derived from it.
            head = self._context.clean(redact.head(head))
            ledger.write_units(task_id, head, self._job.kind.units_key)
        if whole and not self._context.stopping:  # of a stopped one, pages are missing
            self._context.notify_result()
        return self._write_meta(outcome)

    def _write_meta(self, outcome: Outcome) -> TaskRecord:
        error = outcome.error
        if error is not None:
            message = with_way_out(self._context.clean(error.message), self._tools.settings)
            error = msgspec.structs.replace(error, message=message)
        ledger, task_id = self._ledger, self._job.task_id
        record = ledger.finish(task_id, outcome.status, error=error, units=self._units(outcome))
        self._trouble("")
        return record

    def _check_contracts(self, outcome: Outcome) -> Outcome:
        """Let the contracts refuse a COMPLETED outcome; its result is kept in any case."""
        if outcome.status is not Status.COMPLETED or self._context.stop_reason == "forced":
            return outcome
        try:
            refusal = self._context.refusal(outcome.head)
        except EngineError:
            record = self._ledger.read(self._job.task_id)
            if isinstance(record, Unreadable) or record.cancel_requested_at is None:
                raise  # it is retried in a moment
            return outcome  # it will be CANCELLED, whatever its outcome
        return outcome if refusal is None else Outcome(Status.FAILED, outcome.head, refusal)

    def _units(self, outcome: Outcome) -> Units:
        """Count the finished units; of a completed task that is the total, whatever the estimate.

        A task completed by force is not whole: its total stays, to show the missing units.
        """
        units = self._context.units
        whole = outcome.status == Status.COMPLETED and self._context.stop_reason != "forced"
        total = units.done if whole else units.total
        return msgspec.structs.replace(units, total=total, message=None)

    def _partial(self, outcome: Outcome) -> Head:
        pages = self._ledger.read_pages(self._job.task_id)
        stopped_by: StoppedBy = "cancelled" if outcome.status == Status.CANCELLED else "failed"
        reason = self._context.stop_reason
        if reason in ("budget", "forced", "stopped"):
            stopped_by = reason
        duration_ms = round((time.monotonic() - self._began) * 1000)
        head = self._job.kind.partial(self._job.args, pages, stopped_by, duration_ms)
        return {**head, **own_id(self._job.kind.name, self._job.task_id)}

    def _stopped(self, reason: StopReason, head: Head | None = None) -> Outcome:
        """Map the stop reason of a body that returned (or was cut short) to its outcome."""
        match reason:
            case "cancelled":
                return Outcome(Status.CANCELLED, head)
            case "budget":
                return Outcome(Status.FAILED, head, self._overrun())
        return Outcome(Status.COMPLETED, head)

    def _overrun(self) -> ErrorInfo:
        observers = self._job.observers
        over = ", ".join(one.overrun for one in observers if isinstance(one, BudgetObserver))
        message = "The task went over its budget and was told to end there."
        if over:
            message = f"The task went over its budget ({over}) and was told to end there."
        return ErrorInfo(message=message, code=BUDGET_EXCEEDED)

    async def _log_ownership_lost(self) -> None:
        status = self._lost.status if self._lost else "ended"
        error = OwnershipLost(task_id=self._job.task_id, status=status)
        log.warning("%s", error)
        await self._context.log("lost ownership", str(error))


def _unwritable(outcome: Outcome, error: EngineError) -> Outcome:
    """Map an outcome whose result cannot be written.

    A cancel or its own failure stays the reason, unless a force could turn that into a success.
    """
    own = outcome.error.code not in OVERRULED if outcome.error is not None else False
    if own or outcome.status is Status.CANCELLED:
        return outcome
    return Outcome(Status.FAILED, error=ErrorInfo(message=str(error), code=error.code))


def _internal_error(error: BaseException) -> Outcome:
    if is_shortage(error):
        short = PageOutOfFiles()
        return Outcome(Status.FAILED, error=ErrorInfo(message=str(short), code=short.code))
    name = type(error).__name__
    message = f"An unexpected {name} ended the task; the log has the details: {log_path()}"
    return Outcome(Status.FAILED, error=ErrorInfo(message=message, code="internal_error"))
