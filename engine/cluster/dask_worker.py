"""Dask's worker and scheduler of this program, also for `dask worker --preload` of this module.

A worker loads pages for engines that call its handlers. Unlike Dask's own worker it goes on when
its scheduler ends: engines still reach it by its address, and it registers again with the next
scheduler of that address.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final
from weakref import WeakSet

import dask.config
from distributed import Scheduler, Security, Worker
from distributed.batched import BatchedSend
from distributed.comm import Comm, CommClosedError
from distributed.core import Status

from engine.cluster.background import beside, until
from engine.cluster.page_records import BUNDLE, FETCH, HELLO, LEAVES, report_of
from engine.cluster.page_server import PageServer
from engine.cluster.wire import Misbehaviour
from engine.pages.fetch import IdleState

log = logging.getLogger(__name__)

BACK_S: Final = 0.5  # pause before a lost scheduler is looked for
REFUSED_S: Final = 2.0  # until a scheduler that does not accept a worker is asked again
LEAVE_S: Final = 2.0  # until pages in progress are given up
CLOSE_S: Final = 5.0
_NEW_SCHEDULER: Final = ("worker-heartbeat-missing", "worker-heartbeat-error")
_NO_PAGES: Final = "127.0.0.1:0"  # of the server of pages about itself, which Dask always starts
_PRELOADED: Final[dict[str, AsyncExitStack]] = {}


Reached = Callable[[], Awaitable[None]]


async def _at_once() -> None:
    """Leave it to Dask to try the scheduler."""


class CrawlWorker(Worker):  # type: ignore[misc]  # Dask's classes are not read by mypy
    """Dask's worker; it survives the end of its scheduler.

    `connected` is called with its address after each connection with a scheduler. `engines` are
    those that use it. `reached` returns when the scheduler answers; a lost one is asked then only.
    """

    connected: Callable[[str], None]
    reached: Reached
    engines: Engines

    async def handle_scheduler(self, comm: Comm) -> None:
        """Read the scheduler's messages, and register again when it is lost."""
        with contextlib.suppress(CommClosedError):
            await self.handle_stream(comm)
        if self.status in (Status.running, Status.paused):
            log.warning("The scheduler is lost; this worker waits for it")
            self.batched_stream.abort()
            await asyncio.sleep(BACK_S)
            await self._register_again()

    async def _register_again(self) -> None:
        """Register with the scheduler, until it accepts this worker or the worker ends."""
        is_said = False
        self.periodic_callbacks["heartbeat"].stop()  # the registration starts it again
        while self.status in (Status.running, Status.paused):
            self.batched_stream = BatchedSend(interval="2ms", loop=self.loop)
            try:
                await self.reached()
                await self._register_with_scheduler()
            except ValueError as refused:
                is_said = _say_refused(refused, self.name, is_said=is_said)
                await asyncio.sleep(REFUSED_S)
            else:
                self.connected(str(self.address))
                return

    async def close(self, *given: Any, reason: str = "worker-close", **named: Any) -> str | None:
        """Close the worker, but for a heartbeat that a new scheduler does not know."""
        if reason in _NEW_SCHEDULER:
            log.warning("The scheduler does not know this worker, which registers again")
            self.batched_stream.abort()  # ends `handle_scheduler`, if that did not notice
            return None
        await self.engines.leave()
        found: str | None = await super().close(*given, reason=reason, **named)
        return found


def _say_refused(refused: BaseException | None, name: object, *, is_said: bool) -> bool:
    """Log once why a scheduler does not accept this worker. Returns True, for the next time.

    The scheduler may still know a worker of this name that has ended, or another one that lives.
    Dask takes the text of another server for a length, for which there is no memory.
    """
    if isinstance(refused, MemoryError):
        refused = ValueError("no server of Dask answers there")
    if not is_said and "name taken" in str(refused):
        log.warning("The name %s is taken at the scheduler; this worker waits for it", name)
    elif not is_said:
        log.warning("The scheduler does not accept this worker, which asks again: %s", refused)
    return True


def _quieten() -> None:
    """Let Dask log warnings only, serve no pages about itself, and measure itself seldom.

    By default a worker samples its threads 100 times and its loop 50 times a second, which takes
    6 ms CPU for each page of a crawl with 8 pages per second.
    """
    logging.getLogger("distributed").setLevel(logging.WARNING)
    # It would show a line of Dask's code; that a name is unknown is reported by this program.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"distributed\.utils")
    routes: list[str] = []
    dask.config.set(
        {
            "distributed.worker.http.routes": routes,
            "distributed.scheduler.http.routes": routes,
            "distributed.worker.profile.enabled": False,
            "distributed.admin.tick.interval": "1s",
            "distributed.admin.system-monitor.interval": "5s",
        }
    )


class Engines:
    """The connections of the engines that use a worker, which learn of its orderly end."""

    def __init__(self) -> None:
        self._comms: WeakSet[Comm] = WeakSet()
        self._loading: dict[Comm, asyncio.Future[None]] = {}  # done with the reply
        self._leaving = asyncio.Event()

    def add_handlers(self, worker: Worker, server: PageServer) -> None:
        """Let a Dask worker load pages with `server`."""

        async def hello(comm: Comm) -> bytes:
            self._comms.add(comm)
            return LEAVES if self._leaving.is_set() else server.hello()

        async def fetch(comm: Comm, page: bytes = b"") -> Any:
            return await self._answered(comm, _fetched(comm, server, page))

        async def bundle(comm: Comm, page: bytes = b"") -> Any:
            return await self._answered(comm, server.bundle(page))

        worker.handlers[HELLO] = hello
        worker.handlers[FETCH] = fetch
        worker.handlers[BUNDLE] = bundle

    async def leave(self) -> None:
        """Give up the pages in progress, and let all engines know that this worker ends."""
        self._leaving.set()
        for comm in [one for one in self._comms if one not in self._loading]:
            with contextlib.suppress(CommClosedError, OSError):
                await comm.write(LEAVES)
        if self._loading:
            await asyncio.wait([*self._loading.values()], timeout=LEAVE_S)

    async def _answered(self, comm: Comm, work: Coroutine[Any, Any, bytes]) -> Any:
        """Return the reply that `work` makes.

        The end of the engine's connection, and that of this worker, end the work.
        """
        self._comms.add(comm)
        gone = asyncio.Event()
        comm.stream.set_close_callback(gone.set)
        self._loading[comm] = asyncio.get_running_loop().create_future()
        loading = asyncio.ensure_future(work)
        ends = [asyncio.ensure_future(event.wait()) for event in (gone, self._leaving)]
        try:
            await asyncio.wait({loading, *ends}, return_when=asyncio.FIRST_COMPLETED)
            is_done = loading.done()
        finally:
            for one in (loading, *ends):  # without an effect on one that is done
                one.cancel()
            await asyncio.wait({loading, *ends})
            self._loading.pop(comm).set_result(None)
        if loading.cancelled() if is_done else gone.is_set():
            return Status.dont_reply
        if comm.stream is not None:  # Dask forgets a closed one
            comm.stream.set_close_callback(None)
        if not is_done:
            return LEAVES
        return b"" if isinstance(loading.exception(), Misbehaviour) else loading.result()


async def _fetched(comm: Comm, server: PageServer, page: bytes) -> bytes:
    """Load a page, and report its states meanwhile."""
    states: asyncio.Queue[IdleState] = asyncio.Queue()
    async with beside(_report(comm, states)):
        return await server.fetch(page, states.put_nowait)


async def _report(comm: Comm, states: asyncio.Queue[IdleState]) -> None:
    """Send the states of a page to its engine, until its reply is there.

    Dask writes a short message as a whole, so that a cancellation cuts none.
    """
    with contextlib.suppress(CommClosedError, OSError):
        while True:
            await comm.write(report_of(await states.get()))


async def run_worker(
    address: str,
    server: PageServer,
    stop: asyncio.Event,
    connected: Callable[[str], None],
    security: Mapping[str, Any] | None = None,
    reached: Reached = _at_once,
) -> None:
    """Serve the engines that use the scheduler at `address`, until `stop` is set.

    `connected` is called with the worker's own address after each connection with a scheduler.
    `security` replaces Dask's own settings, and binds the worker to this machine; its process is
    expected to end afterwards. `reached` returns when a scheduler that was lost answers.
    """
    _quieten()
    is_said = False
    async with server.running():
        while not stop.is_set():
            worker = CrawlWorker(
                address,
                nthreads=server.slots,
                name=server.name,
                security=Security(**security) if security else Security(),
                host="127.0.0.1" if security else None,
                dashboard=False,
                dashboard_address=_NO_PAGES,
                memory_limit=0,
            )
            worker.connected, worker.engines, worker.reached = connected, Engines(), reached
            worker.engines.add_handlers(worker, server)
            try:
                await until(stop, _started(worker))
            except RuntimeError as failed:
                if not isinstance(failed.__cause__, ValueError | MemoryError):
                    raise
                is_said = _say_refused(failed.__cause__, server.name, is_said=is_said)
                await until(stop, asyncio.sleep(REFUSED_S))
                continue
            is_said = False
            await until(stop, worker.finished())
            if security is not None:  # the scheduler ends as well
                return
            with contextlib.suppress(TimeoutError, CommClosedError, OSError):
                async with asyncio.timeout(CLOSE_S):
                    await worker.close(timeout=CLOSE_S / 2, executor_wait=False, nanny=False)
            await until(stop, reached())


async def _started(worker: CrawlWorker) -> None:
    await worker
    worker.connected(str(worker.address))


async def run_scheduler(
    port: int, stop: asyncio.Event, connected: Callable[[str], None], security: Mapping[str, Any]
) -> None:
    """Run a scheduler for this machine, until `stop` is set.

    `connected` is called with its address; 0 as `port` chooses a free one. The process is expected
    to end afterwards.
    """
    _quieten()
    scheduler = Scheduler(
        host="127.0.0.1",
        port=port,
        security=Security(**security),
        dashboard=False,
        dashboard_address=_NO_PAGES,
    )
    await scheduler
    connected(str(scheduler.address))
    await until(stop, scheduler.finished())


async def dask_setup(worker: Worker) -> None:
    """Let a worker of `dask worker --preload engine.cluster.dask_worker` load pages."""
    server = PageServer(str(worker.name), worker.state.nthreads)
    stack = AsyncExitStack()
    await stack.enter_async_context(server.running())
    _PRELOADED[worker.id] = stack
    engines = Engines()
    engines.add_handlers(worker, server)
    stack.push_async_callback(engines.leave)


async def dask_teardown(worker: Worker) -> None:
    """Let the engines know of the end of a worker that `dask_setup` prepared; close its browser."""
    if (stack := _PRELOADED.pop(worker.id, None)) is not None:
        await stack.aclose()
