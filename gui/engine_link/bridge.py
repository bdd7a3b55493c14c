"""Bridge between window and engine: methods in, typed signals out; it owns its tasks.

No slot blocks here: a slot calls a method, and a signal brings the answer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec.structs import replace
from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

from engine.model.cluster_workers import WorkerView
from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerUnusable, Problem
from engine.model.kind_traits import link_follower
from engine.model.records import Health, History, TaskId, TaskRecord
from engine.service.commands import stop_all
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.requests import problems
from engine.service.rerun import Asked, Remainder, repeatable
from engine.service.router.ledger_paths import Beside, LedgerState, NoSuchLedger
from engine.service.router.ledger_router import SILENT_S, ask_for, check_label
from gui.engine_link.program_server import ProgramServer
from gui.engine_link.scheduling import TaskSet
from gui.engine_link.subscription import BatchThrottle
from gui.engine_link.task_events import EventFollower, EventPart, EventRow, Offset, Told, event_row

log = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Records and errors after cancelling several tasks.

    `waiting` are the tasks that were queued when the user chose them.
    """

    records: tuple[TaskRecord, ...]
    refused: tuple[EngineError, ...]
    waiting: frozenset[str] = frozenset()


async def cancel_all(
    cancel: Callable[[str, str | None], Awaitable[TaskRecord]],
    task_ids: Iterable[str],
    reason: str | None,
    waiting: frozenset[str],
) -> Cancelled:
    """Cancel each task; a failure does not stop the others."""
    stopped = await stop_all(cancel, task_ids, reason)
    return Cancelled(stopped.records, stopped.refused, waiting)


class EngineCalls(QObject):
    """Owner of all background tasks of the window, which end with it.

    `failed` carries an error for the user, `broken` an unexpected exception.
    """

    failed = Signal(EngineError)
    broken = Signal(Exception)

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._engine: Engine | None = None
        self._trouble: EngineError | None = None  # Reason why the ledger is not open
        self._tried = asyncio.Event()  # Set when the ledger is open or has failed to open
        self._tasks = TaskSet(self._tell)
        self._promises: list[Callable[[Engine], Coroutine[Any, Any, object]]] = []

    @property
    def engine(self) -> Engine:
        """The engine of the open ledger.

        Raises: EngineError: the ledger is not open, with the reason after a failed attempt.
        """
        if self._engine is None:
            root = str(self._settings.root)
            raise self._trouble or LedgerUnusable(path=root, reason="it is still being opened")
        return self._engine

    @property
    def trouble(self) -> EngineError | None:
        """The reason why the ledger failed to open, else None."""
        return self._trouble

    def _has_tried(self, trouble: EngineError | None) -> None:
        """Record that the ledger is open, or why it is not."""
        self._trouble = trouble
        self._tried.set()

    def ask(
        self,
        work: Callable[[Engine], Coroutine[Any, Any, _T]],
        then: Callable[[_T], object],
        failed: Callable[[EngineError], object] | None = None,
        *,
        name: str,
    ) -> None:
        """Call the engine and pass the result to `then`, on the window's thread.

        A pending call of the same name is cancelled first. `failed` receives an engine error;
        without it the banner shows the error. Calls made before the ledger is open wait for it.
        """
        self._tasks.cancel(name)
        self._tasks.spawn(self._ask(work, then, failed), name=name)

    def promise(self, work: Callable[[Engine], Coroutine[Any, Any, object]]) -> None:
        """Run `work` before the engine closes, for actions already confirmed to the user."""
        self._promises.append(work)

    async def _keep_promises(self) -> None:
        for work in self._promises if self._engine is not None else ():
            try:
                await work(self.engine)
            except EngineError as error:
                log.warning("left undone at the end: %s", error)

    def call_off(self, name: str) -> None:
        """Cancel the calls and tasks of this name silently."""
        self._tasks.cancel(name)

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """Run `work` until it ends or the window closes."""
        self._tasks.spawn(work, name=name)

    def spawn_once(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """Run `work` like `spawn`, after cancelling a task of the same name."""
        self._tasks.cancel(name)
        self._tasks.spawn(work, name=name)

    def warm(self) -> None:
        """Start the browser in advance, so that the first task starts faster."""
        self._tasks.spawn(self._warm(), name="warm the browser")

    def show_health(self) -> None:
        """Update the status bar; overridden by `Bridge`."""

    async def _ask(
        self,
        work: Callable[[Engine], Coroutine[Any, Any, _T]],
        then: Callable[[_T], object],
        failed: Callable[[EngineError], object] | None,
    ) -> None:
        try:
            await self._tried.wait()
            answer = await work(self.engine)
        except EngineError as error:
            if failed is None:
                raise
            failed(error)
        else:
            then(answer)

    async def _warm(self) -> None:
        await self._tried.wait()
        if self._engine is not None:
            warming = asyncio.ensure_future(self._engine.warm())
            await asyncio.sleep(0)
            self.show_health()  # Shows "starting"
            await warming
            self.show_health()

    def _tell(self, error: Exception) -> None:
        if not isinstance(error, EngineError):
            log.error("a task of the window failed", exc_info=error)
            self.broken.emit(error)
            return
        self.failed.emit(error)
        self.show_health()


class LedgerCalls(EngineCalls):
    """Add and remove further ledgers, also before the window's own ledger is open.

    `ledgers_changed` reports an added or removed ledger, a new state or a new number of tasks.
    Tasks of such a ledger have ids that end in `@label`, and views with a `ledger`.
    """

    ledgers_changed = Signal()

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._wanted: dict[str, Beside] = {}  # Ledgers kept until the engine exists
        self._told_ledgers: tuple[LedgerState, ...] = ()

    @property
    def ledgers(self) -> tuple[LedgerState, ...]:
        """The current state of each further ledger."""
        if self._engine is not None:
            return self._engine.ledgers.states
        wanted = self._wanted.values()
        return tuple(LedgerState(one.label, one.path, one.watch_only) for one in wanted)

    def add_ledger(self, beside: Beside) -> None:
        """Show this ledger too; `ledgers` reports its state.

        Raises: BadLabel: the label is invalid or already in use.
        """
        if self._engine is not None:
            self._engine.ledgers.add(beside)
        else:
            check_label(beside.label, self._wanted)
            self._wanted[beside.label] = beside
        self.show_ledgers()

    def remove_ledger(self, label: str) -> None:
        """Show it no more; nothing happens to its folder. One that is not there is no error."""
        if self._engine is None:
            self._wanted.pop(label, None)
        elif any(one.label == label for one in self.ledgers):
            self._engine.ledgers.remove(label)
        self.show_ledgers()

    def change_ledger(
        self, label: str, *, new_label: str | None = None, watch_only: bool | None = None
    ) -> None:
        """Rename a ledger, or change whether it is read-only.

        Raises: NoSuchLedger: no ledger has this label. BadLabel: the new label is invalid; nothing
        has changed.
        """
        found = next((one.beside for one in self.ledgers if one.label == label), None)
        if found is None:
            raise NoSuchLedger(label=label)
        watched = found.watch_only if watch_only is None else watch_only
        if new_label is not None and new_label != label:
            check_label(new_label, [one.label for one in self.ledgers])
            self.remove_ledger(label)
            self.add_ledger(Beside(found.path, new_label, watched))
        elif self._engine is not None:
            self._engine.ledgers.allow(label, watch_only=watched)
        else:
            self._wanted[label] = Beside(found.path, label, watched)
        self.show_ledgers()

    def show_ledgers(self) -> None:
        """Emit `ledgers_changed` after a change."""
        if (now := self.ledgers) != self._told_ledgers:
            self._told_ledgers = now
            self.ledgers_changed.emit()

    def _hand_over(self, engine: Engine) -> None:
        """Pass the further ledgers to the new engine."""
        engine.ledgers.told = self.show_ledgers
        wanted, self._wanted = self._wanted, {}
        for beside in wanted.values():
            engine.ledgers.add(beside)


# Sample site, served by this process while the window is open.

PAGES = 24
ARGS = {"max_pages": 25, "delay_ms": 200, "concurrency": 2}


class Sample:
    """Server of the sample site, started on first use."""

    def __init__(self) -> None:
        self._site: Any = None
        self._name = QCoreApplication.translate("Sample", "Sample crawl")

    def is_sample(self, record: TaskRecord) -> bool:
        """Return whether this is a crawl of the site, whose server may have ended since."""
        is_named = record.engine is not None and record.engine.name == self._name
        return is_named and record.url.startswith("http://127.0.0.1:")

    async def request(self, *, has_browser: bool) -> Asked:
        """Start the server and return a crawl of the whole site, which works without a browser."""
        if self._site is None:
            from engine.sample.site import Site  # Rarely needed

            self._site = Site(PAGES)
            await asyncio.to_thread(self._site.start)
        engine = {} if has_browser else {"engine": "static"}
        return Asked(link_follower(), {"url": self._site.url, **ARGS, **engine}, self._name)

    async def close(self) -> None:
        if self._site is not None:
            await asyncio.to_thread(self._site.stop)


HEALTH_MS = 1000
AGAIN_S = 2.0  # Delay before the next attempt to follow the ledger
CLOSE_S = 5.0


class Bridge(LedgerCalls):
    """The engine as the window uses it; every signal carries one record.

    `programs` is the server for other programs, which stays off until its settings are applied.

    `answered` carries the token of a request with its record or its error, which is then not
    reported elsewhere.
    """

    opened = Signal()
    batch = Signal(Batch)
    loaded = Signal()  # The list shows the whole ledger; emitted by the window
    news = Signal(Batch)  # Views with more than progress, as filtered by the list
    health = Signal(Health)
    started = Signal(TaskRecord)
    resumed = Signal(str)  # The task whose pages a new one keeps
    answered = Signal(int, object)
    cancelled = Signal(Cancelled)
    events = Signal(str, EventPart)
    workers = Signal(object)  # of clusters in use: WorkerViews, None while no task uses a cluster
    unusable = Signal(EngineError)

    def __init__(self, settings: Settings, *, accepts: bool = True) -> None:
        super().__init__(settings)
        self._accepts = accepts
        self._making: asyncio.Future[Engine] | None = None
        self._flow = BatchThrottle(self)
        self._flow.batch.connect(self.batch)
        self._told = Told()
        self._history = EventFollower(self._read_events, self._told.has_ended, self.events.emit)
        self._last_health: Health | None = None
        self._last_workers: tuple[WorkerView, ...] | None = None
        self._look = asyncio.Event()
        self._sample = Sample()
        self._silence = ""  # Message about an unresponsive folder while its ledger is opened
        self._standstill = ""  # Reason why the list does not follow the open ledger
        self._requests: dict[str, Asked] = {}
        self.programs = ProgramServer(lambda: self.engine, self)
        self._pulse = QTimer(self, interval=HEALTH_MS)
        self._pulse.timeout.connect(self._look_at_engine)

    def open(self) -> None:
        """Open the ledger and follow it."""
        self._pulse.start()
        self._tasks.spawn(self._open(), name="open the ledger")

    def start(
        self, kind: str, args: Mapping[str, Any], parent: str | None = None, token: int = 0
    ) -> None:
        """Start a task and emit `started` or `failed`; a `token` adds or substitutes `answered`."""
        self.begin(Asked(kind, dict(args)), parent, token)

    def begin(self, asked: Asked, parent: str | None = None, token: int = 0) -> None:
        """Start a task like `start`, with a name and terms (budgets, a contract)."""
        self._tasks.spawn(self._start(asked, parent, token), name=f"start {asked.kind}")

    def remember_request(self, record: TaskRecord, asked: Asked) -> None:
        """Keep the complete request of a task started here, so that Undo can restore it."""
        self._requests[record.task_id] = asked

    def start_again(self, record: TaskRecord) -> bool:
        """Start the request of this task again; False if the request is incomplete.

        Requests of this window are kept with their secrets, while a record omits them.
        """
        if not self.can_start_again(record):
            return False
        self._tasks.spawn(self._repeat(record.task_id), name="repeat a task")
        return True

    def can_start_again(self, record: TaskRecord) -> bool:
        return self.remembers(record.task_id) or repeatable(record)

    def remembers(self, task_id: str) -> bool:
        """Return whether this window started the task and has its request with secrets."""
        return task_id in self._requests

    async def repeat(self, task_id: str) -> TaskRecord:
        """Start the request of this task as a new task, with its secrets where they are kept.

        Raises: CannotRepeat, and the errors of a start.
        """
        asked = self._requests.get(task_id) or await self._sample_again(task_id)
        if asked is None:
            return await self.engine.requests.rerun(task_id)
        record = await self.engine.requests.start(
            asked.kind, asked.args, name=asked.name, parent=task_id, terms=asked.terms
        )
        self.remember_request(record, asked)
        return record

    async def remainder(self, task_id: str, page: str) -> Remainder:
        """Return the failed parts of a task as a request, with its secrets where they are kept.

        Raises: the errors of `Requests.remainder`.
        """
        whole = self._requests.get(task_id)
        return await self.engine.requests.remainder(task_id, page=page, whole=whole)

    async def retry(self, found: Remainder, page: str) -> TaskRecord:
        """Start the failed parts that `remainder` found. Raises the errors of `Requests.retry`."""
        whole = self._requests.get(found.task_id)
        record = await self.engine.requests.retry(found.task_id, page=page, whole=whole)
        if whole is not None:
            self.remember_request(record, found.whole)
        return record

    async def resume(self, task_id: str) -> TaskRecord:
        """Start a new task that keeps the pages of this crawl and goes on where it stopped.

        Raises: CannotResume, CannotRepeat, and the errors of a start.
        """
        asked = self._requests.get(task_id)
        if asked is None and await self._sample_again(task_id) is not None:
            return await self.repeat(task_id)  # its site has another address now
        record = await self.engine.requests.resume(task_id, asked)
        if asked is not None:
            self.remember_request(record, asked)
        self.resumed.emit(task_id)
        return record

    def cancel(
        self, task_ids: Iterable[str], reason: str | None = None, waiting: Iterable[str] = ()
    ) -> None:
        """Cancel these tasks and emit one `cancelled` for all, with the `waiting` ids."""
        work = self._cancel(list(task_ids), reason, frozenset(waiting))
        self._tasks.spawn(work, name="cancel")

    def follow_events(self, task_id: str | None, place: int = -1) -> None:
        """Emit the events of this task only, newest first.

        With a `place` (a byte offset of the file) only the events around it are read.
        """
        self._tasks.cancel("events")
        if task_id is None:
            return
        history = self._history
        whole = place < 0
        told = history.follow(task_id) if whole else history.look_at(task_id, place)
        self._tasks.spawn(told, name="events")

    def show_events(self, shown: bool) -> None:
        """Read events only while they are visible."""
        self._history.show(shown)

    def start_sample(self) -> None:
        """Crawl the sample site, which this process serves."""
        self._tasks.spawn(self._start_sample(), name="sample crawl")

    def hold(self, held: bool) -> None:
        """Hold back batches for a turn or two of the event loop."""
        self._flow.hold(held)

    def create_root(self) -> None:
        """Create the removed folder of the ledger again, and list it."""

        async def create(engine: Engine) -> None:
            await engine.create_root()

        self.ask(create, lambda _: self.rescan(), name="create the folder")

    def rescan(self) -> None:
        """Rescan every folder now, and retry a ledger that failed to open."""
        self._look.set()
        if self._engine is not None:
            self._engine.tasks.rescan()
        self.show_health()

    @staticmethod
    def problems(asked: Asked) -> tuple[Problem, ...]:
        """Return the problems of a request without starting it."""
        return problems(asked.kind, asked.args, asked.name, asked.terms)

    def captures_nothing(self, asked: Asked) -> bool:
        """Return whether a valid request would store no unit if it started now."""
        return self._engine is not None and self._engine.requests.captures_nothing(asked)

    @property
    def own_tasks(self) -> tuple[TaskId, ...]:
        """What this window runs or has queued."""
        return () if self._engine is None else self._engine.own.task_ids

    @property
    def waiting_tasks(self) -> tuple[TaskId, ...]:
        """What this window has queued and not started."""
        executor = self._engine.own.executor if self._engine is not None else None
        return () if executor is None else tuple(filter(executor.waits, self.own_tasks))

    async def close(self) -> None:
        """Stop following, cancel running tasks and close the browser within about 5 s."""
        self._pulse.stop()
        began = time.monotonic()
        await self.programs.close()  # First, so that no program starts anything more
        grace_s = max(1.0, CLOSE_S - (time.monotonic() - began))
        await self._keep_promises()
        await self._tasks.close()
        if self._making is not None:
            # A ledger that is still opening may hold its lease already.
            (engine,) = await asyncio.gather(self._making, return_exceptions=True)
            if isinstance(engine, Engine):
                await engine.close(grace_s)
        await self._sample.close()

    @property
    def cluster_workers(self) -> tuple[WorkerView, ...] | None:
        """The workers of clusters that tasks of this window use; None: no task uses one."""
        return self._last_workers

    def _look_at_engine(self) -> None:
        self.show_health()
        workers = None if self._engine is None else self._engine.cluster_workers()
        if workers != self._last_workers:
            self._last_workers = workers
            self.workers.emit(workers)

    def show_health(self) -> None:
        """Emit the engine's health if it has changed."""
        health = self.look_at_health()
        if health != self._last_health:
            self._last_health = health
            self.health.emit(health)
        self.show_ledgers()
        for error in self._engine.own.take_lost() if self._engine is not None else ():
            self.failed.emit(error)

    def look_at_health(self) -> Health:
        """Return the engine's health, or a substitute before the engine exists."""
        if self._engine is not None:
            health = self._engine.health()
            if not self._standstill:
                return health
            reason = f"The list stands still; it is tried again: {self._standstill}"
            return replace(health, watcher="polling", watcher_reason=reason)
        watcher = "gone" if self._trouble else "live"
        reason = str(self._trouble or "")
        if self._silence:
            watcher, reason = "silent", self._silence
        root, slots = str(self._settings.root), self._settings.slots
        return Health(root=root, watcher=watcher, watcher_reason=reason, slots=slots)

    async def _open(self) -> None:
        """Open and follow the ledger, and retry after each failure."""
        while True:
            try:
                await self._follow_changes()
                return
            except Exception as error:  # noqa: BLE001 - a list without updates must not look live
                self._stand_still(error)
            await self._pause()

    def _stand_still(self, error: Exception) -> None:
        """Report once why the list is not live."""
        words = str(error) or type(error).__name__
        news = words not in (self._standstill, str(self._trouble))
        if news:
            log.error("the ledger cannot be followed, trying again", exc_info=error)
        if not isinstance(error, EngineError):
            error = LedgerUnusable(path=str(self._settings.root), reason=words)
        if self._engine is None:
            self._has_tried(error)
            self.unusable.emit(error)
        else:
            self._standstill = words
            if news:
                self.failed.emit(error)
        self.show_health()

    async def _follow_changes(self) -> None:
        if self._engine is None:
            self._making = asyncio.ensure_future(self._make())
            await self._await_answer(self._making)
            self._engine = engine = await asyncio.shield(self._making)
            self._has_tried(None)
            self._hand_over(engine)
            if self._accepts:
                engine.schedules.keep_running()
            self.show_health()
            self.opened.emit()
        self._told.start_over()
        async for batch in self._engine.tasks.changes():
            self._standstill = ""
            self.show_health()
            self._flow.add(self._told.whole(batch))
            self._history.hear(batch)

    async def _await_answer(self, making: asyncio.Future[Engine]) -> None:
        """Wait for the folder, and report one that does not respond (a dead network drive)."""
        silence = ask_for(self._settings)
        if not (await asyncio.wait({making}, timeout=SILENT_S))[0]:
            self._silence = silence()
            self.show_health()
            await asyncio.wait({making})
            self._silence = ""

    async def _make(self) -> Engine:
        engine = await asyncio.to_thread(Engine, self._settings, accepts=self._accepts, light=True)
        try:
            await engine.open(list_first=True)
        except BaseException:
            await engine.close(0)
            raise
        return engine

    async def _pause(self) -> None:
        self._look.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(AGAIN_S):
                await self._look.wait()

    async def _start(self, asked: Asked, parent: str | None = None, token: int = 0) -> None:
        kind, args, terms = asked.kind, asked.args, asked.terms
        try:
            record = await self.engine.requests.start(
                kind, args, name=asked.name, parent=parent, terms=terms
            )
        except EngineError as error:
            if not token:
                raise
            self.answered.emit(token, error)
            return
        self.remember_request(record, asked)
        self.started.emit(record)
        if token:
            self.answered.emit(token, record)
        self.show_health()

    async def _repeat(self, task_id: str) -> None:
        self.started.emit(await self.repeat(task_id))
        self.show_health()

    async def _start_sample(self) -> None:
        await self._start(await self._sample_request())

    async def _sample_request(self) -> Asked:
        has_browser = self.look_at_health().browser != "missing"
        return await self._sample.request(has_browser=has_browser)

    async def _sample_again(self, task_id: str) -> Asked | None:
        """Return the request of a sample crawl of an earlier window, whose site has ended."""
        entry = (await self.engine.tasks.get(task_id)).entry
        is_sample = isinstance(entry, TaskRecord) and self._sample.is_sample(entry)
        return await self._sample_request() if is_sample else None

    async def _cancel(
        self, task_ids: list[str], reason: str | None, waiting: frozenset[str]
    ) -> None:
        self.cancelled.emit(await cancel_all(self._cancel_one, task_ids, reason, waiting))
        self.show_health()

    async def _cancel_one(self, task_id: str, reason: str | None) -> TaskRecord:
        return await self.engine.commands.cancel(task_id, reason)

    async def _read_events(self, one: str, before: Offset, since: Offset) -> History[EventRow]:
        return await self.engine.tasks.history(one, event_row, before=before, since=since)
