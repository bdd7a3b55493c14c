"""Tasks and lease of this process in a ledger; reaping of orphans, removal of stale files."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import stat
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from engine.ledger import lease, ownership
from engine.ledger.files import Folder, Unusable
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.lock import OURS, TARGET, TaskLock
from engine.ledger.ownership import Owner, Ownership
from engine.ledger.reaper import BUSY_RETRY_S, SETTLE_S, Reaper
from engine.ledger.task_files import TEMP, check_writable, discard
from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerReadOnly, LedgerWriteFailed
from engine.model.records import TaskId, TaskRecord

if TYPE_CHECKING:
    from engine.contracts.contract_service import Goals
    from engine.contracts.home_records import HomeRecords
    from engine.contracts.run_lifecycle import LinkedRuns, Runs
    from engine.execution.executor import Executor
    from engine.service.router.ledger_router import LedgerRouter

log = logging.getLogger(__name__)

# Remove temp files and locks of dead processes.
#
# Those of a process whose lease proves its death go at once, others after a minute: the lease may
# be missing (removed by hand, or in a record store, which has none). Only names that this program
# creates are removed, and none of a living process. A folder is read again only after a change.

OLD_S: Final = 60.0  # a temp file normally exists for milliseconds
_DEPTH: Final = 2  # a task's artifacts, a task run's checkpoints
_SHELVED: Final = re.compile(r"\..+\.tmp")
_LOCKED, _ASIDE = f"{TARGET}{TARGET}", f"{TARGET}{TARGET}.dead-"
_LOG, _SUMMARY = ".items.jsonl", ".json"


class Tidier:
    """Remove stale files of one ledger and its record stores. Keep it between rounds."""

    def __init__(self, root: Path, shelves: Iterable[Path]) -> None:
        self._root = root
        self._shelves = tuple(shelves)
        self._clean: dict[str, int] = {}  # folders without stale files, and their time of change
        self._dead: frozenset[str] = frozenset()  # leases that this round proved dead
        self._removed = 0
        self._stopped = False

    def tidy_after_death(self) -> int:
        """Call `tidy` if a process died without releasing its lease; return as that."""
        return self.tidy() if lease.dead_leases(self._root) else 0

    def tidy(self, old_s: float | None = None) -> int:
        """Remove stale files older than `old_s` seconds (a minute); return their number.

        Those of dead leases are removed at any age, and then the leases, so that a round that is
        stopped is repeated. Files that cannot be removed stay.
        """
        self._removed, before = 0, time.time() - (OLD_S if old_s is None else old_s)
        dead = lease.dead_leases(self._root)
        self._dead = frozenset(dead)
        with suppress(OSError), Folder.at(str(self._root)) as folder:
            self._through(folder, self._is_dead, before, _DEPTH)
            if dead and not self._stopped:
                lease.remove_dead(self._root, dead)
        for place in self._shelves:
            with suppress(OSError), Folder.at(str(place)) as folder:
                self._through(folder, self._is_shelved, before, _DEPTH)
                self._removed += _drop_half_contracts(folder, before)
        return self._removed

    def stop(self) -> None:
        """End a round in another thread before its next file, because the program closes."""
        self._stopped = True

    def _through(
        self, folder: Folder, is_litter: Callable[[str], bool], before: float, depth: int
    ) -> bool:
        """Remove the stale files in `folder`; return whether nothing is left for a later round."""
        is_clean = True
        for name in folder.names():
            if self._stopped:
                return False
            if is_litter(name) or _ASIDE in name:
                is_clean &= self._discarded(folder, name, before)
            elif name.endswith(_LOCKED):
                is_clean = False  # a process may hold this lock
                _free(folder, name, math.inf if self._dead else before)
            elif TEMP.fullmatch(name):
                is_clean = False  # its writer may die
            elif depth and not name.startswith("."):
                is_clean &= self._below(folder, name, (is_litter, before, depth - 1))
        if is_clean:
            self._clean[folder.path] = folder.facts(".").st_mtime_ns
        return is_clean

    def _below(
        self, folder: Folder, name: str, rest: tuple[Callable[[str], bool], float, int]
    ) -> bool:
        with suppress(OSError):
            facts = folder.facts(name)
            if not stat.S_ISDIR(facts.st_mode):
                return True
            known = self._clean.get(os.path.join(folder.path, name))
            if known == facts.st_mtime_ns and not self._dead:  # a folder in it may have changed
                return True
            with folder.enter(name) as inner:
                return self._through(inner, *rest)
        return False

    def _discarded(self, folder: Folder, name: str, before: float) -> bool:
        if not self._is_of_dead(name) and _changed_at(folder, name) >= before:
            return False
        discard(folder, name)
        self._removed += 1
        return True

    def _is_of_dead(self, name: str) -> bool:
        found = TEMP.fullmatch(name)
        return found is not None and found[1] in self._dead

    def _is_dead(self, name: str) -> bool:
        found = TEMP.fullmatch(name)
        return found is not None and lease.is_alive(self._root, found[1]) is False

    @staticmethod
    def _is_shelved(name: str) -> bool:
        return _SHELVED.fullmatch(name) is not None


def _changed_at(folder: Folder, name: str) -> float:
    """Return the time of change in seconds since 1970; infinite if the writer moved the file."""
    try:
        return folder.facts(name).st_ctime
    except FileNotFoundError:
        return math.inf


def _free(folder: Folder, name: str, before: float) -> None:
    """Remove the lock directory `name` of a dead process of this program; leave those of peers."""
    with suppress(OSError, Unusable):
        if folder.has(OURS) and folder.facts(name).st_ctime < before:
            names = (OURS, name.removesuffix(TARGET), name)
            TaskLock(folder, os.path.basename(folder.path), names=names).free_dead()


def _drop_half_contracts(folder: Folder, before: float) -> int:
    """Remove logs of items without a contract, whose writer died before it reported a contract."""
    names = set(folder.names())
    logs = [name for name in names if name.endswith(_LOG)]
    halves = [name for name in logs if name.removesuffix(_LOG) + _SUMMARY not in names]
    old = [name for name in halves if folder.facts(name).st_mtime < before]
    for name in old:
        folder.remove(name)
    return len(old)


LEASE_S = 1.0  # maximum delay until a removed lease is created again
AGAIN_S = 1.0  # minimum interval of two rounds, for any number of orphans
FEW = 2_000  # tasks: reading all of these delays no list noticeably


class LedgerMaintenance:
    """Lease of an engine that accepts tasks, and periodic reaping.

    `read_only` is the reason why nothing may be written, `failures` are the errors of reaping.
    """

    def __init__(
        self,
        root: Path,
        reap_s: float,
        linked: Callable[[], LinkedRuns] | None = None,
        shelves: Iterable[Path] = (),
    ) -> None:
        self._root = root
        self._linked = linked
        self.ledger = Ledger(root)  # without a lease until `open`
        if linked is not None:
            self.ledger.on_state_change = self._follow_state
        self._reap_s = reap_s
        self._shelves = tuple(shelves)
        self._tidier = Tidier(root, self._shelves)
        self._reaper: Reaper | None = None
        self._upkeep: asyncio.Task[None] | None = None
        self._holding: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None  # while others hold locks of orphans
        self._first_reap: asyncio.Task[list[TaskRecord]] | None = None
        self._turn = asyncio.Lock()  # of the reaper: one call at a time
        self._settled: list[TaskRecord] = []
        self._soon, self._first = asyncio.Event(), asyncio.Lock()
        self._wanted = asyncio.Event()
        self._has_reaped = False
        self.known_ended: Callable[[], Iterable[TaskId]] = tuple  # called in a thread
        self.runs: ownership.Runs | None = None  # state of this process' own runs
        self.settle_lost: Callable[[], Awaitable[object]] = _nothing
        self.lease: Lease | None = None
        self.read_only = ""
        self.refusal: EngineError | None = None  # `read_only` as an error
        self.failures: tuple[EngineError, ...] = ()

    async def open(self, *, only_look: bool = False) -> None:
        """Take a lease; then `ledger` is writable, or `read_only` gives the reason.

        With `only_look`, a full disk without room for a lease leaves the ledger read-only, too;
        `open` may then be called again.

        Raises:
            LedgerUnusable: the root is no folder, or cannot be read or created.
            LedgerWriteFailed: there is no room for a lease (a full disk).
        """
        try:
            self.lease = await asyncio.to_thread(self._take_lease)
        except (LedgerReadOnly, LedgerWriteFailed) as error:
            if isinstance(error, LedgerWriteFailed) and not only_look:
                raise
            self.read_only, self.refusal = str(error), error
            self.ledger = await asyncio.to_thread(Ledger, self._root)
            return
        self.read_only, self.refusal = "", None
        self._tidier = Tidier(self._root, self._shelves)  # `close` stopped the one before
        try:
            self.ledger = await asyncio.to_thread(self._leased)
            self._reaper = Reaper(self.ledger, self.runs)
        except BaseException:
            await self.close()
            raise
        self._upkeep = asyncio.create_task(self._keep_up(), name="reap now and then")
        self._holding = asyncio.create_task(self._hold_lease(), name="hold the lease")

    async def _hold_lease(self) -> None:
        """Create the lease again if a cleaner removed it, or the ledger was restored as a copy.

        Other programs may not see this process, and then rely on the lease alone.
        """
        while self.lease is not None:
            await asyncio.sleep(LEASE_S)
            if self.lease is not None:
                await asyncio.to_thread(self.lease.renew)
            await self._or_later(self.settle_lost)

    def _take_lease(self) -> Lease:
        check_writable(self._root)
        return Lease.acquire(self._root)

    def _leased(self) -> Ledger:
        ledger = Ledger(self._root, lease=self.lease)
        if self._linked is not None:
            ledger.on_state_change = self._follow_state
        return ledger

    def _follow_state(self, record: TaskRecord) -> None:
        if self._linked is not None:
            self._linked().follow(record)

    async def reap(self) -> list[TaskRecord]:
        """End orphans of dead processes; the errors are in `failures`."""
        if self._reaper is None:
            raise LedgerReadOnly(path=str(self._root))
        async with self._turn:
            ended = await asyncio.to_thread(self._reaper.reap)
            await self._follow_up(self._reaper)
        self._has_reaped = True
        self._soon.set()
        if self._reaper.busy and (self._settling is None or self._settling.done()):
            self._settling = asyncio.create_task(self._settle(self._reaper), name="reap the busy")
        return ended

    async def tidy_after_death(self) -> None:
        """Remove the stale files of processes that died."""
        await asyncio.to_thread(self._tidier.tidy_after_death)

    async def settled(self) -> list[TaskRecord]:
        """Wait a limited time for locked orphans; return those ended since the last call."""
        if self._settling is not None:
            await asyncio.wait({self._settling}, timeout=SETTLE_S)
        found, self._settled = self._settled, []
        return found

    async def _settle(self, reaper: Reaper) -> None:
        while reaper.busy:
            await asyncio.sleep(BUSY_RETRY_S)
            async with self._turn:
                if ended := await asyncio.to_thread(reaper.retry):
                    self._settled += ended
                    await self._follow_up(reaper)
                self.failures = tuple(reaper.failures.values())

    async def _follow_up(self, reaper: Reaper) -> None:
        """Repair runs that lag behind their task, or whose task others ended."""
        if self._linked is not None:
            await asyncio.to_thread(self._linked().heal, reaper.ledger)
        self.failures = tuple(reaper.failures.values())

    @property
    def unjudged(self) -> dict[TaskId, str]:
        """Live tasks whose owner the last reaping could not determine, with the reason."""
        return dict(self._reaper.unjudged) if self._reaper is not None else {}

    async def has_many(self) -> bool:
        """Return whether a first list should not wait for the reaping of so many tasks."""
        assert self._reaper is not None
        return await asyncio.to_thread(_holds_more, self._reaper.ledger, FEW)

    async def reap_within(self, limit_s: float) -> list[TaskRecord]:
        """Run `reap_first`, but return after `limit_s`: a list does not wait for all of it."""
        self._first_reap = asyncio.create_task(self.reap_first(), name="reap before the first list")
        done, _ = await asyncio.wait({self._first_reap}, timeout=limit_s)
        return [record for reaping in done for record in reaping.result()]

    async def reap_first(self) -> list[TaskRecord]:
        """Reap once, without reading the tasks that are known to have ended.

        No task is accepted before this returns. Raises LedgerUnusable.
        """
        async with self._first:
            if (reaper := self._reaper) is not None and not self._has_reaped:
                await asyncio.to_thread(lambda: reaper.skip(self.known_ended()))
                return await self.reap()
        return []

    def reap_soon(self) -> None:
        """Start the first reaping, because a complete list knows the ended tasks."""
        self._soon.set()

    def orphan_seen(self) -> None:
        """Start the next round early, because a list found an orphan."""
        if self._has_reaped:
            self._wanted.set()

    async def close(self) -> None:
        """Release the lease: tasks that this process still owns become orphans."""
        running = (self._upkeep, self._holding, self._settling, self._first_reap)
        tasks = {task for task in running if task is not None}
        self._tidier.stop()
        self._upkeep = self._holding = self._settling = self._first_reap = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        lease, self.lease = self.lease, None
        if lease is not None:
            await asyncio.to_thread(lease.release)

    async def _keep_up(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._reap_s):
                await self._soon.wait()
        await self._or_later(self.reap_first)
        await self.tidy_after_death()
        while True:
            await asyncio.sleep(min(AGAIN_S, self._reap_s))
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._reap_s - AGAIN_S)):
                    await self._wanted.wait()
            self._wanted.clear()
            await self._or_later(self.reap)
            await asyncio.to_thread(self._tidier.tidy)

    async def _or_later(self, reap: Callable[[], Awaitable[object]]) -> None:
        try:
            await reap()
        except EngineError as error:
            log.warning("reaping failed, trying again later: %s", error)


async def _nothing() -> None:
    """Default of `settle_lost`: no run was given up."""


def _holds_more(ledger: Ledger, tasks: int) -> bool:
    return len(next(ledger.folders(tasks + 1), ())) > tasks


class OwnTasks:
    """Tasks that this process has accepted; none without an executor."""

    def __init__(self) -> None:
        self.executor: Executor | None = None
        self.accepting: set[asyncio.Task[TaskRecord]] = set()  # callers may be cancelled

    def owns(self, task_id: str) -> bool:
        """Return whether this process runs or has queued the task."""
        return self.executor is not None and self.executor.owns(TaskId(task_id))

    def run_of(self, task_id: str) -> Ownership:
        """Return the owner of a task of this process' lease: here, or its run was given up.

        From any thread.
        """
        if self.executor is None or self.accepting:  # one of them may be on disk already
            return Ownership(Owner.HERE, "")
        return self.executor.run_of(TaskId(task_id))

    def lost(self, task_id: str) -> EngineError | None:
        """Return why a run of this process was given up without an end on disk; None otherwise."""
        return self.executor.lost(TaskId(task_id)) if self.executor is not None else None

    def take_lost(self) -> list[EngineError]:
        """Return the errors of runs of this process that were given up since the last call."""
        return self.executor.take_lost() if self.executor is not None else []

    def is_away(self, task_id: str) -> bool:
        """Return whether this process runs the task and waits for its folder."""
        return self.owns(task_id) and self.run_of(task_id).owner is Owner.AWAY

    @property
    def trouble(self) -> str:
        """The obstacle to a run's end (a full disk, a lock); empty without one."""
        return self.executor.trouble if self.executor is not None else ""

    @property
    def task_ids(self) -> tuple[TaskId, ...]:
        """The tasks that were accepted and have not ended yet, oldest first."""
        return self.executor.task_ids if self.executor is not None else ()

    async def join(self, task_id: TaskId) -> None:
        """Wait until a task has left this process."""
        if self.executor is not None:
            await self.executor.join(task_id)

    async def close(
        self, cancel: Callable[[str, str | None], Awaitable[TaskRecord]], grace_s: float
    ) -> None:
        """Stop running tasks with `cancel`, and wait at most about `grace_s` for their end."""
        if self.accepting:  # each ends its task, since the engine accepts no more
            await asyncio.wait(self.accepting, timeout=grace_s)
        if self.executor is None:
            return

        async def ask(task_id: TaskId) -> None:
            try:
                await cancel(task_id, "the program that ran it was closed")
            except EngineError as error:
                log.warning("task %s: could not be asked to stop: %s", task_id, error)

        asking = [asyncio.create_task(ask(one)) for one in self.executor.task_ids]
        if asking:  # a lock of one task must not block the requests for others
            await asyncio.wait(asking, timeout=grace_s)
        await self.executor.close(grace_s)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


class TaskChanges:
    """Serialised changes of records, one per task at a time; `nudge` refreshes the lists."""

    def __init__(self, own: OwnTasks, nudge: Callable[[TaskId], None]) -> None:
        self._own = own
        self._nudge = nudge
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def make(self, task_id: str, change: Callable[[], TaskRecord]) -> TaskRecord:
        """Make a change in a thread, one per task at a time.

        A program that hangs inside a task's lock must not occupy every thread.
        """
        turn = self._turns.setdefault(task_id, asyncio.Lock())
        async with turn:
            return self.publish(await asyncio.to_thread(change))

    def publish(self, record: TaskRecord) -> TaskRecord:
        """Notify the task's runner and the lists of a new record at once."""
        task_id, executor = TaskId(record.task_id), self._own.executor
        if executor is not None:
            if record.is_terminal:
                executor.drop(task_id)
            executor.nudge(task_id)
        self._nudge(task_id)
        return record


@dataclass(frozen=True, slots=True)
class LedgerContext:
    """One ledger with its settings, its lease, its own tasks, and the router to other ledgers."""

    settings: Settings
    maintenance: LedgerMaintenance
    own: OwnTasks
    home_records: Callable[[], HomeRecords]  # made on the first call
    router: LedgerRouter

    @property
    def ledger(self) -> Ledger:
        """The currently open ledger; it gets a lease when the engine opens."""
        return self.maintenance.ledger

    @property
    def goals(self) -> Goals:
        """Contracts and task runs of the home."""
        return self.home_records().goals

    @property
    def runs(self) -> Runs:
        """Records of runs of the home."""
        return self.home_records().runs

    @property
    def linked(self) -> LinkedRuns:
        """The records of the runs of tasks."""
        return self.home_records().linked
