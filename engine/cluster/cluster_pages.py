"""The pages of one task on a cluster: requests, replies and their failures."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final, TypeVar

from engine.browser.page.bundle_parts import BundleOptions, Opened, Part, Piece
from engine.cluster.bundle_records import (
    BundleReply,
    BundleRequest,
    PartFailure,
    bundle_request,
    check_bundle,
)
from engine.cluster.cluster_address import WorkerBusy, WorkerLost
from engine.cluster.page_records import (
    BUNDLE,
    FETCH,
    MOST_REPLY_BYTES,
    Failed,
    PageReply,
    PageRequest,
    Terms,
    check_reply,
    packed,
    unpacked,
)
from engine.cluster.page_server import OWN_MARGIN_S, START_S
from engine.cluster.pool_worker import PoolWorker
from engine.cluster.wire import WireError
from engine.cluster.worker_pool import HasLeft, NotReached, WorkerPool
from engine.model.addresses import address_of
from engine.model.cluster_workers import WorkerView
from engine.model.display import display
from engine.model.errors import BrowserGone, EngineError, PageError, TaskFailed
from engine.pages.fetch import EngineName, Fetched, OnIdle, PageOptions

# Beyond the time limit of a page, for a connection, the worker's own margin, and the way there and
# back. The unit of a page ends it 10 s after its time limit; a worker that hangs is noticed before.
MARGIN_S: Final = OWN_MARGIN_S + 3.0
# Failures by which a worker did not reach the host.
_UNREACHED: Final = frozenset({"dns", "connection", "network", "timeout"})
MOST_ADDRESS, MOST_TITLE = 4_096, 1_000  # characters; a worker of this program sends fewer
_OFF_LOOP_BYTES: Final = 512 * 1024
Refuse = Callable[[str, str], None]
"""Counts a request that the egress policy refused: the place and the reason."""


_Reply = TypeVar("_Reply", PageReply, BundleReply)


class TakenBundle:
    """A bundle that a worker took: the camera of its parts. It implements `Camera`."""

    def __init__(self, worker: str, reply: BundleReply) -> None:
        self._worker, self._reply = worker, reply

    @property
    def worker(self) -> str:
        """The worker that took it."""
        return self._worker

    async def open(self) -> Opened:
        """Return the page. Raises TaskFailed with the code of the worker's error."""
        page = self._reply.opened
        if page is None:
            raise _restored(self._reply.unopened)
        url, title = display(page.url, MOST_ADDRESS), display(page.title, MOST_TITLE)
        return Opened(url, title, page.status, page.settled)

    async def take(self, part: Part) -> Piece:
        """Return a part. Raises TaskFailed with the code of the worker's error."""
        (found,) = (one for one in self._reply.parts if one.part == part)
        if found.sent is None:
            raise _restored(found.failure)
        return Piece(found.sent.data, found.sent.truncated, found.sent.facts.told())


def _restored(failure: PartFailure | None) -> TaskFailed:
    assert failure is not None
    return TaskFailed(failure.code, display(failure.message, 1_000))


class ClusterPages:
    """Implements `fetch.PageWorkers` with the workers of `pool`."""

    def __init__(self, pool: WorkerPool, terms: Terms, refuse: Refuse) -> None:
        self._pool, self._terms, self._refuse = pool, terms, refuse
        self._session = secrets.token_hex(16)

    @property
    def at_once(self) -> int:
        return self._pool.at_once

    @property
    def most_open(self) -> int:
        return self._pool.most_open

    def views(self, cluster: str) -> list[WorkerView]:
        """Return what is shown of the workers of this task's `cluster`."""
        return self._pool.views(cluster)

    def room(self) -> AbstractAsyncContextManager[None]:
        return self._pool.room()

    async def fetch(
        self, engine: EngineName, url: str, options: PageOptions, on_idle: OnIdle | None = None
    ) -> Fetched:
        """Load a page on a worker; to be called in a block of `room`.

        Raises:
            WorkerLost: the worker did not give a usable reply; another one may.
            WorkerBusy: it has no room after all.
            PageError, BrowserGone: as `Fetcher.fetch`.
        """
        is_reported = on_idle is not None
        request = PageRequest(self._session, self._terms, engine, url, options, is_reported)
        limit_s = (options.timeout_ms + options.clicks_ms) / 1_000 + MARGIN_S
        load = partial(self._pool.load, operation=FETCH, limit_s=limit_s, on_idle=on_idle)
        worker, reply = await self._asked(load, request, partial(_page_of, request))
        if reply.failed is not None:
            raise await self._failure(worker, reply.failed, url)
        assert reply.fetched is not None
        self._pool.loaded(worker, _place(url))
        reply.fetched.worker = worker.name
        return reply.fetched

    async def bundle(self, options: BundleOptions) -> TakenBundle:
        """Take the evidence bundle of an address on a worker; to be called in a block of `room`.

        Raises:
            WorkerLost: the worker did not give a usable reply; another one may.
            WorkerBusy: it has no room after all.
            PageError, BrowserGone: the worker could not open a page.
        """
        request = bundle_request(self._terms, options)
        limit_s = request.limit_s + START_S + MARGIN_S
        load = partial(self._pool.load, operation=BUNDLE, limit_s=limit_s)
        worker, reply = await self._asked(load, request, partial(_bundle_of, request))
        if reply.failed is not None:
            raise await self._failure(worker, reply.failed, request.url)
        if reply.unopened is not None and reply.unopened.kind in _UNREACHED:
            await self._pool.unreached(worker, _place(request.url))
        else:
            self._pool.loaded(worker, _place(request.url))
        return TakenBundle(worker.name, reply)

    async def _asked(
        self,
        load: Callable[[PoolWorker, bytes], Awaitable[object]],
        request: PageRequest | BundleRequest,
        read: Callable[[object], _Reply],
    ) -> tuple[PoolWorker, _Reply]:
        """Let a worker `load` a page, and return it with its reply, which `read` checks."""
        worker = self._pool.borrow()
        try:
            data = await load(worker, packed(request))
            if isinstance(data, bytes) and len(data) > _OFF_LOOP_BYTES:
                reply = await asyncio.to_thread(read, data)
            else:
                reply = read(data)
        except WireError as failed:
            await self._pool.lost(worker, failed)
            began = not isinstance(failed, NotReached | HasLeft)
            raise WorkerLost(worker.name, str(failed), began=began) from failed
        finally:
            await self._pool.give_back(worker)
        for place, reason in reply.refusals:
            self._refuse(display(place, 300), display(reason, 300))
        return worker, reply

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


def _page_of(request: PageRequest, data: object) -> PageReply:
    reply = unpacked(data, PageReply, MOST_REPLY_BYTES)
    check_reply(reply, request)
    return reply


def _bundle_of(request: BundleRequest, data: object) -> BundleReply:
    reply = unpacked(data, BundleReply, MOST_REPLY_BYTES)
    check_bundle(reply, request)
    return reply
