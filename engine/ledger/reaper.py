"""Reaper of dead owners' tasks: an orphan becomes FAILED, its pages a result.

The verdict comes from `ownership`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from engine.ledger import changes, machine, meta
from engine.ledger.files import Unusable
from engine.ledger.ledger import Ledger
from engine.ledger.listing import AT_ONCE, Found, slices
from engine.ledger.lock import UNMOVED_S
from engine.ledger.ownership import Owner, Owners, Ownership, Runs
from engine.model.errors import (
    EngineError,
    LockTimeout,
    TaskBusy,
    TaskNotFound,
    TaskUnreadable,
    TransitionError,
)
from engine.model.kind_traits import OTHER_RESULT_KEY, traits_of
from engine.model.records import ENVELOPE, TaskId, TaskRecord, Unreadable
from engine.model.status import moment
from engine.model.tally import killed_head

log = logging.getLogger(__name__)

# Unexpected errors of one damaged folder, which must not keep the rest waiting.
DEFECTS: Final = (
    *(ArithmeticError, AttributeError, LookupError, OSError),
    *(RuntimeError, TypeError, Unusable, ValueError),
)
# A locked folder must delay neither the window nor the other orphans: it is busy, and retried soon.
# The patience suffices for one locked operation of our own.
PATIENCE_S: Final = 0.05
BUSY_RETRY_S: Final = 0.4
SETTLE_S: Final = UNMOVED_S + 3
# Each end is flushed three times. Parallel flushes share the disk's work: 150 ends took 1.1 s one
# after the other and 0.4 s by four on a busy machine, and a start waits for them.
WORKERS: Final = 4
LARGE_AT_ONCE: Final = 16  # records that are read whole


class Reaper:
    """Ends orphans of one ledger. Keep it between runs: ended tasks are not read again.

    After a run, `failures` maps the tasks that could not be ended to the reasons; they are retried
    in the next one. Those in `unjudged` have an owner that cannot be judged from here, those in
    `busy` are locked by another program, and wait for `retry`.
    """

    def __init__(self, ledger: Ledger, runs: Runs | None = None) -> None:
        self.ledger = ledger
        self._owners = Owners(ledger.root, ledger.lease, runs)
        self._ended: set[TaskId] = set()
        self.failures: dict[TaskId, EngineError] = {}
        self.busy: set[TaskId] = set()
        self.unjudged: dict[TaskId, str] = {}
        self._logged: dict[str, str] = {}  # last logged reason for which a task could not be reaped

    def owner_of(self, record: TaskRecord) -> Ownership:
        """Judge the owner of the task; see `ownership`."""
        return self._owners.of(record)

    def skip(self, ended: Iterable[TaskId]) -> None:
        """Skip these tasks in future: another reader found that they have ended, which is final."""
        for part in slices(ended):
            self._ended.update(part)

    def reap(self) -> list[TaskRecord]:
        """End every task whose owner is proved dead: FAILED, `orphaned`; return the new records.

        Source: seed 000, invariant 2 (before any new task is accepted).
        """
        self.failures, self.busy, self.unjudged = {}, set(), {}
        return self._end_all(self._live())

    def retry(self) -> list[TaskRecord]:
        """End those in `busy` whose lock is free by now. Call it every BUSY_RETRY_S."""
        ready = {task_id for task_id in self.busy if not self._must_wait(task_id)}
        self.busy -= ready
        for task_id in ready:
            self.failures.pop(task_id, None)
        found = (one.entry for one in self.ledger.read_many(ready))
        return self._end_all(
            entry for entry in found if isinstance(entry, TaskRecord) and entry.is_live
        )

    def settle(self, limit_s: float = SETTLE_S) -> list[TaskRecord]:
        """`reap`, and then `retry` until nothing is busy, or for `limit_s`."""
        until = time.monotonic() + limit_s
        ended = self.reap()
        while self.busy and time.monotonic() < until:
            time.sleep(BUSY_RETRY_S)  # foreign locks are freed without notice
            ended += self.retry()
        return ended

    def _end_all(self, records: Iterable[TaskRecord]) -> list[TaskRecord]:
        found = list(records)
        if len(found) <= WORKERS:
            ended = list(map(self._end_if_orphaned, found))
        else:
            with ThreadPoolExecutor(WORKERS, "reap") as pool:
                ended = list(pool.map(self._end_if_orphaned, found))
        return [record for record in ended if record is not None]

    def _must_wait(self, task_id: TaskId) -> bool:
        try:
            return self.ledger.must_wait(task_id)
        except (EngineError, OSError):
            return False  # the next try decides

    def _end_if_orphaned(self, record: TaskRecord) -> TaskRecord | None:
        """End one orphan and return its record; None when alive, gone, or now in `failures`."""
        try:
            found = self.owner_of(record)
            if found.dead:
                return self._end(TaskId(record.task_id))
            if not found.alive and record.kind != ENVELOPE:
                self.unjudged[TaskId(record.task_id)] = found.sentence
        except (TaskNotFound, TransitionError):
            pass  # it was removed, or has ended, since it was read
        except TaskBusy as error:
            self.busy.add(TaskId(record.task_id))
            self.failures[TaskId(record.task_id)] = error
        except EngineError as error:
            self._failed(record, error)
        except DEFECTS as error:
            self._failed(record, self._as_unreadable(record, error))
        return None

    def _failed(self, record: TaskRecord, error: EngineError) -> None:
        level = logging.DEBUG if self._logged.get(record.task_id) == str(error) else logging.WARNING
        self._logged[record.task_id] = str(error)
        log.log(level, "task %s: could not be reaped: %s", record.task_id, error)
        self.failures[TaskId(record.task_id)] = error

    def _as_unreadable(self, record: TaskRecord, error: Exception) -> TaskUnreadable:
        log.debug("task %s", record.task_id, exc_info=error)
        reason = f"it could not be judged ({type(error).__name__})"
        path = str(self.ledger.root / record.task_id)
        return TaskUnreadable(task_id=record.task_id, reason=reason, path=path)

    def _live(self) -> list[TaskRecord]:
        others: list[str] = []
        for (part,) in slices(self.ledger.folders(AT_ONCE), 1):
            ended, rest = self.ledger.ended([one for one in part if one not in self._ended])
            self._ended.update(TaskId(record.task_id) for record in ended)
            others += rest
        live: list[TaskRecord] = []
        for found in self._records(others):
            if isinstance(found.entry, Unreadable):
                continue
            if found.entry.is_terminal:
                self._ended.add(found.task_id)  # permanently: a terminal state is final
            elif found.entry.is_live:
                live.append(found.entry)
        return live

    def _records(self, ids: list[str]) -> Iterator[Found]:
        """Yield each record as stored; of records of a megabyte only some are in memory at once."""
        for part in slices(ids, LARGE_AT_ONCE):
            yield from self.ledger.read_many(part)

    def _end(self, task_id: TaskId) -> TaskRecord | None:
        """Write the result first, then the record, then the event, as every end does."""
        if self.ledger.must_wait(task_id):  # before work that would have to be repeated
            raise TaskBusy(task_id=task_id, waited_s=0.0)
        self._keep_pages(task_id)
        units, last_ms, _ = self.ledger.tail_units(task_id)
        causes: list[str] = []

        def set_orphaned(raw: dict[str, Any]) -> None:
            causes.clear()
            verdict = self._owner_now(raw, task_id)
            if verdict.dead:
                causes.append(f"orphaned: {verdict.sentence}")
                changes.orphan(raw, causes[0], machine.wall_ms(), units, last_ms)

        try:
            record = self.ledger.mutate(task_id, set_orphaned, durable=True, wait_s=PATIENCE_S)
        except LockTimeout as error:
            raise TaskBusy(task_id=task_id, waited_s=PATIENCE_S) from error
        if not causes:
            return None
        event = {"code": "orphaned", "message": causes[0], "pid": record.pid}
        self.ledger.note(task_id, [("failed", event)], durable=True)
        return record

    def _owner_now(self, raw: dict[str, Any], task_id: TaskId) -> Ownership:
        """Judge the task again under the lock: it may have ended, or found another owner."""
        try:
            return self.owner_of(meta.as_record(raw, task_id))
        except Unusable as error:
            return Ownership(Owner.UNKNOWN, str(error))

    def _keep_pages(self, task_id: TaskId) -> None:
        """Assemble a killed task's pages as its partial result, unless it wrote one itself."""
        ledger = self.ledger
        if ledger.has_result(task_id) or next(ledger.raw_pages(task_id), None) is None:
            return
        record = ledger.read(task_id)
        if isinstance(record, Unreadable):  # it may be readable the next time: pages are not lost
            raise TaskUnreadable(task_id=task_id, reason=record.reason, path=record.path)
        _, last_ms, _ = ledger.tail_units(task_id)
        began_ms = moment(record.started_at) or moment(record.created_at) or 0
        lasted_ms = round(max(0, (moment(last_ms) or began_ms) - began_ms))
        pages = ledger.read_pages(task_id)
        head = killed_head(record.kind, task_id, pages, _scope(record), lasted_ms)
        key = traits_of(record.kind).result_key or OTHER_RESULT_KEY
        ledger.write_units(task_id, head, key)


def _scope(record: TaskRecord) -> str:
    """Return the requested scope of the crawl, else its origin."""
    scope = record.args_summary.get("scope")
    if isinstance(scope, str):
        return scope
    from engine.model import addresses  # only a killed crawl needs its library

    start = addresses.parse(record.url)
    return f"{start.origin}/**" if start is not None and start.is_web else ""
