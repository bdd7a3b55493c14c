"""Between the window and the engine: typed signals out, plain methods in. Owns the tasks it starts.

Nothing here is waited for by a slot: a slot calls a method, the answer comes as a signal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from engine.config import Settings
from engine.errors import (
    EngineError,
    InvalidArguments,
    LedgerUnusable,
    Problem,
    ShuttingDown,
)
from engine.feed import Batch
from engine.records import EventSlice, Health, TaskId, TaskRecord
from engine.service import Engine
from gui.flow import Flow

log = logging.getLogger(__name__)

HEALTH_MS = 1000
EVENTS_S = 0.25  # how soon a line that somebody appended is seen in the details
AT_ONCE = 4  # cancel requests under way together: each waits for a disk
AGAIN_S = 2.0  # until the ledger is tried again after it could not be followed
CLOSE_S = 5.0
SAMPLE_PAGES = 24
SAMPLE_ARGS = {"max_pages": 25, "delay_ms": 200, "concurrency": 2}


class TaskSet:
    """Background tasks with one owner. Nothing spawned here outlives `close`."""

    def __init__(self, report: Callable[[Exception], None]) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._report = report
        self._closed = False

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """Start `work`; a failure goes to `report` at once, never to the void."""
        if self._closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(self._guard(work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # one cancelled before its first step

    def cancel(self, name: str) -> None:
        """End the tasks of this name, if there are any."""
        for task in self._tasks:
            if task.get_name() == name:
                task.cancel()

    async def close(self) -> None:
        """Cancel every task and wait until each has finished its own cleanup."""
        self._closed = True
        pending = list(self._tasks)  # the set shrinks while we wait
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _guard(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - here a failure becomes something to see
            self._report(error)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What came of cancelling several tasks: the records as they stand now, and the refusals."""

    records: tuple[TaskRecord, ...]
    refused: tuple[EngineError, ...]


class Bridge(QObject):
    """One engine as the window sees it. Every signal carries one record."""

    opened = Signal()
    batch = Signal(Batch)
    health = Signal(Health)
    started = Signal(TaskRecord)
    refused = Signal(InvalidArguments)
    cancelled = Signal(Cancelled)
    events = Signal(str, EventSlice)
    failed = Signal(EngineError)
    unusable = Signal(EngineError)
    broken = Signal(Exception)

    def __init__(self, settings: Settings, *, accepts: bool = True) -> None:
        super().__init__()
        self._settings, self._accepts = settings, accepts
        self._engine: Engine | None = None
        self._tasks = TaskSet(self._tell)
        self._flow = Flow(self)
        self._flow.batch.connect(self.batch)
        self._last_health: Health | None = None
        self._look = asyncio.Event()
        self._site: Any = None
        self._trouble = ""
        self._requests: dict[str, tuple[str, dict[str, Any]]] = {}
        self._pulse = QTimer(self, interval=HEALTH_MS)
        self._pulse.timeout.connect(self.show_health)

    def open(self) -> None:
        """Open the ledger and follow it from now on."""
        self._pulse.start()
        self._tasks.spawn(self._open(), name="open the ledger")

    def warm(self) -> None:
        """Start the browser in the background, so that the first task need not wait for it."""
        self._tasks.spawn(self._warm(), name="warm the browser")

    def start(self, kind: str, args: Mapping[str, Any], parent: str | None = None) -> None:
        """Start a task: `started` or, for mistakes in it, `refused`."""
        self._tasks.spawn(self._start(kind, args, parent), name=f"start {kind}")

    def start_again(self, task_id: str) -> bool:
        """Start the request of this task once more; False if it was not made in this window.

        Requests are kept in memory only: on disk they stand redacted.
        """
        request = self._requests.get(task_id)
        if request is not None:
            self.start(*request, parent=task_id)
        return request is not None

    def cancel(self, task_ids: Iterable[str], reason: str | None = None) -> None:
        """Ask these tasks to stop: one `cancelled` for all of them."""
        self._tasks.spawn(self._cancel(list(task_ids), reason), name="cancel")

    def follow_events(self, task_id: str | None) -> None:
        """Send the events of this task, from its first one on, and of no other any more."""
        self._tasks.cancel("events")
        if task_id is not None:
            self._tasks.spawn(self._follow_events(task_id), name="events")

    def start_sample(self) -> None:
        """Crawl the small site that comes with the program; it is served from here."""
        self._tasks.spawn(self._start_sample(), name="sample crawl")

    def rescan(self) -> None:
        """Look at every folder again, now; also try again a ledger that could not be opened."""
        self._look.set()
        if self._engine is not None:
            self._engine.rescan()
        self.show_health()

    @staticmethod
    def problems(kind: str, args: Mapping[str, Any]) -> tuple[Problem, ...]:
        """What the engine would refuse in this request, without starting it."""
        return Engine.problems(kind, args)

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """Run `work` as one of the bridge's own tasks."""
        self._tasks.spawn(work, name=name)

    @property
    def own_tasks(self) -> tuple[TaskId, ...]:
        """What this window runs or has queued."""
        return () if self._engine is None else self._engine.own_tasks

    @property
    def engine(self) -> Engine:
        """The engine, once the ledger is open.

        Raises:
            ShuttingDown: it is not open yet, or not any more.
        """
        if self._engine is None:
            raise ShuttingDown()
        return self._engine

    async def close(self) -> None:
        """Stop following, ask what runs here to stop, end the browser; about 5 s at most."""
        self._pulse.stop()
        await self._tasks.close()
        if self._engine is not None:
            await self._engine.close(CLOSE_S)
        if self._site is not None:
            await asyncio.to_thread(self._site.stop)

    def show_health(self) -> None:
        """Send the engine's health if it has changed."""
        health = self.look_at_health()
        if health != self._last_health:
            self._last_health = health
            self.health.emit(health)

    def look_at_health(self) -> Health:
        """The engine's health; before there is one, what is known without it."""
        if self._engine is not None:
            return self._engine.health()
        watcher = "gone" if self._trouble else "live"
        root = str(self._settings.root)
        slots = self._settings.slots
        return Health(root=root, watcher=watcher, watcher_reason=self._trouble, slots=slots)

    async def _open(self) -> None:
        """Open and follow the ledger, again and again while it cannot be used: it may come back."""
        while True:
            try:
                await self._follow_changes()
                return
            except LedgerUnusable as error:
                self._trouble = str(error)
                self.unusable.emit(error)
                self.show_health()
            await self._pause()

    async def _follow_changes(self) -> None:
        if self._engine is None:
            # its making already opens the folder, which may be slow
            engine = await asyncio.to_thread(Engine, self._settings, accepts=self._accepts)
            await engine.open()
            self._engine, self._trouble = engine, ""
            self.show_health()
            self.opened.emit()
        async for batch in self._engine.changes():
            self._flow.add(batch)

    async def _pause(self) -> None:
        self._look.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(AGAIN_S):
                await self._look.wait()

    async def _warm(self) -> None:
        warming = asyncio.ensure_future(self.engine.warm())
        await asyncio.sleep(0)
        self.show_health()  # "starting"
        await warming
        self.show_health()

    async def _start(self, kind: str, args: Mapping[str, Any], parent: str | None) -> None:
        try:
            record = await self.engine.start(kind, args, parent=parent)
        except InvalidArguments as mistakes:
            self.refused.emit(mistakes)
            return
        self._requests[record.task_id] = (kind, dict(args))
        self.started.emit(record)
        self.show_health()

    async def _start_sample(self) -> None:
        if self._site is None:
            from engine.sample.site import Site  # few windows ever need it

            self._site = Site(SAMPLE_PAGES)
            await asyncio.to_thread(self._site.start)
        await self._start("crawl", {"url": self._site.url, **SAMPLE_ARGS}, None)

    async def _cancel(self, task_ids: list[str], reason: str | None) -> None:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(task_id: str) -> TaskRecord | EngineError:
            async with gate:
                try:
                    return await self.engine.cancel(task_id, reason)
                except EngineError as error:
                    return error

        answers = await asyncio.gather(*map(one, task_ids))
        self.cancelled.emit(
            Cancelled(
                tuple(answer for answer in answers if isinstance(answer, TaskRecord)),
                tuple(answer for answer in answers if isinstance(answer, EngineError)),
            )
        )
        self.show_health()

    async def _follow_events(self, task_id: str) -> None:
        offset, first = 0, True
        while True:
            piece = await self.engine.events(task_id, offset)
            if first or piece.next_offset != offset:
                self.events.emit(task_id, piece)
            more, offset, first = piece.next_offset != offset, piece.next_offset, False
            if not more:
                await asyncio.sleep(EVENTS_S)

    def _tell(self, error: Exception) -> None:
        if isinstance(error, EngineError):
            self.failed.emit(error)
            self.show_health()
        else:
            log.error("a task of the window failed", exc_info=error)
            self.broken.emit(error)
