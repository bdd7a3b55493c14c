"""Between the window and the engine: typed signals out, plain methods in. Owns the tasks it starts.

Nothing here is waited for by a slot: a slot calls a method, the answer comes as a signal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace
from PySide6.QtCore import QTimer, Signal

from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerUnusable, Problem
from engine.model.records import Health, History, TaskId, TaskRecord
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.rerun import Asked, repeatable
from engine.service.router.connection_state import Beside, LedgerState
from engine.service.router.errors import NoSuchLedger
from engine.service.router.ledgers import SILENT_S, Ledgers, ask_for, check_label
from gui.engine_link.cancel_many import Cancelled, cancel_all
from gui.engine_link.engine_calls import Errands
from gui.engine_link.event_follower import EventFollower, Offset, Told
from gui.engine_link.event_rows import EventPart, EventRow, event_row
from gui.engine_link.subscription import Flow

# The ledgers beside the window's own, as the window asks for them; `bridge` is the rest.


class LedgerErrands(Errands):
    """Adds and takes away ledgers at once, also before the own one is open.

    `ledgers_changed`: one came, went, is in another state or has another number of tasks.
    Tasks of such a ledger have ids that end in `@label`, and their views a `ledger`.
    """

    ledgers_changed = Signal()

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._wanted: dict[str, Beside] = {}  # until there is an engine to have them
        self._told_ledgers: tuple[LedgerState, ...] = ()

    @property
    def ledgers(self) -> tuple[LedgerState, ...]:
        """Each ledger beside the own one, as it is now; empty with none."""
        if (all_of_them := self._all) is not None:
            return all_of_them.ledgers
        wanted = self._wanted.values()
        return tuple(LedgerState(one.label, one.path, one.watch_only) for one in wanted)

    def add_ledger(self, beside: Beside) -> None:
        """Show this ledger beside the own one, from now on; how it gets on is in `ledgers`.

        Raises:
            BadLabel: it cannot be called so, or another one is.
        """
        if (all_of_them := self._all) is not None:
            all_of_them.add(beside)
        else:
            check_label(beside.label, self._wanted)
            self._wanted[beside.label] = beside
        self.show_ledgers()

    def remove_ledger(self, label: str) -> None:
        """Show it no more; nothing happens to its folder. One that is not there is no error."""
        if (all_of_them := self._all) is None:
            self._wanted.pop(label, None)
        elif any(one.label == label for one in all_of_them.ledgers):
            all_of_them.remove(label)
        self.show_ledgers()

    def change_ledger(
        self, label: str, *, new_label: str | None = None, watch_only: bool | None = None
    ) -> None:
        """Call it something else, or let it be changed, from now on.

        Raises:
            NoSuchLedger; BadLabel: nothing has changed.
        """
        found = next((one.beside for one in self.ledgers if one.label == label), None)
        if found is None:
            raise NoSuchLedger(label=label)
        watched = found.watch_only if watch_only is None else watch_only
        if new_label is not None and new_label != label:
            check_label(new_label, [one.label for one in self.ledgers])
            self.remove_ledger(label)
            self.add_ledger(Beside(found.path, new_label, watched))
        elif (all_of_them := self._all) is not None:
            all_of_them.allow(label, watch_only=watched)
        else:
            self._wanted[label] = Beside(found.path, label, watched)
        self.show_ledgers()

    def show_ledgers(self) -> None:
        """Send `ledgers_changed` if anything has."""
        if (now := self.ledgers) != self._told_ledgers:
            self._told_ledgers = now
            self.ledgers_changed.emit()

    @property
    def _all(self) -> Ledgers | None:
        return self._engine if isinstance(self._engine, Ledgers) else None

    def _hand_over(self, engine: Ledgers) -> None:
        """The engine is there: it has the ledgers from now on."""
        engine.told = self.show_ledgers
        wanted, self._wanted = self._wanted, {}
        for beside in wanted.values():
            engine.add(beside)


# The site that comes with the program, served from here as long as the window is open.

PAGES = 24
ARGS = {"max_pages": 25, "delay_ms": 200, "concurrency": 2}


class Sample:
    """Serves the sample site from the first time that somebody wants to crawl it."""

    def __init__(self) -> None:
        self._site: Any = None

    async def request(self) -> dict[str, Any]:
        """The arguments of a crawl of the whole site; it is served from now on."""
        if self._site is None:
            from engine.sample.site import Site  # few windows ever need it

            self._site = Site(PAGES)
            await asyncio.to_thread(self._site.start)
        return {"url": self._site.url, **ARGS}

    async def close(self) -> None:
        if self._site is not None:
            await asyncio.to_thread(self._site.stop)


log = logging.getLogger(__name__)

HEALTH_MS = 1000
AGAIN_S = 2.0  # until the ledger is tried again after it could not be followed
CLOSE_S = 5.0


class Bridge(LedgerErrands):
    """One engine as the window sees it. Every signal carries one record.

    `answered` tells who asked with a token what came of it: the record, or the error, which
    then goes to nobody else.
    """

    opened = Signal()
    batch = Signal(Batch)
    news = Signal(Batch)  # what of a batch is more than progress: the list tells it, having sifted
    health = Signal(Health)
    started = Signal(TaskRecord)
    answered = Signal(int, object)
    cancelled = Signal(Cancelled)
    events = Signal(str, EventPart)
    unusable = Signal(EngineError)

    def __init__(self, settings: Settings, *, accepts: bool = True) -> None:
        super().__init__(settings)
        self._accepts = accepts
        self._making: asyncio.Future[Ledgers] | None = None
        self._flow = Flow(self)
        self._flow.batch.connect(self.batch)
        self._told = Told()
        self._history = EventFollower(self._read_events, self._told.has_ended, self.events.emit)
        self._last_health: Health | None = None
        self._look = asyncio.Event()
        self._sample = Sample()
        self._silence = ""  # of the folder of a ledger that is being opened
        self._standstill = ""  # why the list does not follow the open ledger now
        self._requests: dict[str, Asked] = {}
        self._pulse = QTimer(self, interval=HEALTH_MS)
        self._pulse.timeout.connect(self.show_health)

    def open(self) -> None:
        """Open the ledger and follow it from now on."""
        self._pulse.start()
        self._tasks.spawn(self._open(), name="open the ledger")

    def start(
        self, kind: str, args: Mapping[str, Any], parent: str | None = None, token: int = 0
    ) -> None:
        """Start a task: `started` or `failed`; with a token `answered` as well, or instead."""
        self.begin(Asked(kind, dict(args)), parent, token)

    def begin(self, asked: Asked, parent: str | None = None, token: int = 0) -> None:
        """As `start`, with a name and terms (budgets, a contract)."""
        self._tasks.spawn(self._start(asked, parent, token), name=f"start {asked.kind}")

    def remember_request(self, record: TaskRecord, asked: Asked) -> None:
        """This window started it: Undo can bring it back with all that it was given."""
        self._requests[record.task_id] = asked

    def start_again(self, record: TaskRecord) -> bool:
        """Start the request of this task once more; False if it is not known whole.

        Memory holds those of this window with their secrets, a record only without.
        """
        if not self.can_start_again(record):
            return False
        self._tasks.spawn(self._repeat(record.task_id), name="repeat a task")
        return True

    def can_start_again(self, record: TaskRecord) -> bool:
        return self.remembers(record.task_id) or repeatable(record)

    def remembers(self, task_id: str) -> bool:
        """Did this window start it, and so know its request whole, secrets included?"""
        return task_id in self._requests

    async def repeat(self, task_id: str) -> TaskRecord:
        """Start this task's request as a new task, with its secrets where they are remembered.

        Raises:
            CannotRepeat, and what a start can raise.
        """
        asked = self._requests.get(task_id)
        if asked is None:
            return await self.engine.rerun(task_id)
        record = await self.engine.start(
            asked.kind, asked.args, name=asked.name, parent=task_id, terms=asked.terms
        )
        self.remember_request(record, asked)
        return record

    def cancel(
        self, task_ids: Iterable[str], reason: str | None = None, waiting: Iterable[str] = ()
    ) -> None:
        """Ask these tasks to stop: one `cancelled` for all of them, with the `waiting` ids."""
        work = self._cancel(list(task_ids), reason, frozenset(waiting))
        self._tasks.spawn(work, name="cancel")

    def follow_events(self, task_id: str | None, place: int = -1) -> None:
        """Send the events of this task, the newest first, and of no other any more; with a
        `place` (a byte of the file) those around it only."""
        self._tasks.cancel("events")
        if task_id is None:
            return
        history = self._history
        whole = place < 0
        told = history.follow(task_id) if whole else history.look_at(task_id, place)
        self._tasks.spawn(told, name="events")

    def show_events(self, shown: bool) -> None:
        """Read events only while somebody can see them."""
        self._history.show(shown)

    def start_sample(self) -> None:
        """Crawl the small site that comes with the program; it is served from here."""
        self._tasks.spawn(self._start_sample(), name="sample crawl")

    def hold(self, held: bool) -> None:
        """While held no batch is told, for a turn or two."""
        self._flow.hold(held)

    def rescan(self) -> None:
        """Look at every folder again, now; also try again a ledger that could not be opened."""
        self._look.set()
        if self._engine is not None:
            self._engine.rescan()
        self.show_health()

    @staticmethod
    def problems(asked: Asked) -> tuple[Problem, ...]:
        """What the engine would refuse in this request, without starting it."""
        return Engine.problems(asked.kind, asked.args, asked.name, asked.terms)

    @property
    def own_tasks(self) -> tuple[TaskId, ...]:
        """What this window runs or has queued."""
        return () if self._engine is None else self._engine.own_tasks

    async def close(self) -> None:
        """Stop following, ask what runs here to stop, end the browser; about 5 s at most."""
        self._pulse.stop()
        await self._keep_promises()
        await self._tasks.close()
        if self._making is not None:
            # also one that is still being opened: it may hold its lease already
            (engine,) = await asyncio.gather(self._making, return_exceptions=True)
            if isinstance(engine, Engine):
                await engine.close(CLOSE_S)
        await self._sample.close()

    def show_health(self) -> None:
        """Send the engine's health if it has changed."""
        health = self.look_at_health()
        if health != self._last_health:
            self._last_health = health
            self.health.emit(health)
        self.show_ledgers()
        for error in self._engine.take_lost() if self._engine is not None else ():
            self.failed.emit(error)

    def look_at_health(self) -> Health:
        """The engine's health; before there is one, what is known without it."""
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
        """Open and follow the ledger, again and again while that fails: it may come back."""
        while True:
            try:
                await self._follow_changes()
                return
            except Exception as error:  # noqa: BLE001 - a list that stands still must not look live
                self._stand_still(error)
            await self._pause()

    def _stand_still(self, error: Exception) -> None:
        """Say what keeps the list from being live, once."""
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
            self.show_health()
            self.opened.emit()
        self._told.start_over()
        async for batch in self._engine.changes():
            self._standstill = ""
            self.show_health()
            self._flow.add(self._told.whole(batch))
            self._history.hear(batch)

    async def _await_answer(self, making: asyncio.Future[Ledgers]) -> None:
        """Say it if the folder does not answer (a dead network drive), and wait on."""
        silence = ask_for(self._settings)
        if not (await asyncio.wait({making}, timeout=SILENT_S))[0]:
            self._silence = silence()
            self.show_health()
            await asyncio.wait({making})
            self._silence = ""

    async def _make(self) -> Ledgers:
        engine = await asyncio.to_thread(Ledgers, self._settings, accepts=self._accepts)
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
            record = await self.engine.start(
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
        await self._start(Asked("crawl", await self._sample.request()))

    async def _cancel(
        self, task_ids: list[str], reason: str | None, waiting: frozenset[str]
    ) -> None:
        self.cancelled.emit(await cancel_all(self._cancel_one, task_ids, reason, waiting))
        self.show_health()

    async def _cancel_one(self, task_id: str, reason: str | None) -> TaskRecord:
        return await self.engine.cancel(task_id, reason)

    async def _read_events(self, one: str, before: Offset, since: Offset) -> History[EventRow]:
        return await self.engine.history(one, event_row, before=before, since=since)
