"""The live list of the own ledger, merged with those of other ledgers.

Batches of the own ledger pass immediately. Batches of other ledgers wait here for the next own
batch, and request one, so that the own ledger costs no more than alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Literal

from msgspec.structs import replace

from engine.model.records import TaskId
from engine.service.feed import Batch
from engine.service.router.connection import CLOSE_S, LedgerConnection, as_engine_error

log = logging.getLogger(__name__)

# `tasks` or `runs`: the rows to merge.
Rows = Literal["tasks", "runs"]
MANY = 100  # larger batches are qualified in a thread, to keep the loop responsive


class _Part:
    """Merge state of one other ledger."""

    task: asyncio.Task[None]

    def __init__(self, connection: LedgerConnection) -> None:
        self.connection = connection
        self.known: set[TaskId] = set()
        # A ledger that has not replied counts as complete, so that it delays no list.
        self.last = Batch(complete=True)


class Merging:
    """Merge other ledgers into one reader of the own ledger; `call` requests an own batch. With
    `counts`, its batches update the state of these ledgers."""

    def __init__(self, rows: Rows, call: Callable[[], object], *, counts: bool = True) -> None:
        self._rows, self._call, self._counts = rows, call, counts
        self._parts: dict[str, _Part] = {}
        self._waiting: list[Batch] = []
        self._own = Batch(complete=True)
        self._ending: set[asyncio.Task[None]] = set()

    def begin(self, connection: LedgerConnection) -> None:
        """Start to follow this ledger."""
        label, part = connection.beside.label, _Part(connection)
        part.task = asyncio.create_task(self._begin(part), name=f"follow ledger {label}")
        self._parts[label] = part

    def end(self, label: str) -> asyncio.Task[None]:
        """Stop following a ledger and remove its rows. The task that followed it ends soon."""
        part = self._parts.pop(label)
        part.task.cancel()
        self._ending.add(part.task)
        part.task.add_done_callback(self._ending.discard)
        self._drop(part)
        self._call()
        return part.task

    def joined(self, own: Batch) -> Iterator[Batch]:
        """Yield a batch of the own ledger, and the waiting ones of other ledgers."""
        self._own = own
        if not self._parts and not self._waiting:
            yield own
            return
        waiting, self._waiting = self._waiting, []
        if own.views or own.gone or not waiting:
            yield self._summed(own)
        yield from map(self._summed, waiting)

    async def close(self) -> None:
        """Stop following all ledgers, without waiting for hanging ones."""
        for label in tuple(self._parts):
            self.end(label)
        if self._ending:
            await asyncio.wait(self._ending, timeout=CLOSE_S)

    def _summed(self, batch: Batch) -> Batch:
        all_of_them = [self._own, *(part.last for part in self._parts.values())]
        return replace(
            batch,
            loaded=sum(one.loaded for one in all_of_them),
            total=sum(one.total for one in all_of_them),
            complete=all(one.complete for one in all_of_them),
        )

    async def _begin(self, part: _Part) -> None:
        await part.connection.lane.run(self._keep_up(part))

    async def _keep_up(self, part: _Part) -> None:
        """Follow a ledger until cancelled, again after each failure."""
        while True:
            try:
                await self._pass_on(part)
            except Exception as error:
                log.warning("a ledger beside cannot be followed", exc_info=error)
                if self._counts:
                    part.connection.fail(as_engine_error(error, part.connection.beside.path))
            else:
                return  # it is closing, or has no such rows
            self._drop(part)
            self._call()
            await part.connection.pause()

    async def _pass_on(self, part: _Part) -> None:
        connection = part.connection
        ids, engine = connection.ids, await connection.ready()
        if self._rows == "tasks":
            changes = engine.tasks.changes()
        elif engine.has_runs:
            changes = engine.contracts.run_changes()
        else:
            return
        async with aclosing(changes) as batches:
            async for batch in batches:
                if len(batch.views) > MANY:
                    marked = await asyncio.to_thread(ids.batch, batch)
                else:
                    marked = ids.batch(batch)
                self._take(part, marked)

    def _take(self, part: _Part, batch: Batch) -> None:
        part.last = replace(batch, views=(), gone=())
        part.known.difference_update(batch.gone)
        part.known.update(view.task_id for view in batch.views)
        self._waiting.append(batch)
        self._call()
        if self._counts:
            part.connection.hear(batch)
        else:
            part.connection.runs = part.known

    def _drop(self, part: _Part) -> None:
        gone, part.known = tuple(part.known), set()
        part.last = Batch(complete=True)
        if gone:
            self._waiting.append(Batch(gone=gone))
