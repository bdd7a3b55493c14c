"""The fence around the browser: a forward proxy of our own, on a thread of its own.

Everything that a browser sends goes through it: redirects, parts of pages, WebSockets, what
a script asks for. It connects to the very addresses that the policy judged (`egress`), so
that no name can mean something else a moment later. It has a thread and a loop of its own,
because the engine's loop may be a window's.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from engine.browser.egress.connecting import Connect, connect
from engine.browser.egress.egress_policy import Policy
from engine.browser.egress.proxy_listener import Lane, Ports, untold
from engine.model.errors import BrowserFailed

START_S = 10.0
STOP_S = 2.0
_T = TypeVar("_T")


class Proxy:
    """Starts with its first lane; `close` ends the lanes and the thread."""

    def __init__(self, through: Connect = connect) -> None:
        self._connect = through
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lanes: dict[Lane, Callable[[], bool]] = {}
        self._nowhere: Lane | None = None

    async def lane(
        self,
        policies: Sequence[Policy],
        needed: Callable[[], bool] = lambda: True,
        ports: Callable[[], Ports] = untold,
    ) -> Lane:
        """A port at which only what one of `policies` allows can be reached.

        Not every browser that dies tells it: lanes that are not `needed` any more are closed
        when the next one is opened.

        Raises:
            BrowserFailed: no port can be had.
        """
        for idle in [each for each, asked in self._lanes.items() if not asked()]:
            self.end(idle)
        opened = Lane(policies, self._connect, ports)
        self._lanes[opened] = needed
        try:
            await self._there(opened.open())
        except OSError as failed:
            self._lanes.pop(opened, None)
            reason = failed.strerror or "it took too long"
            raise BrowserFailed(reason=f"its proxy cannot listen: {reason}") from failed
        return opened

    async def nowhere(self) -> Lane:
        """The lane of what belongs to no task: the browser's own requests. All are refused."""
        if self._nowhere is None:
            self._nowhere = await self.lane(())
        return self._nowhere

    def end(self, lane: Lane) -> None:
        """Close a lane and what is connected through it; harmless when called twice."""
        if lane in self._lanes and self._loop is not None:
            del self._lanes[lane]
            self._loop.call_soon_threadsafe(lane.shut)

    async def close(self) -> None:
        """End every lane and the thread, within 2 s."""
        loop, self._loop = self._loop, None
        thread, self._thread = self._thread, None
        lanes, self._lanes, self._nowhere = set(self._lanes), {}, None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(_shut, loop, lanes)
        await asyncio.to_thread(thread.join, STOP_S)

    async def _there(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._loop is None:
            self._loop = _new_loop()
            self._thread = threading.Thread(
                target=_run, args=(self._loop,), name="forward proxy", daemon=True
            )
            self._thread.start()
        async with asyncio.timeout(START_S):
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def _new_loop() -> asyncio.AbstractEventLoop:
    """Named by its class: in a window the usual way to a loop would give another one of Qt's."""
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()  # select() ends at 512 sockets there
    else:
        return asyncio.SelectorEventLoop()


def _shut(loop: asyncio.AbstractEventLoop, lanes: set[Lane]) -> None:
    for lane in lanes:
        lane.shut()
    loop.call_soon(loop.stop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(_settled(left))
    finally:
        loop.close()


async def _settled(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancelled connections clean up after themselves; transports close a turn later."""
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)
