"""Context of a task's body: every record of it is written to disk, and its budgets are counted."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, BinaryIO, Final, Protocol, TypeVar

import msgspec

from engine import budgets
from engine.budgets import BudgetStatus, Gauge, ToolCall
from engine.budgets.envelopes import DurationMeter, apply, edge_events
from engine.execution.folder_wait import FolderWait
from engine.kinds.context import Clock, Scopes, Span, StopReason, UnitStopped
from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError, LedgerWriteFailed, LockTimeout
from engine.model.records import ErrorInfo, TaskId, Units
from engine.secrets.given_secrets import Hidden, Scrub

log = logging.getLogger(__name__)


class TaskObserver(Protocol):
    """Notified of every step of one task, on worker threads, one call at a time.

    Its errors are logged and stop nothing: a task's work is never lost because of a failure to
    count.
    """

    def on_unit(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        """Handle a stored unit; return the reason why the task has to stop now, mostly none."""
        ...

    def on_carried(self, units: Iterable[Mapping[str, Any]]) -> None:
        """Handle units that were carried over from a continued task, all at once."""
        ...

    def on_tick(self) -> StopReason:
        """Handle the passing of time (about four times a second); returns as `on_unit` does."""
        ...

    def refusal(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        """Return why a task that would be COMPLETED now has to be FAILED, or None.

        `head` is that of its result (the summary of a crawl), where the body produced one.
        """
        ...

    def on_end(self) -> None:
        """Handle the end of the work; the terminal meta comes next."""
        ...

    def on_result(self) -> None:
        """Handle the stored result of a whole, COMPLETED task; the terminal meta comes next."""
        ...


NONE: Final[Mapping[str, Any]] = {}
T = TypeVar("T")
Step = Callable[[], StopReason]


class TaskContext:
    """Services for a body that runs as a task; see `kinds.context.Context` for the rules.

    `nudge` is called after every write, so that this process' own list need not wait for a notice
    of the file system. `resumed` is set to the task whose units this one continues.
    """

    def __init__(
        self,
        ledger: Ledger,
        task_id: TaskId,
        clock: Clock,
        nudge: Callable[[TaskId], None],
        observers: tuple[TaskObserver, ...] = (),
        budgets: Mapping[str, Any] = NONE,
    ) -> None:
        self.task_id: str = task_id
        self.budgets = budgets
        self._id = task_id
        self.units = Units()
        self._ledger = ledger
        self._scopes = Scopes()
        self._order = asyncio.Lock()
        self._clock = clock
        self._nudge = nudge
        self._observers = observers
        self.resumed: TaskId | None = None
        self.scrub = Scrub(())  # secrets that the task was given
        self._writing = threading.Lock()
        self._unwritten: list[deque[Step]] = []
        self.lines = 0  # units in pages.jsonl
        self.folder: FolderWait | None = None

    @property
    def stopping(self) -> bool:
        """Whether a stop of the task was requested."""
        return self._scopes.stopping

    @property
    def stop_reason(self) -> StopReason:
        return self._scopes.reason

    def stop(self, reason: StopReason = "cancelled") -> None:
        """Request the body to stop: units in flight end now, finished ones stay."""
        self._scopes.stop(reason)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def unit(self, label: str, limit_s: float) -> AbstractAsyncContextManager[None]:
        return self._scopes.unit(label, limit_s)

    async def pause(self, seconds: float) -> None:
        await self._scopes.pause(seconds)

    def pause_deadlines(self, held: bool) -> None:
        """Pause the deadlines of units in flight, while the ledger is absent."""
        self._scopes.hold(held)

    @property
    def resumes(self) -> bool:
        return self.resumed is not None

    def earlier_units(self) -> Iterator[tuple[bytes, Span]]:
        if self.resumed is None:
            return
        for line, behind in self._ledger.placed_pages(self.resumed):
            if self.stopping:
                raise UnitStopped
            yield line, (behind - len(line) - 1, behind)

    async def carry(self, spans: Sequence[Span], files: Sequence[str], units: Units) -> None:
        assert self.resumed is not None
        source = self.resumed

        def store() -> None:
            for name in files:
                self._refuse_if_stopping()
                self._ledger.carry_file(self.task_id, source, name)
            self._ledger.carry_pages(self.task_id, source, spans, self._refuse_if_stopping)

        def report() -> None:
            data = self.clean(_progress(units))
            self._ledger.append_event(self.task_id, "progress", data)
            self._notify_each(lambda one: one.on_carried(self._ledger.read_pages(self.task_id)))

        async with self._order:
            await self._write(store)
            self.lines, self.units = len(spans), units
            await self._write(report)
        self._nudge(self._id)

    def _refuse_if_stopping(self) -> None:
        if self.stopping:
            raise UnitStopped

    async def page(self, page: Mapping[str, Any], units: Units) -> None:
        """Write a finished page: `pages.jsonl` first, so that a kill loses none, then the event."""
        steps = self._steps(page, units)
        try:
            # Threads would overtake each other, and progress would decrease.
            async with self._order:
                reason = await self._write(partial(self._run_steps, steps))
        except asyncio.CancelledError:
            if self.folder is not None and self.folder.holds_writes:
                self._unwritten.append(steps)  # accepted already: it is written before the end
            raise
        self._nudge(self._id)
        if reason:
            self.stop(reason)

    async def reached(self, message: str) -> None:
        """Report the current activity: a progress event that counts no further unit."""
        async with self._order:
            self.units = msgspec.structs.replace(self.units, message=message)
            data = self.clean(_progress(self.units))
            await self._write(partial(self._ledger.append_event, self.task_id, "progress", data))
        self._nudge(self._id)

    async def rest(self, pages: list[dict[str, Any]]) -> None:
        """Write units that were never done; no event reports them, and nothing counts them."""
        kept = [self.clean(page) for page in pages]
        async with self._order:
            await self._write(partial(self._ledger.append_pages, self.task_id, kept))
            self.lines += len(pages)

    async def log(self, phase: str, note: str, **data: object) -> None:
        data = self.clean({"phase": phase, "note": note, **data})
        await self._write(partial(self._ledger.append_event, self.task_id, "log", data))

    def conceal(self, hidden: Iterable[Hidden]) -> None:
        self.scrub = self.scrub.with_given(hidden)

    def conceal_later(self, hidden: Iterable[Hidden]) -> None:
        self.scrub = self.scrub.with_more(hidden)

    def clean(self, given: Any) -> Any:
        """Remove the task's given secrets from a record or a text."""
        return self.scrub.ours(given) if self.scrub else given

    async def artifact(self, name: str, data: bytes) -> str:
        """Store `data` under the task's `artifacts/`; returns the path inside the task's folder."""
        return await self._write(partial(self._ledger.write_artifact, self.task_id, name, data))

    async def append_artifact(self, name: str, data: bytes) -> None:
        await self._write(partial(self._ledger.append_artifact, self.task_id, name, data))

    async def carry_artifact(self, name: str, whole: Callable[[BinaryIO], int]) -> int:
        assert self.resumed is not None
        source, check = self.resumed, self._refuse_if_stopping
        return await self._write(
            partial(self._ledger.carry_artifact, self.task_id, source, name, whole, check)
        )

    async def document(self, name: str, data: bytes) -> None:
        """Replace the task's own document, such as `commands.json`."""
        async with self._order:
            await self._write(partial(self._ledger.write_document, self.task_id, name, data))

    async def _write(self, write: Callable[[], T]) -> T:
        """Write, and retry after an absence of the task's folder."""
        while True:
            try:
                found = await _write_shielded(write)
            except EngineError as error:
                if self.folder is None:
                    raise
                await self.folder.wait_out(error)
            else:
                if self.folder is not None:
                    self.folder.reset_retries()
                return found

    def flush(self) -> None:
        """Write the pages whose body ended while they could not be written; for a thread."""
        with self._writing:  # a write in progress outlives its cancelled body, and counts
            pass
        while self._unwritten:
            self._run_steps(self._unwritten[0])
            del self._unwritten[0]

    async def tick(self) -> StopReason:
        """Let the companions check the clock; return the reason to stop, mostly none."""
        if not self._observers or (self.folder is not None and self.folder.since is not None):
            return ""
        async with self._order:
            return await asyncio.to_thread(self._notify_observers, lambda one: one.on_tick())

    def refusal(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        """Reason why the task may not be COMPLETED, from the first companion that refuses; for a
        thread.

        Raises:
            LockTimeout, LedgerWriteFailed: the check failed for now.
        """
        for observer in self._observers:
            try:
                refused = observer.refusal(head)
            except (LockTimeout, LedgerWriteFailed):
                raise
            except EngineError as error:
                return ErrorInfo(message=str(error), code=error.code)
            if refused is not None:
                return refused
        return None

    def notify_end(self) -> None:
        """Notify the companions that the work is over; for a thread."""
        self._notify_each(lambda one: one.on_end())

    def notify_result(self) -> None:
        """Notify the companions that the result of a completed task is stored; for a thread."""
        self._notify_each(lambda one: one.on_result())

    def _notify_each(self, call: Callable[[TaskObserver], None]) -> None:
        for observer in self._observers:
            try:
                call(observer)
            except EngineError as error:
                log.warning("task %s: %s", self._id, error)

    def _notify_observers(self, call: Callable[[TaskObserver], StopReason]) -> StopReason:
        found: StopReason = ""
        for observer in self._observers:
            try:
                found = call(observer) or found
            except EngineError as error:
                log.warning("task %s: could not be counted: %s", self._id, error)
        return found

    def _steps(self, page: Mapping[str, Any], units: Units) -> deque[Step]:
        """Steps that store a page; each runs once, also across retries."""
        progress = self.clean(_progress(units))

        def append() -> StopReason:
            self._ledger.append_page(self.task_id, self.clean(dict(page)))
            self.lines += 1
            # Only now: a page that could not be written does not count. Not by the order of
            # storing, which after an absence is another one.
            self.units = max(units, self.units, key=lambda one: one.done)
            return ""

        def report() -> StopReason:
            self._ledger.append_event(self.task_id, "progress", progress)
            return ""

        def count() -> StopReason:
            return (
                self._notify_observers(lambda one: one.on_unit(page, units))
                if self._observers
                else ""
            )

        return deque((append, report, count))

    def _run_steps(self, steps: deque[Step]) -> StopReason:
        found: StopReason = ""
        with self._writing:
            while steps:
                found = steps[0]()
                steps.popleft()
        return found


def _progress(units: Units) -> dict[str, Any]:
    data: dict[str, Any] = {"unitsDone": units.done, "unitsTotal": units.total}
    if units.failed:
        data["unitsFailed"] = units.failed
    if units.carried:
        data["unitsCarried"] = units.carried
    if units.message:
        data["message"] = units.message
    return data


async def _write_shielded(write: Callable[[], T]) -> T:
    """Write on a thread; the write completes even if the caller is cancelled."""
    writing = asyncio.get_running_loop().run_in_executor(None, write)
    writing.add_done_callback(_retrieve_exception)
    return await asyncio.shield(writing)


def _retrieve_exception(writing: asyncio.Future[Any]) -> None:
    """Retrieve the exception of an abandoned write, which the loop would log with a traceback."""
    if not writing.cancelled():
        writing.exception()


# Minimum interval of writes to meta.json; the events report each change at once.
WRITE_S: Final = 1.0
ASLEEP_S: Final = 30.0  # it is called four times a second: after such a gap the machine was asleep
KEPT: Final = ("counters", "budget_status", "budget_exceeded", "recommended_next")
MEASURED: Final = ("lasted_ms", "lasted_at")  # under `engine`


def _opened_by(unit: Mapping[str, Any]) -> object:
    """Return the address that a command opens; those of other actions are patterns."""
    args = unit.get("args")
    if not isinstance(args, Mapping) or args.get("action") not in {"goto", "new_tab"}:
        return None
    return args.get("url")


def _overrun(gauge: Gauge) -> str:
    """`maxToolCalls: 5 of 4`; the name alone of a budget without a number."""
    if gauge.limit is None:
        return gauge.key
    return f"{gauge.key}: {gauge.value:,} of {gauge.limit:,}"


class BudgetObserver:
    """Observer that counts one task's budgets; only a task with a policy has one.

    With `enforce` it stops the task as soon as a budget is exceeded; without, exceeding one is only
    reported. Time counts by the monotonic clock, and only while this process runs. Source: seed
    004.
    """

    def __init__(
        self,
        ledger: Ledger,
        task_id: str,
        enforce: bool,
        *,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._task_id = task_id
        self._enforce = enforce
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._durations = DurationMeter(monotonic, asleep_s=ASLEEP_S)
        self._meta: dict[str, Any] = {}
        self._failed = 0
        self._dirty = False
        self._written = float("-inf")
        self.overrun = ""  # the exceeded budgets that ended the task: "maxToolCalls: 5 of 4"

    def on_unit(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        """Count a finished unit, and return the reason if the task has to end now."""
        address = unit.get("final_url") or unit.get("url") or _opened_by(unit)
        args = {"url": address} if isinstance(address, str) and address else {}
        ok, self._failed = units.failed <= self._failed, units.failed
        meta = self._record()
        old, now = budgets.before(meta), self._now_ms()
        self._durations.measure(meta, now)
        apply(meta, budgets.fold(meta, ToolCall(str(meta.get("kind")), args, ok), now))
        self._dirty = True
        return self._apply_status(old, budgets.at(meta, now))

    def on_carried(self, units: Iterable[Mapping[str, Any]]) -> None:
        """Do nothing: an earlier task paid for these units."""

    def on_tick(self) -> StopReason:
        """Check the time limit, and write the counters when that is due."""
        meta = self._record()
        old, now = budgets.before(meta), self._now_ms()
        # The clock was set: readers must use the measured time.
        if self._durations.measure(meta, now):
            self._dirty = True
        new = budgets.at(meta, now)
        meta["last_activity_at"] = now
        if (new.exceeded, new.warning) != (old.exceeded, old.warning):
            apply(meta, budgets.verdict(new))
            self._dirty = True
        return self._apply_status(old, new)

    def refusal(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        """Return None: a budget never refuses a finished result."""
        return None

    def on_end(self) -> None:
        """Write the last counts before the terminal record."""
        if self._meta:
            self._write()

    def on_result(self) -> None:
        """Do nothing: a budget counts calls, not results."""

    def _apply_status(self, old: BudgetStatus, new: BudgetStatus) -> StopReason:
        transition = edge_events(old, new)
        if transition:
            self._ledger.note(self._task_id, transition)
        if self._dirty and self._monotonic() - self._written >= WRITE_S:
            self._write()
        if not (self._enforce and new.status == "exceeded"):
            return ""
        over = [gauge for gauge in new.gauges if gauge.level == "exceeded"]
        self.overrun = self.overrun or ", ".join(map(_overrun, over))
        return "budget"

    def _record(self) -> dict[str, Any]:
        """Record as read when this task began; from then on it is counted here."""
        if not self._meta:
            self._meta = self._ledger.read_raw(self._task_id)
        return self._meta

    def _write(self) -> None:
        counters = {name: self._meta.get(name) for name in KEPT}
        ours = changes.engine_of(self._meta)
        measured: dict[str, Any] = {name: ours[name] for name in MEASURED if name in ours}
        self._dirty, self._written = False, self._monotonic()

        def write(raw: dict[str, Any]) -> None:
            apply(raw, counters)
            changes.engine_of(raw).update(measured)

        self._ledger.mutate(self._task_id, write)
