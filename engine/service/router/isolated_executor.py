"""Separate threads for each ledger, so that a dead network disk does not block the others.

`asyncio.to_thread` uses the loop's default executor. If that is a `Lanes`, work inside
`Lane.run` runs on the lane's own threads; otherwise a lane has no effect.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
THREADS: Final = 3  # per lane: for one long read, one watch and one reply
Item = tuple["Future[Any]", Callable[[], Any]]


class Lanes(ThreadPoolExecutor):
    """A loop's default executor; see the module."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        pool = _POOL.get()
        if pool is not None:
            with suppress(RuntimeError):  # closed meanwhile: the rest of its work ends here
                return pool.submit(partial(fn, *args, **kwargs))
        return super().submit(fn, *args, **kwargs)


class _Pool:
    """Daemon threads that do not delay the program's end, unlike those of the library."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._items: SimpleQueue[Item | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Raises RuntimeError once it is closed."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name} is closed")
            self._items.put((future, call))
            if len(self._threads) < THREADS and not self._idle.acquire(blocking=False):
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """Drop queued calls; threads end after their current call."""
        with self._lock:
            self._closed = True
            while not self._items.empty():
                if (item := self._items.get_nowait()) is not None:
                    item[0].cancel()
            for _ in self._threads:
                self._items.put(None)

    def _work(self) -> None:
        while (item := self._items.get()) is not None:
            _done(*item)
            del item  # frees the result before the next wait
            self._idle.release()


def _done(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        found = call()
    except BaseException as error:  # noqa: BLE001 - it is raised where the answer is awaited
        future.set_exception(error)
    else:
        future.set_result(found)


class Lane:
    """Threads of one ledger, created on demand."""

    def __init__(self, name: str) -> None:
        self._pool = _Pool(f"oc-{name}")

    async def run(self, work: Awaitable[T]) -> T:
        """Await `work` with its thread calls, and those of its subtasks, on these threads."""
        token = _POOL.set(self._pool)
        try:
            return await work
        finally:
            _POOL.reset(token)

    async def each(self, items: AsyncGenerator[T, Any]) -> AsyncGenerator[T, None]:
        """Yield `items`, each produced on these threads."""
        async with aclosing(items):
            while True:
                try:
                    one = await self.run(anext(items))
                except StopAsyncIteration:
                    return
                yield one

    def close(self) -> None:
        """Accept no more work; hanging calls do not delay the program's end."""
        self._pool.close()


_POOL: ContextVar[_Pool | None] = ContextVar("lane", default=None)
