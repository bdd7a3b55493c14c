"""Records that the packages share, in the ledger's names (times in ms since 1970).

Fast reads decode straight into these structs. A rewrite starts from the whole dict, because the
structs drop unknown fields. Structs that hold only JSON are `gc=False`: they cannot form a cycle,
and the collector need not traverse ten thousand of them.
"""

from __future__ import annotations

import re
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
SESSION_STATE = "session-state"  # begins the names of files with the logins of a snapshot
COMMANDS_NAME = "commands.json"
SCHEDULES_FOLDER = ".schedules"  # in the ledger; the next four are in the home
PROFILES_FOLDER = "profiles"
CONTRACTS_FOLDER = "progress-contracts"
TASK_RUNS_FOLDER = "task-runs"
RUNS_FOLDER = "comet-runs"
# Id of a run: safe as a file name on every system; device names of Windows (`con`) are not.
RUN_ID = re.compile(
    r"(?!(?i:con|prn|aux|nul|com\d|lpt\d)\Z)[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII
)
DOCUMENTS = frozenset({COMMANDS_NAME})  # files that a kind may keep in addition to its units

ENVELOPE = "browser_task"  # the kind that an external agent executes
TASK_RUN = "task_run"  # no ledger task: a goal of several tasks, listed with them
ROUTES = ("mcp", "cli", "http")  # how a request comes; one in the window has no route


class Status(StrEnum):
    """The five states on disk; other values found there are shown unchanged."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
LIVE = frozenset({Status.PENDING, Status.RUNNING})


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Error of a FAILED task: `message` for users, `code` for programs."""

    message: str
    code: str | None = None


class Units(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Progress of a task: `total` is None while unknown; `failed` is part of `done`.

    `carried` is the part of `done` that a resumed crawl took over from the task before it.
    """

    done: int = 0
    total: int | None = None
    message: str | None = None
    failed: int = 0
    carried: int = 0


class RunChanges(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a scheduled run found differently than the completed run `before` it, in pages."""

    before: str
    added: int = 0
    removed: int = 0
    changed: int = 0
    same: int = 0

    @property
    def total(self) -> int:
        """All pages that differ."""
        return self.added + self.removed + self.changed


class ScheduleLink(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The schedule `id` that started a task.

    `due_at` is the instant at which the task was due (None when a user started it early), `changes`
    its differences from the run before, and `notify` requests a notification of them.
    """

    id: str
    due_at: float | None = None
    notify: bool = False
    changes: RunChanges | None = None


class EngineFields(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """This program's fields in meta.json, under its key `engine`.

    `resumes` marks a crawl that continues its parent, whose pages it carried over. `client` is the
    name of the program that requested the task, `route` how the request came
    (mcp, cli, http); both are None for the window's own requests.
    """

    host: str | None = None
    boot_id: str | None = None
    runner: str | None = None
    owner_started_at: float | None = None
    pid_space: int | None = None
    run_id: str | None = None
    contract_id: str | None = None
    task_run_id: str | None = None
    parent_task_id: str | None = None
    resumes: bool = False
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
    client: str | None = None
    route: str | None = None
    schedule: ScheduleLink | None = None


class TaskRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One meta.json, read-only; its status, kind and numbers are untrusted.

    `odd` names fields whose value had an unusable type (a pid that is a text, say); they read as
    their default here and stay unchanged on disk.
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
        """The progress that the record holds; a `browser_task` counts its tool calls."""
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
        """The redacted address of the task, or ""."""
        given = self.args_summary.get("url")
        return given if isinstance(given, str) else ""


class Unreadable(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Task folder with an unusable meta.json: shown with the reason, never written."""

    task_id: str
    reason: str
    path: str
    seen_at: int | float = 0

    @property
    def created_at(self) -> int | float:
        """The time of the last write, since no creation time is known."""
        return self.seen_at


class Stamp(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """File identity of a meta.json from one stat; the file is read again when it changes."""

    inode: int
    mtime_ns: int
    size: int


class TaskView(msgspec.Struct, frozen=True, gc=False):
    """One task as shown by window, command line and tools: record, progress and ownership.

    `orphaned`: its owner is proved dead and it has not been reaped.
    `ours`: this process runs it; `foreign`: another live process does.
    `locked`: it is orphaned but cannot be ended, because another program holds its lock.
    `stale`: its file is being rewritten; this is the previous content.
    `last_event_at` is the newest event's time in ms, where the tail was read.
    `away`: it runs here and waits for its folder, which is missing.
    `undriven`: it is an envelope whose host has ended; after a day without use it is orphaned.
    `ledger` is the label of an additional ledger; "" for the program's own.
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
    undriven: bool = False

    @property
    def task_id(self) -> TaskId:
        return TaskId(self.entry.task_id)


class TaskEvent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of events.jsonl; unknown kinds are kept and shown."""

    ts: int | float
    kind: str
    data: dict[str, Any] | None = None


class EventSlice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Events from one byte offset on; continue at `next_offset`.

    `skipped` counts lines that are no events (torn, over 1 MiB, not an object).
    """

    events: tuple[TaskEvent, ...]
    next_offset: int
    skipped: int = 0


class History(msgspec.Struct, Generic[T], frozen=True):
    """Part of events.jsonl from byte `start` to `next_offset`, its events converted to T.

    `skipped` counts lines that are no events; `earlier` the lines before `start`, None if they were
    not counted.
    """

    events: tuple[T, ...]
    start: int
    next_offset: int
    skipped: int = 0
    earlier: int | None = None


class UnitTime(msgspec.Struct, frozen=True, gc=False):
    """Duration of a finished unit: a page by address, or a command by tool.

    `began` is None for pages; `about` is the command's target.
    """

    label: str
    took_ms: float
    began: float | None = None
    failed: bool = False
    about: str = ""


class UnitTimes(msgspec.Struct, frozen=True):
    """Durations in order of completion; continue at `next_offset`."""

    units: tuple[UnitTime, ...]
    next_offset: int


class Hold(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hold on new starts of a ledger: since when (ms), by whom and why.

    `released` are tasks that may start in spite of it. `since` is 0 where it is unknown.
    """

    since: int = 0
    by: str = ""
    reason: str = ""
    released: tuple[str, ...] = ()


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """Health as shown in the status bar. Texts are plain sentences for users.

    `browser`/`engine` are one of: idle, starting, ready, missing, failed.
    `watcher` is one of: live, polling, gone (the ledger's folder is missing), silent (it does not
    answer); `deaf` is the reason for permanent polling.
    `warnings` prevent work; `concerns` only reduce the ledger's safety.
    `away`: runs wait for their folder.
    `no_room`: the ledger is read-only until the disk has space.
    `hold`: new starts of the ledger are held; `ends_after_running`: this program starts nothing
    more, because it quits when its running tasks have ended.
    `stuck_schedules`: names of schedules whose due run cannot start.
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
    hold: Hold | None = None
    ends_after_running: bool = False
    stuck_schedules: tuple[str, ...] = ()
