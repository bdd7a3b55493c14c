"""Ownership of a task's run: one verdict for every part of the program.

A death must be proved, never guessed: by a lease that can be locked or another boot for our own
tasks, by a pid that is gone or reused for all others. An owner that cannot be judged (another
machine, say) counts as alive. A lease alone does not prove that a run lives: the process that holds
it is queried for the run itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from engine.ledger import lease, machine
from engine.ledger.files import Folder
from engine.ledger.lock import held_by_another
from engine.model.records import ENVELOPE, LIVE, EngineFields, TaskId, TaskRecord, Unreadable
from engine.model.status import given_up_at, moment

MISSING_S: Final = 3.0  # a living owner restores a removed lease within about 1 s
AWAY_WORDS: Final = "the ledger folder is away"


class Owner(StrEnum):
    """State of a live task's owner."""

    HERE = "here"  # this process runs it
    ELSEWHERE = "elsewhere"  # another, living process runs it
    AWAY = "away"  # the task's folder, or the ledger, is missing: nothing can be proved
    NOBODY = "nobody"  # proved: the owner is dead, or no longer has this run
    LOCKED = "locked"  # as NOBODY, but another program holds the task's lock
    UNKNOWN = "unknown"  # it cannot be judged from here, or not yet


class Ownership(NamedTuple):
    """Owner of a task, and the reason in words that fit behind "orphaned:".

    `undriven` is an envelope whose host has ended, and which its host may still take up again.
    """

    owner: Owner
    sentence: str
    undriven: bool = False

    @property
    def dead(self) -> bool:
        """Whether the task is proved to have no runner."""
        return self.owner in (Owner.NOBODY, Owner.LOCKED)

    @property
    def alive(self) -> bool:
        """Whether the task is proved to have a runner."""
        return self.owner in (Owner.HERE, Owner.ELSEWHERE)


# Executor's view of an own run: HERE, AWAY, or the reason why there is none.
Runs = Callable[[TaskId], Ownership]


class Owners:
    """Ownership verdicts for one ledger and one process; read-only and thread-safe.

    `held` is this process' own lease there, `runs` its executor's view of a task. Without `runs`
    the lease alone decides for the tasks of this process.
    """

    def __init__(
        self, root: Path, held: lease.Lease | None = None, runs: Runs | None = None
    ) -> None:
        self._root, self._held, self._runs = root, held, runs

    @property
    def knows_runs(self) -> bool:
        """Whether the executor of this process is queried for its own tasks."""
        return self._runs is not None

    def is_own(self, record: TaskRecord | Unreadable) -> bool:
        """Return whether the task belongs to this process' lease in this ledger."""
        held = self._held
        owner = record.engine if isinstance(record, TaskRecord) else None
        return held is not None and owner is not None and owner.runner == held.nonce

    def of(self, record: TaskRecord) -> Ownership:
        """Judge the owner of a PENDING or RUNNING task."""
        if record.status not in LIVE:
            return Ownership(Owner.UNKNOWN, "the task has ended")
        if record.kind == ENVELOPE:
            return _envelope(record, machine.age_clock_ms())
        if self._runs is not None and self.is_own(record):
            return self._runs(TaskId(record.task_id))
        if record.engine is None or not record.engine.runner:
            found = _by_pid(record)
        else:
            found = _by_lease(record, record.engine, self._root)
        return self._locked(record, found) if found.dead else found

    def _locked(self, record: TaskRecord, found: Ownership) -> Ownership:
        """Refine a proved death: LOCKED by another program, or AWAY without its folder."""
        try:
            with Folder.at(str(self._root)) as root, root.enter(record.task_id) as folder:
                held = held_by_another(folder)
        except FileNotFoundError:
            return Ownership(Owner.AWAY, AWAY_WORDS)
        except OSError:
            return found
        return Ownership(Owner.LOCKED, found.sentence) if held else found


def owner_of(root: Path, record: TaskRecord) -> Ownership:
    """Judge as `Owners.of`, for a caller that runs no tasks."""
    return Owners(root).of(record)


def is_kept_here(record: TaskRecord) -> bool:
    """Return whether this envelope belongs to this process; it has no run, and so no lease."""
    owner = record.engine
    if record.kind != ENVELOPE or owner is None or record.pid != machine.own_process()[0]:
        return False
    return machine.same_host(owner.host or "") and machine.same_boot(owner.boot_id or "")


def _by_lease(record: TaskRecord, owner: EngineFields, root: Path) -> Ownership:
    if owner.host and not machine.same_host(owner.host):
        return Ownership(Owner.UNKNOWN, f"running on {owner.host}")
    nonce = owner.runner or ""
    # The lease first: some systems derive the boot from a clock that may have been set.
    alive = lease.is_alive(root, nonce)
    if alive:
        _missing_since.pop((str(root), nonce), None)
        here = lease.is_held_here(nonce)
        return Ownership(
            Owner.HERE if here else Owner.ELSEWHERE, f"process {record.pid} is running"
        )
    if owner.boot_id and not machine.same_boot(owner.boot_id):
        return Ownership(Owner.NOBODY, "the machine was restarted since")
    hidden = owner.pid_space not in (None, machine.pid_space())
    if alive is None and (hidden or not lease.is_blocked(root, nonce)):
        return Ownership(Owner.UNKNOWN, "its lease cannot be read")
    if not root.is_dir():
        return Ownership(Owner.AWAY, AWAY_WORDS)
    return _by_process(record, owner, missing=not lease.exists(root, nonce), root=root)


def _by_process(record: TaskRecord, owner: EngineFields, *, missing: bool, root: Path) -> Ownership:
    """Judge the process by pid and start time when no process holds its lease.

    The owner died or released it, a cleaner removed or replaced it, or the ledger came back as a
    copy; the process itself decides which.
    """
    pid = machine.as_pid(record.pid)
    began_ms = moment(owner.owner_started_at)
    gone = Ownership(Owner.NOBODY, f"process {record.pid} is gone")
    if pid is None or began_ms is None:
        return gone
    lives: bool | None
    if machine.own_process()[0] == pid and owner.pid_space in (None, machine.pid_space()):
        lives = lease.is_held_here(owner.runner or "")
    else:
        lives = machine.is_process(pid, began_ms)
    if lives is None:
        return Ownership(Owner.UNKNOWN, f"process {pid} cannot be asked")
    if lives:
        return Ownership(Owner.ELSEWHERE, f"process {pid} is running")
    hidden = owner.pid_space not in (None, machine.pid_space())
    if missing and hidden and not _missing_for_good(root, owner.runner or ""):
        return Ownership(Owner.UNKNOWN, "its lease is missing, and its process is in a container")
    return gone


_missing_since: Final[dict[tuple[str, str], float]] = {}
_missing_lock: Final = threading.Lock()


def _missing_for_good(root: Path, nonce: str) -> bool:
    """Return whether a lease is missing for longer than its owner needs to restore it."""
    if lease.was_dead(root, nonce):
        return True
    now_s = machine.awake_s()
    with _missing_lock:
        return now_s - _missing_since.setdefault((str(root), nonce), now_s) > MISSING_S


def _by_pid(record: TaskRecord) -> Ownership:
    pid = machine.as_pid(record.pid)
    if pid is None:
        return Ownership(Owner.NOBODY, "its owner is not a process")
    match machine.presence(pid, moment(record.started_at) or moment(record.created_at)):
        case machine.Presence.GONE:
            return Ownership(Owner.NOBODY, f"process {pid} is gone")
        case machine.Presence.REUSED:
            sentence = f"process {pid} is another one now (its number was reused)"
            return Ownership(Owner.NOBODY, sentence)
        case machine.Presence.ALIVE:
            return Ownership(Owner.ELSEWHERE, f"process {pid} is running")
    return Ownership(Owner.UNKNOWN, f"process {pid} cannot be asked")


def _envelope(record: TaskRecord, now_ms: int) -> Ownership:
    """Judge a browser_task, which an agent drives: its maker's death alone does not end it."""
    found = _by_pid(record)
    if found.dead and now_ms < given_up_at(record):
        sentence = "its host may come back within a day of its last activity"
        return Ownership(Owner.UNKNOWN, sentence, undriven=True)
    return found
