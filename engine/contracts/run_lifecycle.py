"""Lifecycle of runs (seed 003): thirteen fields, five states, six operations, all idempotent.

Every task that this engine executes has one run, which follows it; a host may also have runs of its
own. Records are in `<home>/comet-runs/`, transitions in `<home>/audit/`.

A task names its run in `meta.json`. While the run is open, a small file in `comet-runs/open/` names
the task, so that after a crash the next process finds the runs that lag behind without reading
thousands of others.
"""

from __future__ import annotations

import heapq
import logging
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Unpack, cast
from uuid import uuid4

import msgspec

from engine.contracts.run_store import (
    TEXT_CHARACTERS,
    KeptRuns,
    Raw,
    Run,
    RunFacts,
    RunUpdate,
    clean,
    decoded,
    envelope,
    iso,
)
from engine.ledger import journal
from engine.ledger.files import Folder, Unusable, writing
from engine.ledger.filesystem_checks import HeldFolder, Presence
from engine.ledger.lease import make_root
from engine.ledger.machine import wall_ms
from engine.ledger.reader import LedgerReader
from engine.ledger.record_store import RecordUnreadable, stage
from engine.model import redact
from engine.model.errors import EngineError, InvalidArguments, NotATaskId, Problem, TaskNotFound
from engine.model.lifecycle import RUN
from engine.model.records import ROUTES, RUN_ID, RUNS_FOLDER, Status, TaskRecord, Unreadable
from engine.model.status import moment

log = logging.getLogger(__name__)


class LifecycleTransitionError(EngineError):
    """The state table forbids this transition of a run; nothing was written."""

    code = "lifecycle_transition"
    title = "The run cannot take that step"
    sentence = "Invalid lifecycle transition for run {runId}: {from} → {to}"
    advice_text = "Look at the run's state first; a run that has ended stays as it is."

    name = "LifecycleTransitionError"  # the seed's name, which programs match

    def __init__(self, run_id: str, source: str, target: str) -> None:
        self.run_id, self.source, self.target = run_id, source, target
        super().__init__(**{"name": self.name, "runId": run_id, "from": source, "to": target})


class RunNotRunning(EngineError):
    """Only a running run can be updated; nothing was written."""

    code = "run_not_running"
    title = "The run is not running"
    sentence = "Run {run_id} is {status}: only a running one can be updated."
    advice_text = "Start it first; a run that has ended stays as it is."


class RunOfTask(EngineError):
    """A run that follows a task cannot be ended directly; nothing was written."""

    code = "run_of_task"
    title = "The run follows a task"
    sentence = "Run {run_id} follows task {task_id} and ends with it."
    advice_text = "Cancel or finish the task; its run ends in the same way."


# `lifecycle.jsonl` holds every transition of a run, in the run's audit session.


AUDIT_FOLDER: Final = "audit"
FILE: Final = "lifecycle.jsonl"


class Audit:
    """Audit sessions below `<home>/audit/`; `session_id` is this process' own.

    A session folder is created with its first line, so that a read-only process leaves none.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / AUDIT_FOLDER
        self.session_id = f"session-{uuid4()}"

    def write(self, session_id: str, line: dict[str, Any]) -> None:
        """Append one line by one write; failure is only logged, since the run record is
        authoritative.
        """
        if not RUN_ID.fullmatch(session_id):
            session_id = self.session_id
        try:
            make_root(self._folder)
            with writing(str(self._folder)), Folder.at(str(self._folder)) as audit:
                with suppress(FileExistsError):
                    audit.make_folder(session_id)
                with audit.enter(session_id) as session:
                    session.append(FILE, journal.line(line), heal=True)
        except EngineError as error:
            log.warning("audit session %s: a transition was not written: %s", session_id, error)


class Runs:
    """Runs of one home. Synchronous: calls may wait for a lock or the disk, so use a thread.

    `route` and `agent_id` are the defaults of new runs. Every call raises LockTimeout, and NotAnId
    for an invalid id, of which no path is built.
    """

    def __init__(
        self,
        home: Path,
        *,
        route: str | None = None,
        agent_id: str | None = None,
        now_ms: Callable[[], int] = wall_ms,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._kept = KeptRuns(home)
        self.folder = self._kept.record_store.folder
        self.audit = Audit(home)
        self.new_id = new_id
        self._defaults = {"route": route, "agent_id": agent_id}
        self._now_ms = now_ms

    @property
    def notice(self) -> str:
        """The reason why records are in memory only; "" while they are on disk."""
        return self._kept.notice

    def settle(self) -> None:
        """Write the records that are in memory only, as far as possible."""
        self._kept.settle()

    def is_on_disk(self, run_id: str) -> bool:
        """Return False while the newest state is in memory only."""
        return not self._kept.is_in_memory(run_id)

    def start_run(
        self,
        task_thread_id: str,
        *,
        run_id: str | None = None,
        deferred: bool = False,
        at_ms: float | None = None,
        **facts: Unpack[RunFacts],
    ) -> Run:
        """Register and start a run, or start a pending one; `deferred` leaves it pending.

        An existing run keeps its facts, and a running one is returned unchanged. `at_ms` is the
        creation time, by default now.

        Raises:
            InvalidArguments: with every mistake.
            LifecycleTransitionError: the run has ended.
        """
        said = {name: value for name, value in facts.items() if value is not None}
        fields = clean({**self._defaults, **said, "task_thread_id": task_thread_id})
        run_id = run_id or self.new_id()
        target = "pending" if deferred else "running"

        def start(raw: Raw | None) -> Raw:
            if raw is None:
                return self._new(run_id, target, at_ms, fields)
            source = raw["status"]
            if source == target or (deferred and source == "running"):
                return raw
            return {**raw, "status": _allowed(run_id, source, target)}

        return self._change(run_id, start, mend=at_ms is not None)

    def update_run(self, run_id: str, **facts: Unpack[RunUpdate]) -> Run:
        """Add audit session, tab group, workflow or metadata to a running run.

        `metadata` is merged key by key.

        Raises:
            InvalidArguments, RunNotRunning, RecordNotFound.
        """
        fields = clean(facts)
        if not fields:
            raise InvalidArguments((Problem("", "required", "there is nothing to update"),))

        def update(raw: Raw | None) -> Raw:
            found = self._known(raw, run_id)
            if found["status"] != "running":
                raise RunNotRunning(run_id=run_id, status=found["status"])
            merged = {**(found.get("metadata") or {}), **fields.get("metadata", {})}
            added = _camel({**fields, "metadata": merged} if merged else fields)
            return {**found, **added}

        return self._change(run_id, update)

    def complete_run(self, run_id: str, *, at_ms: float | None = None) -> Run:
        """Complete a running run; a completed one is unchanged.

        Raises:
            LifecycleTransitionError: the run never ran, or ended otherwise.
            RecordNotFound: there is no such run.
        """
        return self._end(run_id, "completed", None, at_ms)

    def abort_run(
        self, run_id: str, reason: str | None = None, *, at_ms: float | None = None
    ) -> Run:
        """Abort a run with an optional reason; an ended one is unchanged.

        Raises:
            RecordNotFound: there is no such run.
        """
        return self._end(run_id, "aborted", reason, at_ms)

    def fail_run(self, run_id: str, reason: str, *, at_ms: float | None = None) -> Run:
        """Fail a run with a reason; an ended one is unchanged.

        Raises:
            InvalidArguments: the reason is blank.
            RecordNotFound: there is no such run.
        """
        if not reason.strip():
            raise InvalidArguments((Problem("reason", "required", "must say what went wrong"),))
        return self._end(run_id, "failed", reason, at_ms)

    def get_run(self, run_id: str) -> Run | None:
        """Return the whole record, or None. Writes nothing.

        Raises:
            RecordUnreadable: its file is unusable; it is not changed.
        """
        raw = self._kept.find(run_id)
        return None if raw is None else decoded(raw)

    def known_run(self, run_id: str) -> Run:
        """Return the record as `get_run`; raise RecordNotFound where there is none."""
        run = self.get_run(run_id)
        if run is None:
            raise self._kept.record_store.missing(run_id)
        return run

    def list_runs(self, *, status: Collection[str] = (), limit: int | None = 50) -> list[Run]:
        """List runs, newest first, all of them if `limit` is None; unreadable ones are omitted.

        Raises:
            LedgerUnusable: their folder cannot be read.
        """
        found = (run for run in self._kept.every() if not status or run.status in status)
        if limit is None:
            return sorted(found, key=_age, reverse=True)
        return heapq.nlargest(limit, found, key=_age)

    def _end(self, run_id: str, target: str, reason: str | None, at_ms: float | None) -> Run:
        def end(raw: Raw | None) -> Raw:
            found = self._known(raw, run_id)
            source = found["status"]
            if source == target or (target != "completed" and RUN.is_terminal(source)):
                return found
            ended: Raw = {
                **found,
                "status": _allowed(run_id, source, target),
                "completedAt": iso(self._now_ms() if at_ms is None else at_ms),
            }
            if reason:
                ended["failureReason"] = redact.text(reason)[:TEXT_CHARACTERS]
            return ended

        return self._change(run_id, end)

    def _new(self, run_id: str, status: str, at_ms: float | None, fields: Raw) -> Raw:
        facts = {
            "audit_session_id": self.audit.session_id,
            **fields,
            "run_id": run_id,
            "status": status,
            "started_at": iso(self._now_ms() if at_ms is None else at_ms),
        }
        return envelope(Run(**facts))

    def _known(self, raw: Raw | None, run_id: str) -> Raw:
        if raw is None:
            raise self._kept.record_store.missing(run_id)
        return raw

    def _change(
        self, run_id: str, change: Callable[[Raw | None], Raw], *, mend: bool = False
    ) -> Run:
        self._kept.record_store.check(run_id)
        before, after = self._kept.change(run_id, change, mend=mend)
        run, source = decoded(after), None if before is None else before["status"]
        if source != run.status:
            self._write_transition(run, source)
        return run

    def _write_transition(self, run: Run, source: str | None) -> None:
        line = {"ts": iso(self._now_ms()), "event": "lifecycle", "from": source, **envelope(run)}
        for name in ("metadata", "startedAt", "completedAt"):
            line.pop(name, None)
        line["to"] = line.pop("status")
        self.audit.write(run.audit_session_id or self.audit.session_id, line)


def _allowed(run_id: str, source: str, target: str) -> str:
    if not RUN.allows(source, target):
        raise LifecycleTransitionError(run_id, source, target)
    return target


def _age(run: Run) -> tuple[str, str]:
    return run.started_at, run.run_id


def _camel(fields: dict[str, Any]) -> dict[str, Any]:
    """Rename fields to their stored names."""
    stored = {field.name: field.encode_name for field in msgspec.structs.fields(Run)}
    return {stored[name]: value for name, value in fields.items()}


OPEN: Final = "open"
NONE: Final[Mapping[str, Any]] = {}
_MARK_BYTES: Final = 8_192


class _Mark(msgspec.Struct, frozen=True, rename="camel"):
    """Task and ledger that an open run follows."""

    task_id: str
    root: str


class LinkedRuns:
    """Keep each task's run in the task's state. Synchronous and idempotent."""

    def __init__(self, runs: Runs, home: Path, root: Path) -> None:
        self._runs = runs
        self._folder = home / RUNS_FOLDER / OPEN
        # JSON has no lone surrogates, as a path that is no UTF-8 has them.
        self._root = os.fsencode(root.absolute()).decode("utf-8", "backslashreplace")
        self.runs_here: Callable[[str], bool] = lambda task_id: False

    def accept(self, record: TaskRecord, facts: Mapping[str, Any]) -> None:
        """Register the run of a new task: pending, or running if the task runs.

        `facts` are validated (see `problems`), with a `task_thread_id` where it is not the task's
        own. A failed write is repeated when the task continues.
        """
        run_id = _run_id(record)
        if run_id is None:
            return
        self._mark(run_id, record.task_id)
        try:
            self._register(run_id, record, facts)
        except EngineError as error:
            log.warning("task %s: its run was not written yet: %s", record.task_id, error)

    def follow(self, record: TaskRecord) -> None:
        """Update a task's run to the task's state; a task without a run is ignored.

        Raises:
            LockTimeout, RecordUnreadable: the run lags behind until the next `heal`.
        """
        run_id = _run_id(record)
        if run_id is None or not RUN_ID.fullmatch(run_id):
            return
        if record.is_live:
            self._begin(run_id, record)
        elif record.is_terminal:
            self._end(run_id, record)
            self._unmark(run_id)

    def heal(self, ledger: LedgerReader) -> int:
        """Update every open run of this ledger to its task; return how many lagged behind.

        Records that could not be written before (full disk, say) are written first.
        """
        self._runs.settle()
        return sum(self._healed(run_id, ledger) for run_id in self._marked())

    def by_hand(self, run_id: str) -> None:
        """Raise RunOfTask for an open run that follows a task, which ends with it."""
        mark = self._mark_of(run_id) if RUN_ID.fullmatch(run_id) else None
        if mark is not None:
            raise RunOfTask(run_id=run_id, task_id=mark.task_id)

    def _begin(self, run_id: str, record: TaskRecord) -> None:
        run = self._found(run_id)
        if run is None:
            self._mark(run_id, record.task_id)
        if run is None or run.status == "pending":
            self._register(run_id, record)

    def _register(self, run_id: str, record: TaskRecord, facts: Mapping[str, Any] = NONE) -> Run:
        """Set the run to pending, or to running if the task runs."""
        said = {name: value for name, value in facts.items() if value is not None}
        if record.engine is not None and record.engine.route in ROUTES:
            said.setdefault("route", record.engine.route)  # not that of the process that heals it
        thread_id = said.pop("task_thread_id", record.task_id)
        return self._runs.start_run(
            thread_id,
            run_id=run_id,
            deferred=record.status != Status.RUNNING,
            at_ms=moment(record.created_at) or 0,
            **cast(RunFacts, said),  # validated by `accept`
        )

    def _found(self, run_id: str) -> Run | None:
        """Read a run; a record emptied by a power loss counts as missing and is rebuilt."""
        try:
            return self._runs.get_run(run_id)
        except RecordUnreadable:
            return None

    def _end(self, run_id: str, record: TaskRecord) -> None:
        """End the run; register it first if the process died before its run was written."""
        runs, at_ms = self._runs, moment(record.ended_at)
        run = self._found(run_id) or self._register(run_id, record)
        if run.is_terminal:
            return
        if record.status == Status.COMPLETED:
            runs.start_run(record.task_id, run_id=run_id)
            runs.complete_run(run_id, at_ms=at_ms)
        elif record.status == Status.CANCELLED:
            runs.abort_run(run_id, _reason(record), at_ms=at_ms)
        else:
            runs.fail_run(run_id, _reason(record) or "failed", at_ms=at_ms)

    def _healed(self, run_id: str, ledger: LedgerReader) -> bool:
        mark = self._mark_of(run_id)
        if mark is None or mark.root != self._root:
            return False  # belongs to another ledger, whose process updates it
        try:
            record = ledger.read(mark.task_id)
            if isinstance(record, Unreadable) or not self._lags(run_id, record):
                return False
            self.follow(record)
        except NotATaskId:
            return self._forget(run_id)
        except TaskNotFound:
            return self._is_removed(mark.task_id, ledger) and self._forget(run_id)
        except EngineError as error:
            log.warning("run %s could not be brought up to its task: %s", run_id, error)
            return False
        return True

    def _is_removed(self, task_id: str, ledger: LedgerReader) -> bool:
        """Return whether a task was removed; one in a missing folder or ledger may return."""
        if self.runs_here(task_id):
            return False
        held = HeldFolder(ledger.root, task_id)
        try:
            return held.check() is Presence.REMOVED
        finally:
            held.close()

    def _lags(self, run_id: str, record: TaskRecord) -> bool:
        """Return whether the run must be updated; a process that starts the task now may do so
        itself.
        """
        if not record.is_live:
            return True
        run = self._found(run_id)
        return run is not None and run.status == "pending" and record.status == Status.RUNNING

    def _forget(self, run_id: str) -> bool:
        """Abort a run whose task folder is gone, since no process would end it."""
        try:
            run = self._runs.get_run(run_id)
            if run is not None:
                self._runs.abort_run(run_id, "its task was removed")
        except EngineError as error:
            log.warning("run %s could not be ended: %s", run_id, error)
            return False
        self._unmark(run_id)
        return True

    def _mark(self, run_id: str, task_id: str) -> None:
        """Mark a run as open, so that a crash does not leave it behind; failure is only logged."""
        data = msgspec.json.encode(_Mark(task_id, self._root))
        try:
            make_root(self._folder.parent)
            make_root(self._folder)
            with writing(str(self._folder)), Folder.at(str(self._folder)) as folder:
                stage(folder, run_id, data, durable=False)
        except EngineError as error:
            log.info("run %s is not marked as open: %s", run_id, error)

    def _unmark(self, run_id: str) -> None:
        """Remove the mark. A run that is only in memory keeps it, since it may be lost."""
        if not self._runs.is_on_disk(run_id):
            return
        with suppress(OSError), Folder.at(str(self._folder)) as folder:
            folder.remove(run_id)

    def _marked(self) -> list[str]:
        try:
            with Folder.at(str(self._folder)) as folder:
                return [name for name in folder.names() if RUN_ID.fullmatch(name)]
        except OSError:
            return []

    def _mark_of(self, run_id: str) -> _Mark | None:
        try:
            with Folder.at(str(self._folder)) as folder:
                return msgspec.json.decode(folder.read(run_id, _MARK_BYTES), type=_Mark)
        except (OSError, Unusable, msgspec.MsgspecError):
            return None


def _run_id(record: TaskRecord) -> str | None:
    return record.engine.run_id if record.engine is not None else None


def _reason(record: TaskRecord) -> str | None:
    """Return the reason why a task ended."""
    note: Any = record.args_summary.get("final_note")
    if record.error is not None:
        return record.error.message
    asked = record.engine.cancel_reason if record.engine is not None else None
    return asked or (note if isinstance(note, str) and note else None)
