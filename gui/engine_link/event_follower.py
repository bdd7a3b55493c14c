"""Tracking of known rows, and following of one task's events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec.structs import replace

from engine.model.errors import EngineError
from engine.model.records import History, TaskId, TaskRecord, Unreadable
from engine.service.feed import Batch
from gui.engine_link.event_rows import KEPT, EventPart, EventRow

log = logging.getLogger(__name__)

Offset = int | None  # A byte offset of the file
EVENTS_S = 0.25  # Poll interval for new event lines
LAST_LOOKS = 4  # Reads after a task ended, because its last event follows its last state
AROUND = 5  # Parts read on each side of a requested place
AGAIN_S = 2.0  # Delay before a failed read is repeated


class Told:
    """Known tasks, used to report removed ones when a feed restarts."""

    def __init__(self) -> None:
        self._entries: dict[str, TaskRecord | Unreadable] = {}
        self._stale: set[str] = set()

    def has_ended(self, task_id: str) -> bool:
        entry = self._entries.get(task_id)
        return isinstance(entry, TaskRecord) and entry.is_terminal

    def start_over(self) -> None:
        """Mark all known tasks as stale until the new feed reports them."""
        self._stale = set(self._entries)

    def whole(self, batch: Batch) -> Batch:
        """Return `batch`, with stale tasks added as removed once the new feed is complete."""
        entries = {view.entry.task_id: view.entry for view in batch.views}
        self._entries.update(entries)
        self._stale.difference_update(entries)
        if batch.complete and self._stale:
            stale, self._stale = self._stale, set()
            batch = replace(batch, gone=(*batch.gone, *map(TaskId, stale)))
        for task_id in batch.gone:
            self._entries.pop(task_id, None)
        return batch


class EventFollower:
    """Read the events of one task, newest first, and only while they are visible.

    `hear` receives every batch, because an ended task is read again only after a change.
    """

    def __init__(
        self,
        read: Callable[[str, Offset, Offset], Awaitable[History[EventRow]]],
        has_ended: Callable[[str], bool],
        tell: Callable[[str, EventPart], object],
    ) -> None:
        self._read, self._has_ended, self._tell = read, has_ended, tell
        self._task_id = ""
        self._news, self._shown = asyncio.Event(), asyncio.Event()
        self._shown.set()

    def show(self, shown: bool) -> None:
        """Set whether the events are visible; hidden events are not read."""
        if shown:
            self._shown.set()
        else:
            self._shown.clear()

    def hear(self, batch: Batch) -> None:
        if batch.tells_of((self._task_id,)):
            self._news.set()

    async def follow(self, task_id: str) -> None:
        """Report existing and new events until cancelled, and retry failed reads.

        The newest events come first, then new events alternate with older ones.
        """
        self._task_id = task_id
        newest = await self._part(task_id, None, None)
        self._tell(task_id, EventPart(newest.events, newest.skipped, earlier=newest.earlier))
        start, told, since, quiet = newest.start, len(newest.events), newest.next_offset, 0
        while True:
            later = await self._part(task_id, None, since)
            quiet = 0 if later.next_offset != since else quiet + 1
            if not quiet:
                since = later.next_offset
                self._tell(task_id, EventPart(later.events, later.skipped))
            if start and told < KEPT:
                older = await self._part(task_id, start, None)
                start, told, quiet = older.start, told + len(older.events), 0
                self._tell(task_id, EventPart(older.events, older.skipped, older=True))
                continue
            await self._pause(quiet)

    async def look_at(self, task_id: str, place: int) -> None:
        """Report the events around byte `place`, the start of a line."""
        self._task_id = task_id
        later = await self._part(task_id, None, place)
        self._tell(task_id, EventPart(later.events, later.skipped))
        start = place
        for _ in range(AROUND):
            if start:
                older = await self._part(task_id, start, None)
                start = older.start
                self._tell(task_id, EventPart(older.events, older.skipped, older=True))
            since, later = later.next_offset, await self._part(task_id, None, later.next_offset)
            if later.next_offset != since:
                self._tell(task_id, EventPart(later.events, later.skipped))

    async def _part(self, task_id: str, before: int | None, since: int | None) -> History[EventRow]:
        while True:
            await self._shown.wait()
            try:
                return await self._read(task_id, before, since)
            except EngineError as error:
                log.info("the events of %s cannot be read now: %s", task_id, error)
                await asyncio.sleep(AGAIN_S)

    async def _pause(self, quiet: int) -> None:
        if not quiet:
            await asyncio.sleep(0)  # Process clicks between the parts of a long history
            return
        self._news.clear()
        done = quiet > LAST_LOOKS and self._has_ended(self._task_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(None if done else EVENTS_S):
                await self._news.wait()
