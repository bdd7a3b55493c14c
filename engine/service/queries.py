"""Queries of tasks: one task, a list, its events and their search, its result, the live list."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from engine.contracts.task_run_folders import RunFolders
from engine.export.output import new_file
from engine.kinds.commands.command_document import command_task
from engine.ledger.event_search import Found, Needle
from engine.ledger.machine import wall_ms
from engine.ledger.reader import LedgerReader, TaskAliases, is_command_task_id
from engine.ledger.routing import OWN_ONLY, Router, routed
from engine.ledger.wait import wait_terminal
from engine.ledger.watch import Watch
from engine.model.errors import EngineError, ResultMissing
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import SIGN, plain_id
from engine.model.records import (
    TASK_RUNS_FOLDER,
    EventSlice,
    History,
    Status,
    TaskEvent,
    TaskId,
    TaskRecord,
    TaskView,
    UnitTimes,
    Unreadable,
)
from engine.results.findings import Findings
from engine.service.feed import Batch, Feed
from engine.service.router.merging import Merging

if TYPE_CHECKING:
    from engine.query import Filter
    from engine.service.maintenance import LedgerContext

Told = Callable[[int, int], object]  # bytes done, bytes in total; called from a worker thread


class Past:
    """Events of tasks of every ledger. All raise NotATaskId, TaskNotFound, TaskUnreadable."""

    part_name = "past"

    def __init__(self, root: Path, router: Router = OWN_ONLY) -> None:
        self._root = root
        self.router = router

    @routed()
    async def find(self, task_id: str, text: str, since: int = 0) -> Found:
        """Find events with `text` in their lines, ignoring case, some MiB from byte `since`.

        Repeat from `next_offset` until it stays the same: a last line may be incomplete.
        """
        return await asyncio.to_thread(
            lambda: self._reader.find_events(task_id, Needle(text), since)
        )

    @routed()
    async def place_of(self, task_id: str, ts_ms: float) -> int:
        """Return the byte of the first event at or after `ts_ms`."""
        return await asyncio.to_thread(lambda: self._reader.event_place(task_id, ts_ms))

    @routed()
    async def unit_times(self, task_id: str, since: int = 0) -> UnitTimes:
        """Return the durations of finished units, some MiB of them from byte `since`.

        Repeat from `next_offset` until there are no more.
        """
        return await asyncio.to_thread(lambda: self._reader.unit_times(task_id, since))

    async def save_events(self, task_id: str, place: Path, told: Told) -> int:
        """Copy all events unchanged to the file `place`; return their size in bytes.

        An existing file is replaced, since the user has confirmed the place. A cancelled copy
        leaves no file.

        Raises:
            ExportRefused, ExportFailed: the file cannot be written there.
        """
        await self.router.check_outside(place)
        return await self._save_events(task_id, place, told)

    @routed()
    async def _save_events(self, task_id: str, place: Path, told: Told) -> int:
        stop = threading.Event()
        try:
            return await asyncio.to_thread(self._copy, task_id, place, told, stop)
        finally:
            stop.set()

    async def save_lines(self, lines: Iterable[str], place: Path) -> int:
        """Write `lines` as text to the file `place`; return its size. Raises as `save_events`."""
        await self.router.check_outside(place)
        return await asyncio.to_thread(self._write, lines, place)

    @property
    def _reader(self) -> LedgerReader:
        """A new reader, created in the thread that uses it: opening a root may wait for a disk."""
        return LedgerReader(self._root)

    def _copy(self, task_id: str, place: Path, told: Told, stop: threading.Event) -> int:
        done = 0
        with new_file(place, self._root, force=True) as out:
            for block, size in self._reader.event_blocks(task_id):
                if stop.is_set():
                    raise InterruptedError  # cancelled; the file is dropped
                out.write(block)
                done += len(block)
                told(done, size)
        return done

    def _write(self, lines: Iterable[str], place: Path) -> int:
        done = 0
        with new_file(place, self._root, force=True) as out:
            for line in lines:
                done += out.write(f"{line}\n".encode("utf-8", "replace"))
        return done


T = TypeVar("T")
Views = list[TaskView]  # named, because `list` is a method of the class


class TaskQueries:
    """Read tasks of the own ledger, and by qualified ids those of other ledgers."""

    part_name = "tasks"

    def __init__(self, context: LedgerContext, *, light: bool) -> None:
        self.router = context.router
        self._context = context
        self._settings = context.settings
        self._own = context.own
        self._light = light  # a reader of changes keeps every task, so records omit long values
        self._aliases = TaskAliases()
        self._task_runs = RunFolders(context.settings.home, wall_ms)
        self._feeds: set[Feed] = set()

    def learn(self, command_task_id: str, task_id: str) -> None:
        """Cache the folder of a new command task."""
        self._aliases.add(command_task_id, task_id)

    @routed()
    async def ledger_id(self, given: str) -> TaskId:
        """Return the id of the task's folder, for that id or a command task's own (seed 002).

        Raises:
            TaskNotFound: no command task has this id.
        """
        if not is_command_task_id(given):
            return TaskId(given)
        return await asyncio.to_thread(self._aliases.ledger_id, self._context.ledger, given)

    @routed()
    async def get(self, task_id: str) -> TaskView:
        """Return one task as the list shows it.

        Raises:
            NotATaskId, TaskNotFound.
        """
        found = await self.ledger_id(task_id)
        view = (await self._views([found]))[0]
        entry = view.entry
        if isinstance(entry, Unreadable) or (entry.is_terminal and view.units != entry.units):
            self.nudge(found)  # a list may show an older, readable state, or no progress
        return view

    async def list(
        self,
        *,
        status: Collection[str] = (),
        kind: Collection[str] = (),
        since: int | None = None,
        query: str = "",
        limit: int | None = 50,
    ) -> Views:
        """List tasks of all open ledgers, newest first; `since` is ms since 1970.

        `query` is in the filter language (`engine.query`); `limit` counts matching tasks, None
        returns all.

        Raises:
            QueryError: the query is invalid.
        """
        wanted, others = _filter_of(query), tuple(self.router.all_open())
        if not others:
            read = partial(self._context.ledger.list, status=status, kind=kind, since=since)
            return await asyncio.to_thread(self._matching, read, wanted, limit)
        most = None if wanted is not None else limit
        read = partial(self._context.ledger.list, status=status, kind=kind, since=since)
        found = await asyncio.to_thread(self._matching, read, None, most)
        for each in others:
            queries: TaskQueries = each.part(self.part_name)
            listed = queries.list(status=status, kind=kind, since=since, limit=most)
            found += await each.ask(listed)
        return await asyncio.to_thread(_newest, found, wanted, limit)

    @routed()
    async def meta(self, task_id: str) -> dict[str, Any]:
        """Return the whole meta.json, with fields of other programs.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        return await asyncio.to_thread(self._context.ledger.read_raw, await self.ledger_id(task_id))

    @routed()
    async def command_task(self, task_id: str, *, results: bool = True) -> dict[str, Any] | None:
        """Return a command task in the shape of seed 002, by either id; None for other kinds.

        `results=False` omits the results of commands, which makes it cheap enough to poll.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        found = await self.ledger_id(task_id)
        return await asyncio.to_thread(command_task, self._context.ledger, found, results=results)

    @routed()
    async def head(self, task_id: str) -> dict[str, Any]:
        """Return the part of result.json before its units; empty without a result.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        record = (await self.get(task_id)).entry
        kind = record.kind if isinstance(record, TaskRecord) else ""
        found = await self.ledger_id(task_id)
        return await asyncio.to_thread(lambda: Findings(self._context.ledger, found, kind).head())

    @routed()
    async def loaded_all(self, task_id: str) -> bool:
        """Return whether a crawl loaded all that it found, so that a missing page is a removed one.

        Other kinds have no pages to load: how they ended says nothing of that.

        Raises: as `head`.
        """
        entry = (await self.get(task_id)).entry
        if isinstance(entry, TaskRecord) and not traits_of(entry.kind).crawls:
            return True
        if not isinstance(entry, TaskRecord) or entry.status != Status.COMPLETED:
            return False
        head = await self.head(task_id)
        summary = head.get("summary")
        found = summary if isinstance(summary, dict) else head
        return bool(found.get("stopped_by", "frontier") == "frontier")

    @routed()
    async def result(self, task_id: str) -> BinaryIO | None:
        """Open the result with all of its units for reading; None without a result."""
        try:
            return await asyncio.to_thread(
                self._context.ledger.whole_result, await self.ledger_id(task_id)
            )
        except ResultMissing:
            return None

    @routed()
    async def events(self, task_id: str, offset: int = 0) -> EventSlice:
        """Read events from a byte offset, at most about 1 MiB; continue at `next_offset`."""
        task_id = await self.ledger_id(task_id)
        return await asyncio.to_thread(lambda: self._place_of(task_id).read_events(task_id, offset))

    @routed()
    async def history(
        self,
        task_id: str,
        make: Callable[[TaskEvent, int], T],
        *,
        before: int | None = None,
        since: int | None = None,
    ) -> History[T]:
        """Return the newest 1,000 events for display, or those before (since) a byte of the file.

        `make` converts each event, given the byte at which its line begins, in a worker thread;
        the event itself is not kept.
        """
        task_id = await self.ledger_id(task_id)
        return await asyncio.to_thread(
            lambda: self._place_of(task_id).history(task_id, make, before=before, since=since)
        )

    @routed()
    async def wait(self, task_id: str, timeout_ms: int = 60_000) -> TaskRecord:
        """Wait until the task has ended, and return its record.

        Raises:
            WaitTimeout: it did not end within `timeout_ms`; it continues.
            NotATaskId, TaskNotFound, TaskRemoved, TaskUnreadable.
        """
        found, away_s = await self.ledger_id(task_id), self._settings.away_s
        return await wait_terminal(self._context.ledger, found, timeout_ms, away_s)

    async def join(self, task_id: str) -> None:
        """Wait until an own task has left this process; return at once for other ledgers."""
        if SIGN not in task_id:
            await self._own.join(await self.ledger_id(task_id))

    def is_run(self, subject: str) -> bool:
        """Return whether this is the id of a task run; for other ledgers by their list.

        The disk of another ledger may be slow."""
        there = self.router.of(subject)
        if there is not None:
            return subject in there.runs
        try:
            return self._task_runs.has(subject)
        except EngineError:
            return False

    def folder_of(self, task_id: str) -> Path:
        """Return the folder with the files of a task or a task run."""
        there = self.router.of(task_id)
        if there is not None:
            return there.folder_of(plain_id(task_id), is_run=task_id in there.runs)
        return self._place_of(task_id).root / task_id

    def changes(self) -> AsyncGenerator[Batch, None]:
        """Yield the live list: all tasks of all ledgers in batches, newest first, then changes."""
        return self.router.merged(self._changes(), Merging("tasks", self.call))

    async def _changes(self) -> AsyncGenerator[Batch, None]:
        watch = Watch(self._context.ledger.root)
        feed = Feed(
            self._context.ledger,
            watch,
            ours=self._own.owns,
            light=self._light,
            runs=self._own.run_of,
        )
        self._feeds.add(feed)
        try:
            async with aclosing(feed.batches()) as batches:
                async for batch in batches:
                    yield batch
                    if batch.complete:
                        self._context.maintenance.reap_soon()
                    if any(view.orphaned for view in batch.views):
                        self._context.maintenance.orphan_seen()
        finally:
            self._feeds.discard(feed)
            await feed.close()

    def known_ended(self) -> Iterator[TaskId]:
        """Yield the tasks that a list knows to have ended. From any thread."""
        return chain.from_iterable(feed.ended() for feed in tuple(self._feeds))

    def _place_of(self, task_id: str) -> LedgerReader:
        """Return the ledger of its events; a task run's folder has the layout of a task's."""
        if not self.is_run(task_id):
            return self._context.ledger
        return LedgerReader(self._settings.home / TASK_RUNS_FOLDER)

    def rescan(self) -> None:
        """Read every folder again, and retry ledgers that could not be opened."""
        for feed in self._feeds:
            feed.rescan()
        self.router.rescan()

    def call(self) -> None:
        """Send every reader of `changes` a batch soon, even an empty one."""
        for feed in self._feeds:
            feed.call()

    async def close(self) -> None:
        """End every reader of `changes`."""
        for feed in tuple(self._feeds):
            await feed.close()

    async def _views(self, task_ids: Iterable[TaskId]) -> Views:
        feed = Feed(self._context.ledger, None, ours=self._own.owns, runs=self._own.run_of)
        return await asyncio.to_thread(feed.look, task_ids)

    def _matching(
        self,
        read: Callable[..., Iterable[TaskRecord | Unreadable]],
        wanted: Filter | None,
        limit: int | None,
    ) -> Views:
        feed = Feed(self._context.ledger, None, ours=self._own.owns, runs=self._own.run_of)
        if wanted is None:
            return feed.complete(feed.show(read(limit=limit)))
        now_ms = wall_ms()
        matching = (view for view in feed.show(read(limit=None)) if wanted.shows(view, now_ms))
        return feed.complete([*islice(matching, limit)])

    def nudge(self, task_id: TaskId) -> None:
        """Make every list read this task again."""
        for feed in self._feeds:
            feed.nudge(task_id)

    @property
    def watch(self) -> Watch | None:
        """The watch of any reader of `changes`; None without a reader."""
        return next((feed.watch for feed in self._feeds), None)


def _filter_of(query: str) -> Filter | None:
    """Parse a query; None for an empty one, which matches all tasks."""
    if not query:
        return None
    from engine.query import Filter  # most lists have no query

    wanted = Filter.of(query)
    return wanted if wanted.text else None


def _newest(found: Views, wanted: Filter | None, limit: int | None) -> Views:
    now_ms = wall_ms()
    found = [view for view in found if wanted is None or wanted.shows(view, now_ms)]
    found.sort(key=lambda view: view.entry.created_at, reverse=True)
    return [*islice(found, limit)]
