"""Proves owners dead, and ends what they left: an orphan becomes FAILED, its pages a result.

A death must be proved, never guessed: by a lease that can be locked or another boot for
our own tasks, by a pid that is gone or has become another process for all others. Who
cannot be judged (another machine, say) counts as alive.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from engine.attention import moment
from engine.errors import EngineError, TaskNotFound, TaskUnreadable
from engine.records import ENVELOPE, LIVE, EngineFields, TaskId, TaskRecord, Unreadable
from engine.store import changes, lease, machine, meta
from engine.store.files import Unusable
from engine.store.ledger import Ledger
from engine.store.slices import AT_ONCE, slices
from engine.tally import OTHER_UNITS, UNITS_KEY, killed_head

log = logging.getLogger(__name__)

# What one damaged folder may raise beyond what was foreseen: it must not keep the rest waiting.
DEFECTS: Final = (
    *(ArithmeticError, AttributeError, LookupError, OSError),
    *(RuntimeError, TypeError, Unusable, ValueError),
)
# A folder that stays locked keeps neither the window nor the other orphans waiting: the next
# sweep tries it again. Long enough to free the lock of a dead peer, which is watched for 1 s.
PATIENCE_S: Final = 2.5
ENVELOPE_GRACE_MS: Final = 24 * 3_600_000  # an envelope's host may come back after a night


class Life(Enum):
    """What is known of a task's owner."""

    DEAD = "dead"
    ALIVE = "alive"
    UNKNOWN = "unknown"


class Verdict(NamedTuple):
    """`life`, and why in words that fit behind "orphaned:"."""

    life: Life
    sentence: str

    @property
    def dead(self) -> bool:
        return self.life is Life.DEAD


def owner_is_dead(root: Path, record: TaskRecord, now_ms: int | None = None) -> Verdict:
    """Is the owner of a PENDING or RUNNING task proved dead? A look: nothing is written."""
    if record.status not in LIVE:
        return Verdict(Life.UNKNOWN, "the task has ended")
    if record.kind == ENVELOPE:
        return _envelope(record, machine.unhurried_ms() if now_ms is None else now_ms)
    if record.engine is not None and record.engine.runner:
        return _ours(record, record.engine, root)
    return _foreign(record)


def is_kept_here(record: TaskRecord) -> bool:
    """Is this an envelope that belongs to this very process? It has no run, and so no lease."""
    owner = record.engine
    if record.kind != ENVELOPE or owner is None or record.pid != machine.me()[0]:
        return False
    return machine.same_host(owner.host or "") and machine.same_boot(owner.boot_id or "")


def _ours(record: TaskRecord, owner: EngineFields, root: Path) -> Verdict:
    if owner.host and not machine.same_host(owner.host):
        return Verdict(Life.UNKNOWN, f"running on {owner.host}")
    # The lease first: some systems work the boot out from a clock that may have been set.
    alive = lease.is_alive(root, owner.runner or "")
    if alive:
        return Verdict(Life.ALIVE, f"process {record.pid} is running")
    if owner.boot_id and not machine.same_boot(owner.boot_id):
        return Verdict(Life.DEAD, "the machine was restarted since")
    if alive is None:
        return Verdict(Life.UNKNOWN, "its lease cannot be read")
    if not lease.is_there(root, owner.runner or ""):
        return _without_lease(record, owner)
    return Verdict(Life.DEAD, f"process {record.pid} is gone")


def _without_lease(record: TaskRecord, owner: EngineFields) -> Verdict:
    """A lease that is nowhere was let go, swept after a death, or removed by a cleaner: ask
    for the process itself, by pid and start time. A living one puts its lease back."""
    pid = machine.as_pid(record.pid)
    began_ms = moment(owner.owner_started_at)
    gone = Verdict(Life.DEAD, f"process {record.pid} is gone")
    if pid is None or began_ms is None:
        return gone
    if machine.me()[0] == pid:
        lives: bool | None = lease.is_held_here(owner.runner or "")
    else:
        lives = machine.is_process(pid, began_ms)
    if lives is None:
        return Verdict(Life.UNKNOWN, f"process {pid} cannot be asked")
    return Verdict(Life.ALIVE, f"process {pid} is running") if lives else gone


def _foreign(record: TaskRecord) -> Verdict:
    pid = machine.as_pid(record.pid)
    if pid is None:
        return Verdict(Life.DEAD, "its owner is not a process")
    match machine.presence(pid, moment(record.started_at) or moment(record.created_at)):
        case machine.Presence.GONE:
            return Verdict(Life.DEAD, f"process {pid} is gone")
        case machine.Presence.REUSED:
            return Verdict(Life.DEAD, f"process {pid} is another one now (its number was reused)")
        case machine.Presence.ALIVE:
            return Verdict(Life.ALIVE, f"process {pid} is running")
    return Verdict(Life.UNKNOWN, f"process {pid} cannot be asked")


def _envelope(record: TaskRecord, now_ms: int) -> Verdict:
    """A browser_task is worked on from outside: its maker's death alone does not end it."""
    verdict = _foreign(record)
    last_ms = moment(record.last_activity_at) or moment(record.created_at) or 0
    if verdict.dead and now_ms - last_ms < ENVELOPE_GRACE_MS:
        return Verdict(Life.UNKNOWN, "its host may come back within a day of its last activity")
    return verdict


class Reaper:
    """Ends orphans of one ledger. Keep it between runs: what has ended is not looked at again.

    `failures` tells, after a run, which tasks could not be ended and why; they are tried
    again in the next one.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._ended: set[TaskId] = set()
        self.failures: dict[TaskId, EngineError] = {}

    def owner_is_dead(self, record: TaskRecord) -> Verdict:
        """See the function of this name."""
        return owner_is_dead(self.ledger.root, record)

    def pass_over(self, ended: Iterable[TaskId]) -> None:
        """Do not look at these, which somebody else read: they have ended, and that is final."""
        for part in slices(ended):
            self._ended.update(part)

    def reap(self) -> list[TaskRecord]:
        """End every task whose owner is proved dead: FAILED, `orphaned`; the records as they stand.

        Source: seed 000, invariant 2 (before any new task is accepted).
        """
        self.failures = {}
        ended = map(self._end_if_orphaned, self._live())
        return [record for record in ended if record is not None]

    def _end_if_orphaned(self, record: TaskRecord) -> TaskRecord | None:
        """The record as it then stands; None when it lives on, went, or is in `failures` now."""
        try:
            if self.owner_is_dead(record).dead:
                return self._end(TaskId(record.task_id))
        except TaskNotFound:
            pass
        except EngineError as error:
            self._failed(record, error)
        except DEFECTS as error:
            self._failed(record, self._unforeseen(record, error))
        return None

    def _failed(self, record: TaskRecord, error: EngineError) -> None:
        log.warning("task %s: could not be reaped: %s", record.task_id, error)
        self.failures[TaskId(record.task_id)] = error

    def _unforeseen(self, record: TaskRecord, error: Exception) -> TaskUnreadable:
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
        for found in self.ledger.read_many(others):
            if isinstance(found.entry, Unreadable):
                continue
            if found.entry.is_terminal:
                self._ended.add(found.task_id)  # for good: terminal is final
            elif found.entry.is_live:
                live.append(found.entry)
        return live

    def _end(self, task_id: TaskId) -> TaskRecord | None:
        """Result first, then the record, then the event: the order of every end."""
        self._keep_pages(task_id)
        units, _, _ = self.ledger.tail_units(task_id)
        was: list[str] = []

        def bury(raw: dict[str, Any]) -> None:
            was.clear()
            verdict = self._judged_again(raw, task_id)
            if verdict.dead:
                was.append(f"orphaned: {verdict.sentence}")
                changes.orphan(raw, was[0], machine.wall_ms(), units)

        record = self.ledger.mutate(task_id, bury, durable=True, wait_s=PATIENCE_S)
        if not was:
            return None
        event = {"code": "orphaned", "message": was[0], "pid": record.pid}
        self.ledger.note(task_id, [("failed", event)], durable=True)
        return record

    def _judged_again(self, raw: dict[str, Any], task_id: TaskId) -> Verdict:
        """Under the lock the task may have ended, or found another owner, since we looked."""
        try:
            return self.owner_is_dead(meta.as_record(raw, task_id))
        except Unusable as error:
            return Verdict(Life.UNKNOWN, str(error))

    def _keep_pages(self, task_id: TaskId) -> None:
        """Make the units of a killed task its partial result, unless it left one itself."""
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
        key = UNITS_KEY.get(record.kind, OTHER_UNITS)
        ledger.write_units(task_id, head, key)


def _scope(record: TaskRecord) -> str:
    """The crawl's scope as far as its record tells: what was asked for, else the origin."""
    scope = record.args_summary.get("scope")
    if isinstance(scope, str):
        return scope
    try:
        start = urlsplit(record.url)
    except ValueError:
        return ""
    return f"{start.scheme}://{start.netloc}/**" if start.netloc else ""
