"""Threads of its own for what may hang: a dead network disk must not keep others from theirs.

`asyncio.to_thread` takes the loop's default executor. Where that is a `Lanes`, work that is
done inside of `Lane.run` goes to the lane's own threads; anywhere else a lane changes nothing.
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
THREADS: Final = 3  # of each lane: one may be looking long, one listens, one answers
Item = tuple["Future[Any]", Callable[[], Any]]


class Lanes(ThreadPoolExecutor):
    """A loop's default executor; see the module."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        pool = _POOL.get()
        if pool is not None:
            with suppress(RuntimeError):  # closed meanwhile: what is left of its work ends here
                return pool.submit(partial(fn, *args, **kwargs))
        return super().submit(fn, *args, **kwargs)


class _Pool:
    """A few threads that nobody waits for at the program's end, unlike those of the library."""

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
        """Drop what waits; threads end with what they are at."""
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
            del item  # or it would keep what it has found until there is more to do
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
    """The threads of one outside thing; none is made before it is needed."""

    def __init__(self, name: str) -> None:
        self._pool = _Pool(f"oc-{name}")

    async def run(self, work: Awaitable[T]) -> T:
        """Await `work`; whatever it, or a task that it starts, does in threads is done here."""
        token = _POOL.set(self._pool)
        try:
            return await work
        finally:
            _POOL.reset(token)

    async def each(self, items: AsyncGenerator[T, Any]) -> AsyncGenerator[T, None]:
        """All that `items` give, each made here."""
        async with aclosing(items):
            while True:
                try:
                    one = await self.run(anext(items))
                except StopAsyncIteration:
                    return
                yield one

    def close(self) -> None:
        """Take nothing more; what hangs is left to itself, and keeps no program from ending."""
        self._pool.close()


_POOL: ContextVar[_Pool | None] = ContextVar("lane", default=None)
