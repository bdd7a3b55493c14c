"""The pages of one task on a cluster: a request, its reply, and what a failure means."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from engine.cluster.cluster_address import (
    ClusterAddress,
    ClusterUnreachable,
    WorkerBusy,
    WorkerLost,
    import_library,
    tls_of_dask,
)
from engine.cluster.local_cluster import local_cluster
from engine.cluster.page_records import (
    MOST_REPLY_BYTES,
    Failed,
    PageReply,
    PageRequest,
    Terms,
    check_reply,
    packed,
    unpacked,
)
from engine.cluster.page_server import OWN_MARGIN_S
from engine.cluster.wire import WireError
from engine.cluster.worker_pool import NotReached, PoolWorker, Tell, WorkerPool
from engine.model.addresses import address_of
from engine.model.cluster_workers import WorkerView
from engine.model.display import display
from engine.model.errors import BrowserGone, EngineError, PageError
from engine.pages.fetch import EngineName, Fetched, PageOptions

# Beyond the time limit of a page, for a connection, the worker's own margin, and the way there and
# back. The unit of a page ends it 10 s after its time limit; a worker that hangs is noticed before.
MARGIN_S: Final = OWN_MARGIN_S + 3.0
# Failures by which a worker did not reach the host.
_UNREACHED: Final = frozenset({"dns", "connection", "network", "timeout"})
_ENCRYPTED_ONLY: Final = "the settings of Dask require encryption, which tcp:// has not"
_OFF_LOOP_BYTES: Final = 512 * 1024
Refuse = Callable[[str, str], None]
"""Counts a request that the egress policy refused: the place and the reason."""


class ClusterPages:
    """Implements `fetch.PageWorkers` with the workers of `pool`."""

    def __init__(self, pool: WorkerPool, terms: Terms, refuse: Refuse) -> None:
        self._pool, self._terms, self._refuse = pool, terms, refuse
        self._session = secrets.token_hex(16)

    @property
    def at_once(self) -> int:
        return self._pool.at_once

    def views(self, cluster: str) -> list[WorkerView]:
        """Return what is shown of the workers of this task's `cluster`."""
        return self._pool.views(cluster)

    def room(self) -> AbstractAsyncContextManager[None]:
        return self._pool.room()

    async def fetch(self, engine: EngineName, url: str, options: PageOptions) -> Fetched:
        """Load a page on a worker; to be called in a block of `room`.

        Raises:
            WorkerLost: the worker did not give a usable reply; another one may.
            WorkerBusy: it has no room after all.
            PageError, BrowserGone: as `Fetcher.fetch`.
        """
        request = PageRequest(self._session, self._terms, engine, url, options)
        worker = self._pool.borrow()
        try:
            reply = await self._reply(worker, request)
        except WireError as failed:
            await self._pool.lost(worker, failed)
            began = not isinstance(failed, NotReached)
            raise WorkerLost(worker.name, str(failed), began=began) from failed
        finally:
            await self._pool.give_back(worker)
        for place, reason in reply.refusals:
            self._refuse(display(place, 300), display(reason, 300))
        if reply.failed is not None:
            raise await self._failure(worker, reply.failed, url)
        assert reply.fetched is not None
        self._pool.loaded(worker, _place(url))
        reply.fetched.worker = worker.name
        return reply.fetched

    async def _reply(self, worker: PoolWorker, request: PageRequest) -> PageReply:
        options = request.options
        limit_s = (options.timeout_ms + options.clicks_ms) / 1_000 + MARGIN_S
        data = await self._pool.load(worker, packed(request), limit_s)
        if isinstance(data, bytes) and len(data) > _OFF_LOOP_BYTES:
            return await asyncio.to_thread(_checked, data, request)
        return _checked(data, request)

    async def _failure(self, worker: PoolWorker, failed: Failed, url: str) -> EngineError:
        if failed.what == "busy":
            await self._pool.busy(worker)
            return WorkerBusy(worker.name)
        if failed.what == "gone":
            return BrowserGone(url=url)
        if failed.what == "slow":  # the worker or its network, not the host
            return WorkerLost(worker.name, "it did not end the page in time")
        message = display(failed.message, 1_000)
        if failed.what == "browser":
            await self._pool.without_browser(worker, message)
            return WorkerLost(worker.name, message, began=False)
        if failed.kind in _UNREACHED:
            await self._pool.unreached(worker, _place(url))
        else:
            self._pool.answered(worker)
        found = PageError(failed.kind, message, failed.status)
        found.unproved, found.proved = failed.unproved, failed.proved
        found.retry_after_s = failed.retry_after_s
        return found


def _place(url: str) -> str:
    address = address_of(url)
    return "" if address is None else address.place


def _checked(data: object, request: PageRequest) -> PageReply:
    reply = unpacked(data, PageReply, MOST_REPLY_BYTES)
    check_reply(reply, request)
    return reply


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
        tls: ssl.SSLContext | None = None
        await asyncio.to_thread(import_library, "distributed.security")
        if address.local:
            local = local_cluster(address.local, terms.pages, browser_path, tell)
            address, tls = await stack.enter_async_context(local)
        elif address.scheme == "tls":
            tls = await asyncio.to_thread(tls_of_dask, address, "client")
        elif import_library("dask.config").get("distributed.comm.require-encryption", None):
            raise ClusterUnreachable(address=address, reason=_ENCRYPTED_ONLY)
        pool = WorkerPool(address, terms.pages, tell, tls)
        await stack.enter_async_context(pool.following())
        yield ClusterPages(pool, terms, refuse)
