"""Threads of its own for what may hang: a dead network disk must not keep others from theirs.

`asyncio.to_thread` takes the loop's default executor. Where that is a `Lanes`, work that is
done inside of `Lane.run` goes to the lane's own threads; anywhere else a lane changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
THREADS: Final = 3  # of each lane: one may be looking long, one listens, one answers
_POOL: ContextVar[ThreadPoolExecutor | None] = ContextVar("lane", default=None)


class Lanes(ThreadPoolExecutor):
    """A loop's default executor; see the module."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        pool = _POOL.get()
        if pool is not None:
            with suppress(RuntimeError):  # closed meanwhile: what is left of its work ends here
                return pool.submit(fn, *args, **kwargs)
        return super().submit(fn, *args, **kwargs)


class Lane:
    """The threads of one outside thing; none is made before it is needed."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix=f"oc-{name}")

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
        """Take nothing more; what hangs is left to itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
