"""An embedded cluster: a scheduler and some workers on this machine, for one task.

They listen on the loopback interface, with a certificate of their own that exists in their memory
only: nobody else on the machine can use them. Each process reads its orders from standard input
and ends when that is closed, so that none outlives the engine. One that dies is started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
from collections.abc import AsyncIterator
from typing import Any, Final

from engine.cluster.background import beside
from engine.cluster.cluster_address import (
    ClusterAddress,
    LocalClusterFailed,
    cluster_address,
    import_library,
)
from engine.cluster.worker_pool import Tell
from engine.model.program import apart, program_command

HIDDEN_VERB: Final = "_cluster"
START_S: Final = 60.0  # of one process, on a busy machine
END_S: Final = 5.0
LOOK_S: Final = 0.25
FIRST_PAUSE_S, LAST_PAUSE_S = 0.5, 30.0  # before a dead process is started again
_PRIVATE: Final = (
    *("tls_ca_file", "tls_client_key", "tls_client_cert", "tls_scheduler_key"),
    *("tls_scheduler_cert", "tls_worker_key", "tls_worker_cert"),
)


class _Process:
    """One process of the cluster, with its orders; it can be started again."""

    def __init__(self, name: str, role: str, orders: dict[str, Any]) -> None:
        self.name, self.role, self.orders = name, role, orders
        self._running: subprocess.Popen[bytes] | None = None

    async def start(self) -> str:
        """Start it, and return its address.

        Raises:
            LocalClusterFailed: it does not start.
        """
        answering = asyncio.create_task(asyncio.to_thread(self._first_line))
        try:
            async with asyncio.timeout(START_S):
                line = await asyncio.shield(answering)
        except BaseException as failed:
            self._kill()  # which ends the read
            await asyncio.wait({answering})
            await self.end(0)
            if isinstance(failed, TimeoutError):
                raise LocalClusterFailed(
                    reason=f"its process {self.name} does not answer"
                ) from None
            raise
        try:
            answer = json.loads(line)
        except ValueError:
            answer = {"error": f"its process {self.name} ended at once"}
        if "address" not in answer:
            await self.end(0)
            raise LocalClusterFailed(reason=answer.get("error", ""))
        return str(answer["address"])

    @property
    def has_ended(self) -> bool:
        return self._running is not None and self._running.poll() is not None

    async def end(self, limit_s: float = END_S) -> None:
        """Let it end, and kill it after `limit_s` seconds."""
        process, self._running = self._running, None
        if process is not None:
            await asyncio.shield(asyncio.to_thread(_end, process, limit_s))

    def _kill(self) -> None:
        if self._running is not None:
            self._running.kill()

    def _first_line(self) -> bytes:
        process = self._running = subprocess.Popen(
            [*program_command(), HIDDEN_VERB, self.role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **apart(),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            process.stdin.write(json.dumps(self.orders).encode() + b"\n")
            process.stdin.flush()
        line: bytes = process.stdout.readline()
        return line


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
        await asyncio.gather(*(worker.start() for worker in workers))
        async with beside(*(_keep(process, tell) for process in (scheduler, *workers))):
            yield address, tls
    finally:
        await asyncio.gather(*(process.end() for process in (*workers, scheduler)))


async def _keep(process: _Process, tell: Tell) -> None:
    """Start a process again whenever it dies."""
    pause_s = FIRST_PAUSE_S
    while True:
        await asyncio.sleep(LOOK_S)
        if not process.has_ended:
            continue
        await process.end(0)
        await tell(f"The process {process.name} of the local cluster has died; it is started again")
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LAST_PAUSE_S)
        try:
            await process.start()
        except LocalClusterFailed as failed:
            await tell(str(failed))


def certificate() -> tuple[dict[str, str], ssl.SSLContext]:
    """Return a new certificate as orders of the processes, and for this side."""
    security = import_library("distributed.security").Security.temporary()
    tls = security.get_connection_args("client")["ssl_context"]
    assert isinstance(tls, ssl.SSLContext)
    return {name: getattr(security, name) for name in _PRIVATE}, tls
