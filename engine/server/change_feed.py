"""Changes of all tasks for any number of listeners, from one reader of the live list.

The list is read only while somebody listens. A listener that does not keep up is dropped: it must
list the tasks again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Final

import msgspec

from engine.service.engine import Batch, Engine
from engine.verbs.json_answers import view_data

log = logging.getLogger(__name__)

MOST_WAITING: Final = 256  # blocks that wait for one listener
MANY: Final = 50  # tasks of a batch that are encoded in a thread


class Listener:
    """Blocks for one client, in order."""

    def __init__(self) -> None:
        self._blocks: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._dropped = False

    @property
    def is_closed(self) -> bool:
        """Whether no block is left and none will come."""
        return self._dropped and not self._blocks

    def put(self, block: bytes) -> None:
        if len(self._blocks) >= MOST_WAITING:
            self._blocks.clear()
            self.drop()
        if not self._dropped:
            self._blocks.append(block)
            self._news.set()

    def drop(self) -> None:
        """Send no more."""
        self._dropped = True
        self._news.set()

    async def next(self) -> bytes | None:
        """Return the next block; None if none will come."""
        while not self._blocks and not self._dropped:
            self._news.clear()
            await self._news.wait()
        return self._blocks.popleft() if self._blocks else None


class LiveReader:
    """One reader of an engine's live list; `begin` and `stop` follow the listeners.

    Args:
        pass_on: receives each batch.
        ended: called when the list ends by itself, as when the engine closes.
    """

    def __init__(
        self,
        engine: Engine,
        pass_on: Callable[[Batch], Awaitable[None]],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._pass_on = pass_on
        self._ended = ended
        self._reading: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def begin(self) -> bool:
        """Start reading; return False if it reads already."""
        if self._reading is not None:
            return False
        self._reading = asyncio.create_task(self._read(), name="read the list for programs")
        self._reading.add_done_callback(self._on_end)
        return True

    def stop(self) -> None:
        """Cancel the reading; a listener that comes now starts another one."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            self._ending.add(reading)

    async def close(self) -> None:
        """Stop, and wait for the end."""
        self.stop()
        if self._ending:
            await asyncio.wait(tuple(self._ending))

    def _on_end(self, reading: asyncio.Task[None]) -> None:
        self._ending.discard(reading)
        if not reading.cancelled() and (error := reading.exception()) is not None:
            log.error("the list cannot be read for programs", exc_info=error)
        if reading is self._reading:
            self._reading = None
            self._ended()

    async def _read(self) -> None:
        async with aclosing(self._engine.tasks.changes()) as batches:
            async for batch in batches:
                await self._pass_on(batch)


class ChangeFeed:
    """The live list of an engine as server-sent events."""

    def __init__(self, engine: Engine) -> None:
        self._reader = LiveReader(engine, self._pass_on, self._drop_all)
        self._listeners: set[Listener] = set()
        self._total: int | None = None  # once the list is complete

    @contextmanager
    def listening(self) -> Iterator[Listener]:
        """Register a listener; the first one starts the reading, the last one ends it."""
        listener = Listener()
        self._listeners.add(listener)
        if self._reader.begin():
            self._total = None
        elif self._total is not None:
            listener.put(_ready(self._total))
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                self._reader.stop()

    async def close(self) -> None:
        """End every listener and the reading."""
        self._drop_all()
        await self._reader.close()

    def _drop_all(self) -> None:
        for listener in self._listeners:
            listener.drop()

    async def _pass_on(self, batch: Batch) -> None:
        if self._total is None:
            if batch.complete:
                self._total = batch.total
                self._send(_ready(batch.total))
            return
        self._total = batch.total
        if batch.views or batch.gone:
            many = len(batch.views) > MANY
            self._send(await asyncio.to_thread(_changes, batch) if many else _changes(batch))

    def _send(self, block: bytes) -> None:
        for listener in self._listeners:
            listener.put(block)


def _ready(total: int) -> bytes:
    return _block("ready", {"total": total})


def _changes(batch: Batch) -> bytes:
    tasks = [view_data(view) for view in batch.views]
    return _block("tasks", {"tasks": tasks, "gone": [*batch.gone], "total": batch.total})


def _block(name: str, data: object) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
