"""The workers of a cluster as one task uses them: found, lent page by page, put aside, lost.

The scheduler only lists the workers. While it is away the known ones are used by their addresses.
A worker that does not answer, or sends what none of ours sends, gets no page for a while, longer
each time. What happens to workers is reported as news: it is no failure while others live.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from engine.cluster.background import beside
from engine.cluster.cluster_address import ClusterAddress, ClusterUnreachable, cluster_address
from engine.cluster.page_records import (
    FETCH,
    HELLO,
    MOST_REPLY_BYTES,
    Hello,
    check_hello,
    unpacked,
)
from engine.cluster.wire import Misbehaviour, Wire, WireError
from engine.cluster.worker_facts import WorkerFacts, listed_workers
from engine.model.cluster_workers import WorkerState, WorkerView
from engine.model.errors import BrowserFailed, EngineError

LOOK_S: Final = 1.0  # between two looks at the scheduler's list
LAST_PAUSE_S: Final = 5.0  # between two tries to reach a scheduler that is away
CALL_S: Final = 10.0
FIRST_S: Final = 15.0  # for the first answer of the scheduler
AWAY_S: Final = 5.0  # without pages after a lost connection; doubled each time
WRONG_S: Final = 30.0  # likewise after a wrong reply
MOST_AWAY_S: Final = 600.0
MOST_WORKERS: Final = 1_000
GONE_S: Final = 60.0  # a worker that has left the cluster is shown as lost so long
_MOST_LIST_BYTES: Final = 16 * 1024 * 1024
_MOST_HELLO_BYTES: Final = 4_096

Tell = Callable[..., Awaitable[None]]
"""Writes news into the task's event log: a sentence, and facts by name."""


@dataclass(eq=False)
class PoolWorker:
    """A worker of the cluster.

    `failure` is why it can load no page, if it has no browser; `trouble` is why it was put aside.
    """

    address: ClusterAddress
    name: str
    slots: int = 0
    is_live: bool = False
    is_listed: bool = True
    flying: int = 0
    borrowed: int = 0
    away_until_s: float = 0.0
    strikes: int = 0
    failure: EngineError | None = None
    idle: list[Wire] = field(default_factory=list)
    trouble: str = ""
    facts: WorkerFacts = field(default_factory=WorkerFacts)

    def drop_connections(self) -> None:
        while self.idle:
            self.idle.pop().abort()

    @property
    def state(self) -> WorkerState:
        """The state that an operator sees."""
        if self.is_live:
            return "ready"
        if self.failure is not None:
            return "no_browser"
        return "lost" if self.trouble else "connecting"

    def view(self, cluster: str) -> WorkerView:
        """Return what is shown of this worker of `cluster`."""
        is_waiting = self.state in ("lost", "no_browser") and self.is_listed
        return WorkerView(
            cluster,
            str(self.address),
            self.name,
            self.state,
            slots=self.slots,
            loading=self.flying,
            pages=self.facts.pages,
            pages_per_s=self.facts.pages_per_s(),
            memory_bytes=self.facts.memory_bytes,
            seen_s=self.facts.seen_s(),
            reason="" if self.is_live else self.trouble,
            back_s=max(0.0, self.away_until_s - time.monotonic()) if is_waiting else None,
        )


class WorkerPool:
    """The workers that `scheduler` lists, each with at most `each` pages of this task at once."""

    def __init__(
        self, scheduler: ClusterAddress, each: int, tell: Tell, tls: ssl.SSLContext | None
    ) -> None:
        self._scheduler, self._each, self._tell, self._tls = scheduler, each, tell, tls
        self._workers: dict[str, PoolWorker] = {}
        self._gone: dict[str, tuple[float, PoolWorker]] = {}  # since when, by name
        self._wire: Wire | None = None
        self._changed = asyncio.Condition()
        self._is_scheduler_away = False
        self._told_none = False
        self._failure: EngineError | None = None  # of the event log

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the scheduler's list during the block.

        Raises:
            ClusterUnreachable: the scheduler did not answer at the beginning.
        """
        try:
            await self._first_look()
            async with beside(self._follow_or_fail()):
                yield
        finally:
            for worker in self._workers.values():
                worker.drop_connections()
            self._drop_scheduler()

    @property
    def at_once(self) -> int:
        """The number of pages that the live workers load at the same time; at least one."""
        live = (min(self._each, one.slots) for one in self._workers.values() if one.is_live)
        return max(1, sum(live))

    def views(self, cluster: str) -> list[WorkerView]:
        """Return what is shown of the workers of `cluster`, also of those that left lately."""
        here, now_s = {one.name for one in self._workers.values()}, time.monotonic()
        for name, (since_s, _) in list(self._gone.items()):
            if name in here or now_s - since_s > GONE_S:
                del self._gone[name]
        gone = (worker for _, worker in self._gone.values())
        return [one.view(cluster) for one in (*self._workers.values(), *gone)]

    async def ready(self) -> None:
        """Wait until a worker has room for a page.

        Raises:
            BrowserFailed: no worker has a browser that starts.
            EngineError: what happens to the workers cannot be written down.
        """
        async with self._changed:
            while self._free() is None:
                if self._failure is not None:
                    raise self._failure
                self._expect_a_browser()
                await self._tell_none()
                await self._changed.wait()

    async def borrow(self) -> PoolWorker:
        """Return a worker with room for a page, which is the caller's until `give_back`.

        Raises:
            BrowserFailed, EngineError: as `ready`.
        """
        while (worker := self._free()) is None:
            await self.ready()
        worker.flying += 1
        worker.borrowed += 1
        return worker

    async def give_back(self, worker: PoolWorker) -> None:
        """End the use of a worker for one page."""
        worker.flying -= 1
        async with self._changed:
            self._changed.notify_all()

    async def load(self, worker: PoolWorker, page: bytes, limit_s: float) -> Any:
        """Let a worker load a page, and return what it sent: untrusted.

        Raises:
            Misbehaviour, WireError: it sent no reply.
        """
        while worker.idle and not worker.idle[-1].is_open:
            worker.idle.pop().abort()
        wire = worker.idle.pop() if worker.idle else await Wire.open(worker.address, self._tls)
        reply = await wire.call(FETCH, {"page": page}, limit_s, MOST_REPLY_BYTES + 64)
        worker.idle.append(wire)
        return reply

    async def lost(self, worker: PoolWorker, failure: WireError) -> None:
        """Put a worker aside after a failure, and report it."""
        wrong = isinstance(failure, Misbehaviour)
        worker.drop_connections()
        if not worker.is_live:
            return
        worker.trouble = str(failure)
        pause_s = self._put_aside(worker, WRONG_S if wrong else AWAY_S)
        note = f"Worker {worker.name} was lost: {failure}"
        if wrong:
            note = f"Worker {worker.name} was put aside: {failure}"
        await self._tell(note, worker=worker.name, seconds=round(pause_s))

    async def without_browser(self, worker: PoolWorker, message: str) -> None:
        """Put a worker aside that has no browser, and report it."""
        worker.failure, worker.trouble = BrowserFailed(reason=message), message
        if worker.is_live:
            self._put_aside(worker, WRONG_S)
            await self._tell(f"Worker {worker.name} has no browser: {message}", worker=worker.name)

    def _put_aside(self, worker: PoolWorker, pause_s: float) -> float:
        worker.is_live = False
        pause_s = min(pause_s * 2.0**worker.strikes, MOST_AWAY_S)
        worker.strikes += 1
        worker.away_until_s = time.monotonic() + pause_s
        return pause_s

    def _free(self) -> PoolWorker | None:
        """Return the live worker with the most room, of several the one with the fewest pages."""
        live = [one for one in self._workers.values() if one.is_live]
        best = max(live, key=lambda one: (self._room(one), -one.borrowed), default=None)
        return best if best is not None and self._room(best) > 0 else None

    def _room(self, worker: PoolWorker) -> int:
        return min(self._each, worker.slots) - worker.flying

    def _expect_a_browser(self) -> None:
        known = self._workers.values()
        failures = [one.failure for one in known if one.failure is not None]
        if failures and len(failures) == len(known):
            raise failures[0]

    async def _tell_none(self) -> None:
        """Report once that no worker is left."""
        if self._told_none or any(one.is_live for one in self._workers.values()):
            return
        self._told_none = True
        why = "the scheduler does not answer" if self._is_scheduler_away else "it lists none"
        why = "those it lists cannot be used" if self._workers and "lists" in why else why
        await self._tell(f"The cluster {self._scheduler} has no worker at the moment: {why}")

    # Following the scheduler.

    async def _first_look(self) -> None:
        deadline_s = time.monotonic() + FIRST_S
        while True:
            try:
                await self._look()
                return
            except WireError as failed:
                if time.monotonic() >= deadline_s or isinstance(failed, Misbehaviour):
                    raise ClusterUnreachable(address=self._scheduler, reason=failed) from failed
            await asyncio.sleep(LOOK_S)

    async def _follow_or_fail(self) -> None:
        """Follow; an event that cannot be written ends the wait of pages for a worker."""
        try:
            await self._follow()
        except EngineError as failed:
            self._failure = failed
            async with self._changed:
                self._changed.notify_all()

    async def _follow(self) -> None:
        pause_s = LOOK_S
        while True:
            await asyncio.sleep(pause_s)
            try:
                await self._look()
                pause_s = LOOK_S
                if self._is_scheduler_away:
                    self._is_scheduler_away = False
                    await self._tell(f"The scheduler {self._scheduler} answers again")
            except WireError as failed:
                self._drop_scheduler()
                pause_s = min(2 * pause_s, LAST_PAUSE_S)
                if not self._is_scheduler_away:
                    self._is_scheduler_away = True
                    await self._tell(
                        f"The scheduler {self._scheduler} does not answer; known workers go on: "
                        f"{failed}"
                    )
                await self._probe_away()

    async def _look(self) -> None:
        """Read the scheduler's list, and probe the workers that are new or were put aside."""
        if self._wire is None:
            self._wire = await Wire.open(self._scheduler, self._tls)
        fields = {"n_workers": -1}
        found = await self._wire.call("identity", fields, CALL_S, _MOST_LIST_BYTES, msgspec.Raw)
        listed = listed_workers(found)
        for address, (name, _) in listed.items():
            if address not in self._workers and len(self._workers) < MOST_WORKERS:
                with contextlib.suppress(ValueError):
                    self._workers[address] = PoolWorker(cluster_address(address), name)
        for address, worker in list(self._workers.items()):
            worker.is_listed = address in listed
            if worker.is_listed:
                worker.facts.read(listed[address].told)
        await self._probe_away()

    async def _probe_away(self) -> None:
        """Greet the workers that are not live, and those that the scheduler lists no more."""
        now_s = time.monotonic()
        due = [
            one
            for one in self._workers.values()
            if (not one.is_live and now_s >= one.away_until_s)
            or (not one.is_listed and not one.flying)
        ]
        await asyncio.gather(*map(self._greet, due))

    async def _greet(self, worker: PoolWorker) -> None:
        wire = worker.idle.pop() if worker.idle else None
        try:
            wire = wire or await Wire.open(worker.address, self._tls)
            found = await wire.call(HELLO, {}, CALL_S, _MOST_HELLO_BYTES)
            hello = unpacked(found, Hello, _MOST_HELLO_BYTES)
            check_hello(hello)
        except WireError as failed:
            if wire is not None:
                wire.abort()
            await self._not_greeted(worker, failed)
            return
        worker.idle.append(wire)
        if worker.is_live:
            return
        worker.slots, worker.is_live, worker.failure = hello.slots, True, None
        worker.trouble = ""
        self._told_none = False
        note = f"Worker {worker.name} loads pages ({min(self._each, worker.slots)} at once)"
        await self._tell(note, worker=worker.name, slots=worker.slots)
        async with self._changed:
            self._changed.notify_all()

    async def _not_greeted(self, worker: PoolWorker, failed: WireError) -> None:
        worker.trouble = str(failed)
        if worker.is_live:
            await self.lost(worker, failed)
        elif isinstance(failed, Misbehaviour) and not worker.strikes:
            self._put_aside(worker, WRONG_S)
            await self._tell(f"Worker {worker.name} cannot be used: {failed}", worker=worker.name)
        else:
            self._put_aside(worker, AWAY_S)
        if not worker.is_listed and not worker.flying:
            self._workers.pop(_key(self._workers, worker), None)
            self._note_gone(worker)
        async with self._changed:  # whoever waits may have to report that there is none
            self._changed.notify_all()

    def _note_gone(self, worker: PoolWorker) -> None:
        """Remember for the views a worker that was used and has left."""
        if worker.slots and len(self._gone) < MOST_WORKERS:
            self._gone[worker.name] = time.monotonic(), worker

    def _drop_scheduler(self) -> None:
        if self._wire is not None:
            self._wire.abort()
            self._wire = None


def _key(workers: dict[str, PoolWorker], worker: PoolWorker) -> str:
    return next((address for address, one in workers.items() if one is worker), "")
