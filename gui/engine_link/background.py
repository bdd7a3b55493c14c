"""Work in the background with one owner: nothing is forgotten, no failure is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


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
