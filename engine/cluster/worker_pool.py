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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from engine.browser.page.idle_report import IdleReport
from engine.cluster.background import Tasks, beside, rounds
from engine.cluster.cluster_address import (
    ClusterAddress,
    ClusterUnreachable,
    WorkerBusy,
    cluster_address,
)
from engine.cluster.page_records import (
    HELLO,
    LEAVES,
    MOST_REPLY_BYTES,
    MOST_REPORTS,
    Hello,
    check_hello,
    reported_state,
    unpacked,
)
from engine.cluster.pool_worker import Listed, PoolWorker, listed_workers
from engine.cluster.wire import CONNECT_S, Misbehaviour, NoHandshake, Wire, WireError
from engine.model.cluster_workers import WorkerView
from engine.model.errors import BrowserFailed, EngineError
from engine.model.machine_load import most_tabs
from engine.pages.fetch import IdleState, OnIdle

LOOK_S: Final = 1.0  # between two looks at the scheduler's list
LAST_PAUSE_S: Final = 5.0  # between two tries to reach a scheduler that is away
CALL_S: Final = 10.0
FIRST_S: Final = 15.0  # for the first answer of the scheduler
AWAY_S: Final = 5.0  # without pages after a lost connection; doubled each time
WRONG_S: Final = 30.0  # likewise after a wrong reply
MOST_AWAY_S: Final = 30.0  # the longest pause after lost connections
MOST_WRONG_S: Final = 600.0  # likewise after wrong replies
MOST_STRIKES: Final = 20
BUSY_S, MOST_BUSY_S = 0.5, 4.0  # without pages after a worker had no room; doubled each time
ROOMLESS_S: Final = 10.0  # until an event tells that no worker has room
GREET_S: Final = 0.5  # a crawl begins with the pages of all workers that answer so soon
MOST_WORKERS: Final = 1_000
MOST_UNREACHED: Final = 3  # pages in a row whose host a worker does not reach, though others do
MOST_PLACES: Final = 10_000
GONE_S: Final = 60.0  # a worker that has left the cluster is shown as lost so long
NO_WORKER: Final = (
    "it is no worker of this program: start it with octask worker, or dask worker with --preload "
    "engine.cluster.dask_worker"
)
_MOST_LIST_BYTES: Final = 16 * 1024 * 1024
_MOST_HELLO_BYTES: Final = 4_096
_MOST_ASKED: Final = 100  # workers at once: each takes one of the files of this process
_MOST_BYTES: Final = MOST_REPLY_BYTES + 64  # of the message with a reply

Tell = Callable[..., Awaitable[None]]
"""Writes news into the task's event log: a sentence, and facts by name.

With `is_wait` the sentence is also what the task shows of its progress.
"""


class NotReached(WireError):
    """There is no connection with a worker, so that it did not load anything."""


class HasLeft(WireError):
    """The worker ends in an orderly way: it is not lost, and its pages load on another one."""


class WorkerPool:
    """The workers that `scheduler` lists, each with at most `each` pages of this task at once.

    Attributes:
        at_once: the number of pages that the live workers load at the same time; at least one.
        most_open: the number of pages that they may have open, with those that are idle.
        is_scheduler_away: it did not answer the last look.
    """

    def __init__(
        self, scheduler: ClusterAddress, each: int, tell: Tell, tls: ssl.SSLContext | None
    ) -> None:
        self._scheduler, self._each, self._tell, self._tls = scheduler, each, tell, tls
        self._workers: dict[str, PoolWorker] = {}
        self._gone: dict[str, tuple[float, PoolWorker]] = {}  # since when, by name
        self._wire: Wire | None = None
        self._changed = asyncio.Condition()
        self.is_scheduler_away = False
        self._told_none = False
        self._kept = 0  # rooms for pages, of which some may be in progress
        self._flying = 0
        self._roomless_since_s: float | None = None
        self._told_roomless = False
        self._pause_s = LOOK_S
        self._greetings = Tasks()
        self._loaded = 0  # pages of all workers
        self._last_loaded: dict[str, int] = {}  # that number at the last page of each host
        self.at_once = self.most_open = 1
        self._failure: EngineError | None = None  # of the event log

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the scheduler's list during the block.

        Raises:
            ClusterUnreachable: the scheduler did not answer at the beginning.
        """
        try:
            await self._first_look()
            await self._greetings.wait(GREET_S)
            async with beside(rounds(self._follow)):
                yield
        finally:
            await self._greetings.end()
            for worker in self._workers.values():
                worker.drop_connections()
            self._drop_scheduler()

    def views(self, cluster: str) -> list[WorkerView]:
        """Return what is shown of the workers of `cluster`, also of those that left lately.

        While the scheduler does not answer, they stay: without one nothing would tell that.
        """
        here, now_s = {one.name for one in self._workers.values()}, time.monotonic()
        is_away = self.is_scheduler_away
        for name, (since_s, _) in list(self._gone.items()):
            if name in here or (now_s - since_s > GONE_S and not is_away):
                del self._gone[name]
        gone = (worker for _, worker in self._gone.values())
        views = (one.view(cluster) for one in (*self._workers.values(), *gone))
        return [msgspec.structs.replace(one, scheduler_away=is_away) for one in views]

    @contextlib.asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """Wait until a worker has room for a page, and keep it during the block.

        Raises:
            BrowserFailed: no worker has a browser that starts.
            EngineError: what happens to the workers cannot be written down.
        """
        async with self._changed:
            while self._spare() <= 0:
                if self._failure is not None:
                    raise self._failure
                self._expect_a_browser()
                await self._tell_none()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._busy_s()):
                        await self._changed.wait()
        self._kept += 1
        try:
            yield
        finally:
            self._kept -= 1
            await self._notify()

    def borrow(self) -> PoolWorker:
        """Return a worker with room for a page, which is the caller's until `give_back`.

        Raises:
            WorkerBusy: the worker of the room that the caller keeps is there no more.
        """
        worker = self._free()
        if worker is None:
            raise WorkerBusy(str(self._scheduler))
        worker.flying += 1
        worker.borrowed += 1
        self._flying += 1
        return worker

    async def give_back(self, worker: PoolWorker) -> None:
        """End the use of a worker for one page."""
        worker.flying -= 1
        self._flying -= 1
        await self._notify()

    async def load(
        self,
        worker: PoolWorker,
        page: bytes,
        operation: str,
        limit_s: float,
        on_idle: OnIdle | None = None,
    ) -> Any:
        """Let a worker do its operation for a page within `limit_s` seconds.

        Returns its reply, which is untrusted. `on_idle` is called as by `Fetcher.fetch`; while the
        page is idle the worker has room for another one.

        Raises:
            NotReached: there is no connection.
            HasLeft: it ends.
            Misbehaviour, WireError: it sent no reply.
        """
        ends_s = time.monotonic() + limit_s
        while worker.idle and not worker.idle[-1].is_open:
            worker.idle.pop().abort()
        if worker.idle:
            wire = worker.idle.pop()
        else:
            try:
                wire = await Wire.open(worker.address, self._tls, min(CONNECT_S, limit_s))
            except Misbehaviour:
                raise
            except WireError as failed:
                raise NotReached(str(failed)) from failed
        report = IdleReport()
        report.begin(None if on_idle is None else partial(self._count_idle, worker, on_idle))
        try:
            reply = await _called(wire, operation, {"page": page}, _left_s(ends_s), _MOST_BYTES)
            for _ in range(MOST_REPORTS):
                if (state := reported_state(reply)) is None:
                    break
                report.record(state)
                await self._notify()
                reply = _unless_leaving(wire, await wire.more(_left_s(ends_s), _MOST_BYTES))
            # After too many reports the next one is the reply, which is refused as a wrong record.
        except BaseException:
            wire.abort()
            raise
        finally:
            report.end()
        worker.idle.append(wire)
        return reply

    def _count_idle(self, worker: PoolWorker, on_idle: OnIdle, state: IdleState) -> None:
        worker.idle_pages += 1 if state == "idle" else -1
        on_idle(state)

    def answered(self, worker: PoolWorker) -> None:
        """Note that a worker gave the result of a page, or the page's own failure."""
        worker.forgive()
        self._roomless_since_s = None

    def loaded(self, worker: PoolWorker, place: str) -> None:
        """Note that a worker loaded a page of the host `place`."""
        self.answered(worker)
        worker.facts.count_page()
        worker.unreached = 0
        self._loaded += 1
        self._last_loaded.pop(place, None)
        self._last_loaded[place] = self._loaded
        while len(self._last_loaded) > MOST_PLACES:
            del self._last_loaded[next(iter(self._last_loaded))]

    async def unreached(self, worker: PoolWorker, place: str) -> None:
        """Note that a worker did not reach a host, and put it aside if others do.

        Such a worker fails at once, and would get most of the pages.
        """
        self._roomless_since_s = None
        if not worker.unreached:
            worker.unreached_from = self._loaded
        worker.unreached += 1
        if worker.unreached < MOST_UNREACHED:
            return
        if self._last_loaded.get(place, 0) > worker.unreached_from:
            worker.unreached = 0
            await self.lost(worker, Misbehaviour(f"it does not reach {place}, others do"))

    async def busy(self, worker: PoolWorker) -> None:
        """Give a worker no page for a short while, because it serves other tasks."""
        now_s = time.monotonic()
        worker.busy_s = min(max(BUSY_S, 2 * worker.busy_s), MOST_BUSY_S)
        worker.busy_until_s = now_s + worker.busy_s
        if self._roomless_since_s is None:
            self._roomless_since_s = now_s
        elif now_s - self._roomless_since_s >= ROOMLESS_S and not self._told_roomless:
            self._told_roomless = True
            note = (
                f"The workers of the cluster {self._scheduler} have no room: they serve other tasks"
            )
            await self._tell(note, is_wait=True)

    async def lost(self, worker: PoolWorker, failure: WireError) -> None:
        """Put a worker aside after a failure or its orderly end, and report it."""
        wrong = isinstance(failure, Misbehaviour)
        worker.drop_connections()
        if not worker.is_live:
            return
        worker.trouble = str(failure)
        worker.has_left = isinstance(failure, HasLeft)
        pause_s = self._put_aside(worker, is_wrong=wrong)
        if worker.has_left:
            await self._tell(f"Worker {worker.name} left the cluster", worker=worker.name)
            return
        note = f"Worker {worker.name} was lost: {failure}"
        if wrong:
            note = f"Worker {worker.name} was put aside: {failure}"
        await self._tell(note, worker=worker.name, seconds=round(pause_s))

    async def without_browser(self, worker: PoolWorker, message: str) -> None:
        """Put a worker aside that has no browser, and report it."""
        worker.failure, worker.trouble = BrowserFailed(reason=message), message
        if worker.is_live:
            self._put_aside(worker, is_wrong=True)
            await self._tell(f"Worker {worker.name} has no browser: {message}", worker=worker.name)

    def _put_aside(self, worker: PoolWorker, *, is_wrong: bool) -> float:
        worker.is_live, worker.is_wrong = False, is_wrong
        pause_s, most_s = (WRONG_S, MOST_WRONG_S) if is_wrong else (AWAY_S, MOST_AWAY_S)
        pause_s = min(pause_s * 2.0**worker.strikes, max(pause_s, most_s))
        worker.strikes = min(worker.strikes + 1, MOST_STRIKES)
        worker.away_until_s = time.monotonic() + pause_s
        self._count()
        return pause_s

    def _count(self) -> None:
        """Count the pages at once anew; to be called whenever a worker becomes live or not."""
        live = [min(self._each, one.slots) for one in self._workers.values() if one.is_live]
        self.at_once = max(1, sum(live))
        self.most_open = max(1, sum(map(most_tabs, live)))

    def _usable(self) -> list[PoolWorker]:
        now_s = time.monotonic()
        workers = self._workers.values()
        return [one for one in workers if one.is_live and now_s >= one.busy_until_s]

    def _free(self) -> PoolWorker | None:
        """Return the live worker with the most room, of several the one with the fewest pages."""
        usable = self._usable()
        best = max(usable, key=lambda one: (self._room(one), -one.borrowed), default=None)
        return best if best is not None and self._room(best) > 0 else None

    def _spare(self) -> int:
        """Return the number of pages that workers have room for, and that nobody keeps."""
        rooms = sum(max(0, self._room(one)) for one in self._usable())
        return rooms - max(0, self._kept - self._flying)

    def _busy_s(self) -> float | None:
        """Return the time until the pause of a busy worker ends, if there is one."""
        now_s = time.monotonic()
        ends = [one.busy_until_s for one in self._workers.values() if one.busy_until_s > now_s]
        return min(ends) - now_s if ends else None

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _room(self, worker: PoolWorker) -> int:
        """Return the number of further pages of a worker: idle ones are not counted."""
        at_once = min(self._each, worker.slots)
        further = min(worker.idle_pages, most_tabs(at_once) - at_once)
        return at_once + further - worker.flying

    def _expect_a_browser(self) -> None:
        known = self._workers.values()
        failures = [one.failure for one in known if one.failure is not None]
        if failures and len(failures) == len(known):
            raise failures[0]

    async def _tell_none(self) -> None:
        """Report once that no worker is left."""
        workers = self._workers.values()
        if self._told_none or any(one.is_live or self._is_new(one) for one in workers):
            return
        self._told_none = True
        why = "the scheduler does not answer" if self.is_scheduler_away else "it lists none"
        why = "those it lists cannot be used" if self._workers and "lists" in why else why
        note = f"The cluster {self._scheduler} has no worker at the moment: {why}"
        await self._tell(note, is_wait=True)

    def _is_new(self, worker: PoolWorker) -> bool:
        """Return whether a worker has yet to answer for the first time."""
        return worker in self._greetings and not worker.trouble

    # Following the scheduler.

    async def _first_look(self) -> None:
        deadline_s = time.monotonic() + FIRST_S
        while True:
            try:
                await self._look()
                return
            except WireError as failed:
                if time.monotonic() >= deadline_s or isinstance(failed, Misbehaviour):
                    raise unreachable(self._scheduler, failed) from failed
            await asyncio.sleep(LOOK_S)

    async def _follow(self) -> None:
        """Wait, and look once; an event that cannot be written ends the wait for a room."""
        await asyncio.sleep(self._pause_s)
        try:
            await self._look_again()
        except EngineError as failed:
            await self._fail(failed)

    async def _fail(self, failed: EngineError) -> None:
        self._failure = failed
        await self._notify()

    async def _look_again(self) -> None:
        try:
            await self._look()
        except WireError as failed:
            self._drop_scheduler()
            self._pause_s = min(2 * self._pause_s, LAST_PAUSE_S)
            if not self.is_scheduler_away:
                self.is_scheduler_away = True
                await self._tell(
                    f"The scheduler {self._scheduler} does not answer; known workers go on: "
                    f"{failed}"
                )
            self._greet_due()
            return
        self._pause_s = LOOK_S
        if self.is_scheduler_away:
            self.is_scheduler_away = False
            await self._tell(f"The scheduler {self._scheduler} answers again")

    async def _look(self) -> None:
        """Read the scheduler's list, and greet the workers that are new or were put aside.

        A worker whose connection was lost is tried at once when the scheduler lists it anew, or
        answers again: what was the matter with it may be over.
        """
        if self._wire is None:
            self._wire = await Wire.open(self._scheduler, self._tls)
        listed = await _listed(self._wire)
        for address, entry in listed.items():
            if address not in self._workers and len(self._workers) < MOST_WORKERS:
                with contextlib.suppress(ValueError):
                    self._workers[address] = PoolWorker(cluster_address(address), entry.name)
        for address, worker in list(self._workers.items()):
            is_anew = self.is_scheduler_away or not worker.is_listed
            worker.is_listed = address in listed
            if worker.is_listed:
                worker.facts.read(listed[address])
                if is_anew and not worker.is_wrong:
                    worker.strikes, worker.away_until_s = 0, 0.0
        self._greet_due()

    def _greet_due(self) -> None:
        """Greet the workers that are not live, and those that the scheduler lists no more.

        Each is greeted on its own, because one may take long to answer.
        """
        now_s = time.monotonic()
        for one in self._workers.values():
            is_back = not one.is_live and now_s >= one.away_until_s
            is_leaving = not one.is_listed and not one.flying
            if (is_back or is_leaving) and one not in self._greetings:
                self._greetings.begin(one, self._greet_or_fail(one))

    async def _greet_or_fail(self, worker: PoolWorker) -> None:
        try:
            await self._greet(worker)
        except EngineError as failed:
            await self._fail(failed)

    async def _greet(self, worker: PoolWorker) -> None:
        wire = worker.idle.pop() if worker.idle else None
        try:
            wire = wire or await Wire.open(worker.address, self._tls)
            hello = await _greeted(wire, CALL_S)
        except WireError as failed:
            if wire is not None:
                wire.abort()
            await self._not_greeted(worker, failed)
            return
        worker.idle.append(wire)
        if worker.is_live or time.monotonic() < worker.away_until_s:
            return
        worker.slots, worker.is_live, worker.failure = hello.slots, True, None
        worker.trouble = ""
        self._count()
        self._told_none = False
        note = f"Worker {worker.name} loads pages ({min(self._each, worker.slots)} at once)"
        await self._tell(note, worker=worker.name, slots=worker.slots)
        await self._notify()

    async def _not_greeted(self, worker: PoolWorker, failed: WireError) -> None:
        worker.trouble = str(failed)
        if worker.is_live:
            await self.lost(worker, failed)
        elif isinstance(failed, Misbehaviour) and not worker.strikes:
            self._put_aside(worker, is_wrong=True)
            await self._tell(f"Worker {worker.name} cannot be used: {failed}", worker=worker.name)
        else:
            self._put_aside(worker, is_wrong=isinstance(failed, Misbehaviour))
        if not worker.is_listed and not worker.flying:
            self._workers.pop(_key(self._workers, worker), None)
            self._note_gone(worker)
        await self._notify()  # whoever waits may have to report that there is none

    def _note_gone(self, worker: PoolWorker) -> None:
        """Remember for the views a worker that was used and has left."""
        if worker.slots and len(self._gone) < MOST_WORKERS:
            self._gone[worker.name] = time.monotonic(), worker

    def _drop_scheduler(self) -> None:
        if self._wire is not None:
            self._wire.abort()
            self._wire = None


async def _greeted(wire: Wire, limit_s: float) -> Hello:
    """Return what a worker tells of itself. Raises Misbehaviour, HasLeft and WireError."""
    try:
        found = await _called(wire, HELLO, {}, limit_s, _MOST_HELLO_BYTES)
    except Misbehaviour as failed:
        raise Misbehaviour(NO_WORKER) from failed
    hello = unpacked(found, Hello, _MOST_HELLO_BYTES)
    check_hello(hello)
    return hello


async def _called(
    wire: Wire, operation: str, fields: Mapping[str, Any], limit_s: float, most_bytes: int
) -> Any:
    """Call a worker, as `Wire.call` does. Raises HasLeft, if it ends, and as `Wire.call`."""
    reply = await wire.unrequested()
    if reply != LEAVES:
        reply = await wire.call(operation, fields, limit_s, most_bytes)
    return _unless_leaving(wire, reply)


def _unless_leaving(wire: Wire, reply: Any) -> Any:
    """Return the reply of a worker. Raises HasLeft, if it ends."""
    if reply == LEAVES:
        wire.abort()
        raise HasLeft("it left the cluster")
    return reply


def _left_s(ends_s: float) -> float:
    return round(max(0.0, ends_s - time.monotonic()), 1)


async def _listed(wire: Wire) -> dict[str, Listed]:
    """Return the workers that a scheduler lists, by address. Raises WireError."""
    fields = {"n_workers": -1}
    found = await wire.call("identity", fields, CALL_S, _MOST_LIST_BYTES, msgspec.Raw)
    return listed_workers(found)


class ClusterLook(NamedTuple):
    """The workers that a scheduler lists: their number, and why some of them cannot be used."""

    workers: int
    unusable: tuple[tuple[str, str], ...]  # name and reason


async def workers_of(
    scheduler: ClusterAddress, tls: ssl.SSLContext | None, limit_s: float
) -> ClusterLook:
    """Return which workers a scheduler lists; each gets `limit_s` seconds, too, to answer.

    Raises:
        ClusterUnreachable: it does not answer within `limit_s` seconds.
    """
    wire: Wire | None = None
    try:
        async with asyncio.timeout(limit_s):
            wire = await Wire.open(scheduler, tls, limit_s)
            listed = await _listed(wire)
    except WireError as failed:
        raise unreachable(scheduler, failed) from failed
    except TimeoutError:
        reason = f"no answer within {limit_s:g} s"
        raise ClusterUnreachable(address=scheduler, reason=reason) from None
    finally:
        if wire is not None:
            wire.abort()
    asked = list(listed.items())[:MOST_WORKERS]
    turns = asyncio.Semaphore(_MOST_ASKED)

    async def why(one: str) -> str:
        async with turns:
            return await _why_unusable(one, tls, limit_s)

    reasons = await asyncio.gather(*(why(one) for one, _ in asked))
    named = ((entry.name, reason) for (_, entry), reason in zip(asked, reasons, strict=True))
    return ClusterLook(len(listed), tuple((name, reason) for name, reason in named if reason))


async def _why_unusable(address: str, tls: ssl.SSLContext | None, limit_s: float) -> str:
    """Return why a worker cannot be used from here; empty: it can."""
    wire: Wire | None = None
    try:
        async with asyncio.timeout(limit_s):
            wire = await Wire.open(cluster_address(address), tls, limit_s)
            await _greeted(wire, limit_s)
    except (WireError, ValueError) as failed:
        return str(failed)
    except TimeoutError:
        return f"no answer within {limit_s:g} s"
    finally:
        if wire is not None:
            wire.abort()
    return ""


def why_unreachable(scheduler: ClusterAddress, failed: WireError) -> str:
    """Return why a scheduler cannot be used, with what may help."""
    if isinstance(failed, NoHandshake) and scheduler.scheme == "tcp":
        return f"{failed}; a scheduler with certificates needs tls://"
    return str(failed)


def unreachable(scheduler: ClusterAddress, failed: WireError) -> ClusterUnreachable:
    """Return the error of a scheduler that cannot be used, for this reason."""
    return ClusterUnreachable(address=scheduler, reason=why_unreachable(scheduler, failed))


def _key(workers: dict[str, PoolWorker], worker: PoolWorker) -> str:
    return next((address for address, one in workers.items() if one is worker), "")
