"""Looking at a ledger: one task, a list, its files, and the live picture. Nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from engine.export.exports import Exports
from engine.kinds.commands.command_document import command_task
from engine.ledger.command_task_ids import TaskAliases, is_command_task_id
from engine.ledger.ledger import Ledger
from engine.ledger.machine import wall_ms
from engine.ledger.ownership import Owner, Ownership
from engine.ledger.reader import LedgerReader
from engine.ledger.watch import Watch
from engine.model.errors import ResultMissing
from engine.model.records import (
    EventSlice,
    History,
    TaskEvent,
    TaskId,
    TaskRecord,
    TaskView,
    Unreadable,
)
from engine.query import Filter
from engine.results.file_reader import TaskFileReader
from engine.results.findings import Findings
from engine.retention.pruning import Retention
from engine.service.feed import Batch, Feed
from engine.service.task_history import Past

T = TypeVar("T")
Views = list[TaskView]  # named, because inside the class `list` is the verb


class Looking:
    """The part of the engine that looks; `owns` tells which tasks run in this very process."""

    _keeps_all = False  # does who asks for changes keep every task, and so rather a light one?

    def __init__(self, root: Path) -> None:
        self._ledger = Ledger(root)
        self._aliases = TaskAliases()
        self._feeds: set[Feed] = set()
        self.exports = Exports(root)
        self.reading = TaskFileReader(root)
        self.past = Past(root)
        self.retention = Retention(root)

    def owns(self, task_id: str) -> bool:
        """Does this very process run (or queue) the task?"""
        return False

    def run_of(self, task_id: str) -> Ownership:
        """What this process knows of a task that its lease speaks for. From any thread."""
        return Ownership(Owner.HERE, "")

    async def ledger_id(self, given: str) -> TaskId:
        """The id of the task's folder, for that id or for a command task's own (seed 002).

        Raises:
            TaskNotFound: it has the shape of the latter, and there is no such task.
        """
        if not is_command_task_id(given):
            return TaskId(given)
        return await asyncio.to_thread(self._aliases.ledger_id, self._ledger, given)

    async def get(self, task_id: str) -> TaskView:
        """One task as the list shows it.

        Raises:
            NotATaskId, TaskNotFound.
        """
        found = await self.ledger_id(task_id)
        view = (await self._views([found]))[0]
        if isinstance(view.entry, Unreadable):
            self._nudge(found)  # a list may have taken it for whole
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
        """Tasks, newest first. `since` is ms since 1970; without `limit` all of them.

        `query` is in the filter language (`engine.query`); `limit` counts what it lets pass.

        Raises:
            QueryError: it cannot be understood.
        """
        read = partial(self._ledger.list, status=status, kind=kind, since=since)
        return await asyncio.to_thread(self._matching, read, Filter.of(query), limit)

    async def meta(self, task_id: str) -> dict[str, Any]:
        """The whole meta.json as it stands, fields of others included.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        return await asyncio.to_thread(self._ledger.read_raw, await self.ledger_id(task_id))

    async def command_task(self, task_id: str, *, results: bool = True) -> dict[str, Any] | None:
        """A command task in the shape of seed 002, by either id; None for other kinds.

        `results=False` leaves out what the commands found: cheap enough to ask again and again.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        found = await self.ledger_id(task_id)
        return await asyncio.to_thread(command_task, self._ledger, found, results=results)

    async def head(self, task_id: str) -> dict[str, Any]:
        """What result.json says before its units; empty while there is none.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        record = (await self.get(task_id)).entry
        kind = record.kind if isinstance(record, TaskRecord) else ""
        found = await self.ledger_id(task_id)
        return await asyncio.to_thread(lambda: Findings(self._ledger, found, kind).head())

    async def result(self, task_id: str) -> BinaryIO | None:
        """The result with all of its units, open for reading, or None while there is none."""
        try:
            return await asyncio.to_thread(self._ledger.whole_result, await self.ledger_id(task_id))
        except ResultMissing:
            return None

    async def events(self, task_id: str, offset: int = 0) -> EventSlice:
        """Events from a byte offset on, at most about 1 MiB at a time; go on at `next_offset`."""
        task_id = await self.ledger_id(task_id)
        return await asyncio.to_thread(lambda: self._place_of(task_id).read_events(task_id, offset))

    async def history(
        self,
        task_id: str,
        make: Callable[[TaskEvent, int], T],
        *,
        before: int | None = None,
        since: int | None = None,
    ) -> History[T]:
        """The newest 1,000 events, or those before (since) a byte of the file, for eyes.

        Each is made into what is shown by `make` (which is told at which byte its line begins),
        in a worker thread, and then forgotten.
        """
        task_id = await self.ledger_id(task_id)
        return await asyncio.to_thread(
            lambda: self._place_of(task_id).history(task_id, make, before=before, since=since)
        )

    async def changes(self) -> AsyncGenerator[Batch, None]:
        """The live list: all tasks in batches, newest first, then what changes."""
        watch = Watch(self._ledger.root)
        feed = Feed(self._ledger, watch, ours=self.owns, light=self._keeps_all, runs=self.run_of)
        self._feeds.add(feed)
        try:
            async with aclosing(feed.batches()) as batches:
                async for batch in batches:
                    yield batch
                    if batch.complete:
                        self._has_listed()
                    if any(view.orphaned for view in batch.views):
                        self._orphan_seen()
        finally:
            self._feeds.discard(feed)
            await feed.close()

    def _has_listed(self) -> None:
        """A list is complete; told again with each change of it."""

    def _orphan_seen(self) -> None:
        """Some task in the list has lost its owner."""

    def _known_ended(self) -> Iterator[TaskId]:
        """Of which tasks a list knows that they have ended, which is for good. From any thread."""
        return chain.from_iterable(feed.ended() for feed in tuple(self._feeds))

    def _place_of(self, task_id: str) -> LedgerReader:
        """Where the events of this task stand."""
        return self._ledger

    def rescan(self) -> None:
        """Look at every folder again, now."""
        for feed in self._feeds:
            feed.rescan()

    async def _views(self, task_ids: Iterable[TaskId]) -> Views:
        feed = Feed(self._ledger, None, ours=self.owns, runs=self.run_of)
        return await asyncio.to_thread(feed.look, task_ids)

    def _matching(
        self,
        read: Callable[..., Iterable[TaskRecord | Unreadable]],
        wanted: Filter,
        limit: int | None,
    ) -> Views:
        feed = Feed(self._ledger, None, ours=self.owns, runs=self.run_of)
        if not wanted.text:
            return feed.show(read(limit=limit))
        now_ms = wall_ms()
        matching = (view for view in feed.show(read(limit=None)) if wanted.shows(view, now_ms))
        return [*islice(matching, limit)]

    def _nudge(self, task_id: TaskId) -> None:
        for feed in self._feeds:
            feed.nudge(task_id)

    def _watch(self) -> Watch | None:
        return next((feed.watch for feed in self._feeds), None)
