"""The live lists of several ledgers as one: the own one's reader also tells what the others do.

The own ledger's batches pass as they come. Those of the others wait here for the next of
them, and call for it, so that the own ledger costs nothing more than it does alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing

from msgspec.structs import replace

from engine.model.records import TaskId
from engine.service.feed import Batch
from engine.service.router.connection import CLOSE_S, Guest, Neighbour, as_engine_error

log = logging.getLogger(__name__)

Follow = Callable[[Guest], AsyncGenerator[Batch, None]]
MANY = 100  # tasks whose ids are marked in a thread: more of them would be felt


class _Part:
    """One of the others, as far as it was told."""

    task: asyncio.Task[None]

    def __init__(self, neighbour: Neighbour) -> None:
        self.neighbour = neighbour
        self.known: set[TaskId] = set()
        # What has not answered yet holds nobody up: it counts once it tells something.
        self.last = Batch(complete=True)


class Merging:
    """The others beside one reader of the own ledger. `call` has the own feed tell something;
    where it `counts`, what it hears is how these ledgers stand."""

    def __init__(self, follow: Follow, call: Callable[[], object], *, counts: bool = True) -> None:
        self._follow, self._call, self._counts = follow, call, counts
        self._parts: dict[str, _Part] = {}
        self._waiting: list[Batch] = []
        self._own = Batch(complete=True)
        self._ending: set[asyncio.Task[None]] = set()

    def begin(self, neighbour: Neighbour) -> None:
        """Follow this ledger from now on."""
        label, part = neighbour.beside.label, _Part(neighbour)
        part.task = asyncio.create_task(self._begin(part), name=f"follow ledger {label}")
        self._parts[label] = part

    def end(self, label: str) -> asyncio.Task[None]:
        """Follow it no more: what it told is gone. The task that followed it ends soon."""
        part = self._parts.pop(label)
        part.task.cancel()
        self._ending.add(part.task)
        part.task.add_done_callback(self._ending.discard)
        self._drop(part)
        self._call()
        return part.task

    def joined(self, own: Batch) -> Iterator[Batch]:
        """What is to be told now: a batch of the own ledger, and what waits of the others."""
        self._own = own
        if not self._parts and not self._waiting:
            yield own
            return
        waiting, self._waiting = self._waiting, []
        if own.views or own.gone or not waiting:
            yield self._summed(own)
        yield from map(self._summed, waiting)

    async def close(self) -> None:
        """Follow nobody any more; who hangs is not waited for."""
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
        await part.neighbour.lane.run(self._keep_up(part))

    async def _keep_up(self, part: _Part) -> None:
        """Until it is cancelled; a ledger that fails is followed anew."""
        while True:
            try:
                await self._pass_on(part)
            except Exception as error:
                log.warning("a ledger beside cannot be followed", exc_info=error)
                if self._counts:
                    part.neighbour.fail(as_engine_error(error, part.neighbour.beside.path))
            else:
                return  # it is being closed, or has nothing of the kind
            self._drop(part)
            self._call()
            await part.neighbour.pause()

    async def _pass_on(self, part: _Part) -> None:
        neighbour = part.neighbour
        marks, engine = neighbour.marks, await neighbour.ready()
        async with aclosing(self._follow(engine)) as batches:
            async for batch in batches:
                if len(batch.views) > MANY:
                    marked = await asyncio.to_thread(marks.batch, batch)
                else:
                    marked = marks.batch(batch)
                self._take(part, marked)

    def _take(self, part: _Part, batch: Batch) -> None:
        part.last = replace(batch, views=(), gone=())
        part.known.difference_update(batch.gone)
        part.known.update(view.task_id for view in batch.views)
        self._waiting.append(batch)
        self._call()
        if self._counts:
            part.neighbour.hear(batch)
        else:
            part.neighbour.runs = part.known

    def _drop(self, part: _Part) -> None:
        gone, part.known = tuple(part.known), set()
        part.last = Batch(complete=True)
        if gone:
            self._waiting.append(Batch(gone=gone))
