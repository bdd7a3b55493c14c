"""Work beside a block: it ends with the block, and its errors are logged and end nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Final

log = logging.getLogger(__name__)

PAUSE_S: Final = 1.0  # after a round with an unexpected error


@contextlib.asynccontextmanager
async def beside(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `works` during the block, and cancel them at its end.

    An `asyncio.TaskGroup` would wrap the errors of the block, and end it with an error of a work.
    """
    running = Tasks()
    for number, work in enumerate(works):
        running.begin(number, work)
    try:
        yield
    finally:
        await running.end()


class Tasks:
    """Tasks by key, which are owned by a block that calls `end`."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[None]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._running

    def begin(self, key: Hashable, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`; `key` must not be in use. An error of it is logged."""
        task = self._running[key] = asyncio.create_task(work)
        task.add_done_callback(partial(self._ended, key))

    def _ended(self, key: Hashable, task: asyncio.Task[None]) -> None:
        del self._running[key]
        if not task.cancelled() and (failed := task.exception()) is not None:
            log.error("Work in the background failed", exc_info=failed)

    async def wait(self, limit_s: float) -> None:
        """Wait until those that run now are done, but at most `limit_s` seconds."""
        if self._running:
            await asyncio.wait(list(self._running.values()), timeout=limit_s)

    async def end(self) -> None:
        """Cancel them all, and wait for their end."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def rounds(look: Callable[[], Awaitable[None]]) -> None:
    """Call `look`, which pauses by itself, again and again; its errors are logged."""
    while True:
        if not await logged(look()):
            await asyncio.sleep(PAUSE_S)


async def logged(work: Awaitable[None]) -> bool:
    """Await `work`, log its error, and return whether there was none."""
    try:
        await work
    except Exception:  # any error: the rounds must go on
        log.exception("Work in the background failed")
        return False
    return True


async def until(stop: asyncio.Event, work: Awaitable[Any]) -> None:
    """Await `work`, or cancel it when `stop` is set."""
    working, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        stopped.cancel()
        await asyncio.wait({working, stopped})
    if not working.cancelled():
        working.result()
