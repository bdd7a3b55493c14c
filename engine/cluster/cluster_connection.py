"""Connect a task to a cluster: that of a scheduler's address, or an embedded one.

An embedded cluster is a scheduler and some workers on this machine, for one task. They listen on
the loopback interface, with a certificate of their own, whose key is in no file that stays: no
other user of the machine can use them. Each process reads its orders from standard input and ends
when that is closed, so that none outlives the engine. One that dies is started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from engine.cluster.background import beside, logged, rounds
from engine.cluster.cluster_address import (
    ClusterAddress,
    ClusterUnreachable,
    LocalClusterFailed,
    cluster_address,
    import_library,
    tls_of_dask,
)
from engine.cluster.cluster_pages import ClusterPages, Refuse
from engine.cluster.page_records import Terms
from engine.cluster.worker_pool import ClusterLook, Tell, WorkerPool, workers_of
from engine.model.program import apart, program_command

_ENCRYPTED_ONLY: Final = "the settings of Dask require encryption, which tcp:// has not"


def _tls(address: ClusterAddress) -> ssl.SSLContext | None:
    """Return the certificates for a scheduler; imports Dask, which takes half a second.

    Raises:
        ClusterNotInstalled, ClusterWithoutCertificate
        ClusterUnreachable: Dask's settings forbid connections without certificates.
    """
    if address.scheme == "tls":
        return tls_of_dask(address, "client")
    if import_library("dask.config").get("distributed.comm.require-encryption", None):
        raise ClusterUnreachable(address=address, reason=_ENCRYPTED_ONLY)
    return None


def probe_cluster(address: ClusterAddress, limit_s: float) -> ClusterLook:
    """Return the workers that the scheduler at this address lists, and which cannot be used.

    Raises:
        ClusterUnreachable: it does not answer within `limit_s` seconds; and as `open_cluster`.
    """
    return asyncio.run(workers_of(address, _tls(address), limit_s))


@contextlib.asynccontextmanager
async def open_cluster(
    address: ClusterAddress, terms: Terms, tell: Tell, refuse: Refuse, browser_path: str | None
) -> AsyncIterator[ClusterPages]:
    """Connect to a cluster, or start an embedded one, for the pages of one task.

    `terms.pages` is the number of pages of one worker at once.

    Raises:
        ClusterNotInstalled, ClusterWithoutCertificate, ClusterUnreachable, LocalClusterFailed.
    """
    async with contextlib.AsyncExitStack() as stack:
        tls: ssl.SSLContext | None
        await asyncio.to_thread(import_library, "distributed.security")
        if address.local:
            local = local_cluster(address.local, terms.pages, browser_path, tell)
            address, tls = await stack.enter_async_context(local)
        else:
            tls = await asyncio.to_thread(_tls, address)
        pool = WorkerPool(address, terms.pages, tell, tls)
        await stack.enter_async_context(pool.following())
        yield ClusterPages(pool, terms, refuse)


# The embedded cluster.

_T = TypeVar("_T")
HIDDEN_VERB: Final = "_cluster"
START_S: Final = 60.0  # of one process, on a busy machine
END_S: Final = 5.0
LOOK_S: Final = 0.25
FIRST_PAUSE_S, LAST_PAUSE_S = 0.5, 30.0  # before a dead process is started again
STEADY_S: Final = 60.0  # of a run, after which the first pause counts again
_PRIVATE: Final = (
    *("tls_ca_file", "tls_client_key", "tls_client_cert", "tls_scheduler_key"),
    *("tls_scheduler_cert", "tls_worker_key", "tls_worker_cert"),
)


class _Process:
    """One process of the cluster, with its orders; it can be started again.

    What blocks runs on a thread of its own: the default threads are for the writes of all tasks.
    """

    def __init__(self, name: str, role: str, orders: dict[str, Any]) -> None:
        self.name, self.role, self.orders = name, role, orders
        self._running: subprocess.Popen[bytes] | None = None
        self._thread = ThreadPoolExecutor(1, name)
        self.pause_s = FIRST_PAUSE_S  # before it is started again
        self.started_s = 0.0  # when it ran, on the monotonic clock
        self._is_given_up = False
        self._starting = threading.Lock()

    async def start(self) -> str:
        """Start it, and return its address. A start that is cancelled leaves no process.

        Raises:
            LocalClusterFailed: it does not start.
        """
        self._is_given_up = False
        answering = self._on_thread(self._first_line)
        try:
            async with asyncio.timeout(START_S):
                line = await asyncio.shield(answering)
        except TimeoutError:
            await self._give_up(answering)
            raise LocalClusterFailed(reason=f"its process {self.name} does not answer") from None
        except OSError as failed:
            await self._give_up(answering)
            why = failed.strerror or type(failed).__name__
            reason = f"its process {self.name} cannot be started: {why}"
            raise LocalClusterFailed(reason=reason) from failed
        except BaseException:
            await self._give_up(answering)
            raise
        try:
            answer = json.loads(line)
        except ValueError:
            answer = {"error": f"its process {self.name} ended at once"}
        if "address" not in answer:
            await self.end(0)
            raise LocalClusterFailed(reason=answer.get("error", ""))
        self.started_s = time.monotonic()
        return str(answer["address"])

    @property
    def has_ended(self) -> bool:
        return self._running is None or self._running.poll() is not None

    async def end(self, limit_s: float = END_S) -> None:
        """Let it end, and kill it after `limit_s` seconds."""
        process, self._running = self._running, None
        if process is not None:
            await asyncio.shield(self._on_thread(partial(_end, process, limit_s)))

    async def close(self) -> None:
        """End it for good."""
        try:
            await self.end()
        finally:
            self._thread.shutdown(wait=False)

    def _on_thread(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _give_up(self, answering: asyncio.Future[bytes]) -> None:
        """Kill a process that starts, or prevent its start."""
        self._is_given_up = True
        with self._starting:
            if self._running is not None:
                self._running.kill()  # which ends the read of its line
        await asyncio.wait({answering})
        await self.end(0)

    def _first_line(self) -> bytes:
        with self._starting:
            if self._is_given_up:
                return b""
            process = self._running = self._spawned()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            process.stdin.write(json.dumps(self.orders).encode() + b"\n")
            process.stdin.flush()
        line: bytes = process.stdout.readline()
        return line

    def _spawned(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*program_command(), HIDDEN_VERB, self.role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **apart(),
        )


def _end(process: subprocess.Popen[bytes], limit_s: float) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


@contextlib.asynccontextmanager
async def local_cluster(
    number: int, slots: int, browser_path: str | None, tell: Tell
) -> AsyncIterator[tuple[ClusterAddress, ssl.SSLContext]]:
    """Run a scheduler and `number` workers with `slots` pages each during the block.

    Raises:
        ClusterNotInstalled: Dask is missing.
        LocalClusterFailed: a process does not start.
    """
    orders, tls = await asyncio.to_thread(certificate)
    scheduler = _Process("scheduler", "scheduler", {"port": 0, "security": orders})
    workers = [_Process(f"local-{at}", "worker", {}) for at in range(1, number + 1)]
    try:
        address = cluster_address(await scheduler.start())
        scheduler.orders["port"] = address.port  # also when it is started again
        for at, worker in enumerate(workers, 1):
            worker.orders |= {"security": orders, "address": str(address)}
            worker.orders |= {"name": f"local-{at}", "slots": slots, "browser": browser_path}
        await _start_all(workers)
        async with beside(*(_keep(process, tell) for process in (scheduler, *workers))):
            yield address, tls
    finally:
        await asyncio.gather(*(process.close() for process in (*workers, scheduler)))


async def _start_all(processes: Sequence[_Process]) -> None:
    """Start them, and wait for all of them even if one fails: none may be starting at the end."""
    started = await asyncio.gather(*(one.start() for one in processes), return_exceptions=True)
    for failed in started:
        if isinstance(failed, BaseException):
            raise failed


async def _keep(process: _Process, tell: Tell) -> None:
    """Start a process again whenever it has died, until it runs."""
    await rounds(partial(_look_after, process, tell))


async def _look_after(process: _Process, tell: Tell) -> None:
    await asyncio.sleep(LOOK_S)
    if not process.has_ended:
        return
    await process.end(0)
    if time.monotonic() - process.started_s > STEADY_S:
        process.pause_s = FIRST_PAUSE_S
    note = f"The process {process.name} of the local cluster has died; it is started again"
    await logged(tell(note))
    told = ""
    while True:
        await asyncio.sleep(process.pause_s)
        process.pause_s = min(2 * process.pause_s, LAST_PAUSE_S)
        try:
            await process.start()
            return
        except LocalClusterFailed as failed:
            if str(failed) != told:
                told = str(failed)
                await logged(tell(told))


def certificate() -> tuple[dict[str, str], ssl.SSLContext]:
    """Return a new certificate as orders of the processes, and for this side."""
    security = import_library("distributed.security").Security.temporary()
    tls = security.get_connection_args("client")["ssl_context"]
    assert isinstance(tls, ssl.SSLContext)
    return {name: getattr(security, name) for name in _PRIVATE}, tls
