"""Background tasks with one owner, which reports every failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class TaskSet:
    """Set of background tasks that all end with `close`."""

    def __init__(self, report: Callable[[Exception], None]) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._report = report
        self._closed = False

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """Start `work`; a failure is passed to `report` immediately."""
        if self._closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(self._guard(work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task cancelled before its first step leaves the coroutine unclosed.
        task.add_done_callback(lambda _: work.close())

    def cancel(self, name: str) -> None:
        """Cancel the tasks of this name."""
        for task in self._tasks:
            if task.get_name() == name:
                task.cancel()

    async def close(self) -> None:
        """Cancel all tasks and wait for their cleanup."""
        self._closed = True
        pending = list(self._tasks)  # The set changes while tasks end
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _guard(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - every failure is reported
            self._report(error)
