"""Runs that follow tasks: each change of a task's state is copied to its run.

A task names its run in `meta.json`. While the run is open, a small file in `comet-runs/open/` names
the task, so that after a crash the next process finds the runs that lag behind without reading
thousands of others.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from engine.contracts.lifecycle.errors import RunOfTask
from engine.contracts.lifecycle.run_operations import Runs
from engine.contracts.lifecycle.run_store import FOLDER, RUN_ID, Run, RunFacts
from engine.ledger.files import Folder, Unusable, writing
from engine.ledger.folder_presence import HeldFolder, Presence
from engine.ledger.lease import make_root
from engine.ledger.reader import LedgerReader
from engine.ledger.record_store import RecordUnreadable, stage
from engine.model.errors import EngineError, NotATaskId, TaskNotFound
from engine.model.records import Status, TaskRecord, Unreadable
from engine.model.status import moment

log = logging.getLogger(__name__)

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
        self._folder = home / FOLDER / OPEN
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
