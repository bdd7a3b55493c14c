"""The records that cross seams, as they stand on disk (the ledger's own names, ms since 1970).

Fast reads decode straight into these; a rewrite never starts from them (they drop
unknown fields) but from the whole dict, see `store.ledger`.
What holds JSON only is `gc=False`: it cannot hold a cycle, and the collector need not walk
ten thousand of them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, NewType, TypeVar

import msgspec

T = TypeVar("T")
TaskId = NewType("TaskId", str)

META_NAME = "meta.json"
EVENTS_NAME = "events.jsonl"
PAGES_NAME = "pages.jsonl"
RESULT_NAME = "result.json"
ARTIFACTS_NAME = "artifacts"
COMMANDS_NAME = "commands.json"
DOCUMENTS = frozenset({COMMANDS_NAME})  # what a kind may keep beside its units

ENVELOPE = "browser_task"  # the kind without a body of ours: an agent drives it from outside
TASK_RUN = "task_run"  # no task of the ledger but a goal that tasks work for, listed beside them


class Status(StrEnum):
    """The five states on disk. Anything else found there is shown as it is."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
LIVE = frozenset({Status.PENDING, Status.RUNNING})


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Why a task FAILED: `message` for people, `code` for programs."""

    message: str
    code: str | None = None


class Units(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How far a task is: `total` is None while nobody knows; `failed` of `done` went wrong."""

    done: int = 0
    total: int | None = None
    message: str | None = None
    failed: int = 0


class EngineFields(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Our own additions to meta.json, all under its key `engine`."""

    host: str | None = None
    boot_id: str | None = None
    runner: str | None = None
    owner_started_at: float | None = None
    pid_space: int | None = None
    run_id: str | None = None
    contract_id: str | None = None
    task_run_id: str | None = None
    parent_task_id: str | None = None
    name: str | None = None
    command_task_id: str | None = None
    units: Units | None = None
    args: dict[str, Any] | None = None
    withheld: bool = False
    metadata: Any = None
    forced_at: float | None = None
    stop_requested_at: float | None = None
    cancel_reason: str | None = None
    enforce: bool = False
    lasted_ms: float | None = None
    lasted_at: float | None = None


class TaskRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One meta.json, read-only. No status, kind or number in it is to be trusted.

    `odd` names fields whose value had an unusable shape (a pid that is a text, say); they
    read as their default here and stand untouched on disk.
    """

    task_id: str
    kind: str = ""
    status: str = ""
    pid: int | float | None = None
    created_at: int | float = 0
    started_at: int | float | None = None
    ended_at: int | float | None = None
    last_activity_at: int | float | None = None
    cancel_requested_at: int | float | None = None
    args_summary: dict[str, Any] = {}
    error: ErrorInfo | None = None
    result_path: str | None = None
    owner: dict[str, Any] | None = None
    task_nonce: str | None = None
    objective: str | None = None
    phase: str | None = None
    policy: dict[str, Any] | None = None
    counters: dict[str, Any] | None = None
    budget_status: str | None = None
    budget_exceeded: list[str] | None = None
    recommended_next: str | None = None
    engine: EngineFields | None = None
    odd: tuple[str, ...] = ()

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    @property
    def units(self) -> Units | None:
        """How far it says itself that it is; a `browser_task` counts the calls of its tools."""
        ours = self.engine
        if ours is not None and (told := ours.units) is not None:
            return told
        calls = self.counters.get("toolCalls") if self.kind == ENVELOPE and self.counters else None
        if type(calls) is not int or calls < 0:
            return None
        failed = self.counters.get("failureCalls") if self.counters else None
        return Units(
            done=calls, failed=failed if type(failed) is int and 0 < failed <= calls else 0
        )

    @property
    def url(self) -> str:
        """The address it is about, or nothing. Redacted already."""
        given = self.args_summary.get("url")
        return given if isinstance(given, str) else ""


class Unreadable(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A task folder whose meta.json cannot be used: shown with the reason, never written."""

    task_id: str
    reason: str
    path: str
    seen_at: int | float = 0

    @property
    def created_at(self) -> int | float:
        """Its place among the others: nothing better is known than when it was last written."""
        return self.seen_at


class Stamp(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What one stat of a meta.json tells; a changed stamp means: read it again."""

    inode: int
    mtime_ns: int
    size: int


class TaskView(msgspec.Struct, frozen=True, gc=False):
    """One task as every face shows it: the record, how far it is, and who owns it.

    `orphaned` means that its owner is proved dead and nobody has reaped it yet.
    `ours` means that this very process runs it; `foreign` that another living one does.
    `locked` means that it is orphaned, and cannot be ended yet: another program has its lock.
    `stale` means that its file is being rewritten, and this is what it last said.
    `last_event_at` is the newest event's time in ms, where the tail was read.
    `away` means that it runs here, and waits for its folder, which is away.
    `ledger` is the label of the ledger beside the own one that it is in; empty for the own.
    """

    entry: TaskRecord | Unreadable
    units: Units | None = None
    last_event_at: int | float | None = None
    orphaned: bool = False
    ours: bool = False
    foreign: bool = False
    ledger: str = ""
    locked: bool = False
    away: bool = False
    stale: bool = False

    @property
    def task_id(self) -> TaskId:
        return TaskId(self.entry.task_id)


class TaskEvent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of events.jsonl. Unknown kinds are kept and shown."""

    ts: int | float
    kind: str
    data: dict[str, Any] | None = None


class EventSlice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Events from one byte offset on: ask for `next_offset` to go on.

    `skipped` counts lines that are not events (torn, over 1 MiB, not an object).
    """

    events: tuple[TaskEvent, ...]
    next_offset: int
    skipped: int = 0


class History(msgspec.Struct, Generic[T], frozen=True):
    """A part of events.jsonl from byte `start` to `next_offset`, its events made into T.

    `skipped` counts lines that are no events; `earlier` the lines before `start`, None where
    nobody counted them.
    """

    events: tuple[T, ...]
    start: int
    next_offset: int
    skipped: int = 0
    earlier: int | None = None


class UnitTime(msgspec.Struct, frozen=True, gc=False):
    """A finished unit's time: a page by its address (`began` is then not known), or a command
    by its tool; `about` is what the command was for."""

    label: str
    took_ms: float
    began: float | None = None
    failed: bool = False
    about: str = ""


class UnitTimes(msgspec.Struct, frozen=True):
    """Units in the order in which they were finished; go on at `next_offset`."""

    units: tuple[UnitTime, ...]
    next_offset: int


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the status bar says. Every text is for people and already plain.

    `browser`/`engine` are one of: idle, starting, ready, missing, failed.
    `watcher` is one of: live, polling, gone (the ledger's folder is not there), silent (it does
    not answer); `deaf` says why it will go on polling. `warnings` keep work from being done;
    `concerns` do not, they tell what makes the ledger less safe than it should be. `away`: runs
    wait for their folder.
    `no_room`: it is read-only until the disk has room.
    """

    root: str
    engine: str = "idle"
    browser: str = "idle"
    browser_name: str = ""
    browser_reason: str = ""
    watcher: str = "live"
    watcher_reason: str = ""
    running: int = 0
    queued: int = 0
    slots: int = 0
    read_only: str = ""
    no_room: bool = False
    warnings: tuple[str, ...] = ()
    concerns: tuple[str, ...] = ()
    deaf: str = ""
    away: bool = False
