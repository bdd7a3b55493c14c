"""Forward proxy that enforces the egress policy, with its own thread and event loop.

All traffic of a browser passes it: redirects, page resources, WebSockets, script requests. It
connects to the very addresses that the policy checked (`egress_policy`), so that a name cannot
change its meaning between check and connection. It has its own thread and loop, because the
engine's loop may belong to a window.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from engine.egress.connecting import Connect, connect
from engine.egress.egress_policy import Policy
from engine.egress.proxy_listener import Ports, ProxyListener, unknown_ports
from engine.model.errors import BrowserFailed, BrowserOutOfFiles
from engine.model.process_limits import is_shortage

START_S = 10.0
STOP_S = 2.0
SETTLE_TURNS = 10  # loop iterations; the server, the clients and their servers close in five
_T = TypeVar("_T")
_G = TypeVar("_G")


class Proxy:
    """Starts with its first listener; `close` ends the listeners and the thread."""

    def __init__(self, through: Connect = connect) -> None:
        self._connect = through
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._listeners: dict[ProxyListener, Callable[[], bool]] = {}
        self._blocking_listener: ProxyListener | None = None

    async def open_listener(
        self,
        policies: Sequence[Policy],
        needed: Callable[[], bool] = lambda: True,
        ports: Callable[[], Ports] = unknown_ports,
    ) -> ProxyListener:
        """Open a port through which only addresses allowed by one of `policies` are reachable.

        A browser that dies may not report it: opening a listener closes those no longer
        `needed`.

        Raises:
            BrowserFailed: no port is available.
        """
        for idle in [each for each, is_needed in self._listeners.items() if not is_needed()]:
            self.end(idle)
        opened = ProxyListener(policies, self._connect, ports)
        self._listeners[opened] = needed
        try:
            await self.run(opened.open())
        except OSError as failed:
            self._listeners.pop(opened, None)
            reason = failed.strerror or "it took too long"
            kind = BrowserOutOfFiles if is_shortage(failed) else BrowserFailed
            raise kind(reason=f"its proxy cannot listen: {reason}") from failed
        return opened

    async def blocking_listener(self) -> ProxyListener:
        """Return the listener for requests outside any task, which it blocks."""
        if self._blocking_listener is None:
            self._blocking_listener = await self.open_listener(())
        return self._blocking_listener

    def end(self, listener: ProxyListener) -> None:
        """Close a listener and its connections; repeated calls do nothing."""
        if listener in self._listeners and self._loop is not None:
            del self._listeners[listener]
            self._loop.call_soon_threadsafe(listener.shut)

    def call(self, work: Callable[[_G], None], given: _G) -> None:
        """Have a function called on the proxy's loop, if it still runs."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(work, given)

    async def close(self) -> None:
        """End every listener and the thread, within 2 s."""
        loop, self._loop = self._loop, None
        thread, self._thread = self._thread, None
        listeners, self._listeners, self._blocking_listener = set(self._listeners), {}, None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(_shut, loop, listeners)
        await asyncio.to_thread(thread.join, STOP_S)

    @property
    def is_running(self) -> bool:
        """Whether its loop runs: it has been used, and is not closed."""
        return self._loop is not None

    async def run(self, work: Coroutine[Any, Any, _T], limit_s: float = START_S) -> _T:
        """Run work on the proxy's loop, and return its result. Raises TimeoutError, and its own."""
        if self._loop is None:
            self._loop = _new_loop()
            self._thread = threading.Thread(
                target=_run, args=(self._loop,), name="forward proxy", daemon=True
            )
            self._thread.start()
        async with asyncio.timeout(limit_s):
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def _new_loop() -> asyncio.AbstractEventLoop:
    """Create a loop by class: in a window, the default policy would create another Qt loop."""
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()  # select() is limited to 512 sockets there
    else:
        loop = asyncio.SelectorEventLoop()
        loop.set_exception_handler(_note_shortage)
        return loop


def _note_shortage(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Note a lack of descriptors, at which a loop stops accepting connections for a second."""
    if not is_shortage(context.get("exception")):
        loop.default_exception_handler(context)


def _shut(loop: asyncio.AbstractEventLoop, listeners: set[ProxyListener]) -> None:
    for listener in listeners:
        listener.shut()
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
    """Wait for cancelled connections, and for the transports, which close step by step."""
    await asyncio.gather(*tasks, return_exceptions=True)
    for _ in range(SETTLE_TURNS):
        await asyncio.sleep(0)
