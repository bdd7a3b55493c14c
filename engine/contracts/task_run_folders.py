"""Task runs on disk: `task-runs/<id>/` with meta.json, events.jsonl and checkpoints/.

OpenChrome writes the same folders and locks them by `meta.lock`; this module does the same, and
acquires its own kernel lock first. Unknown fields survive, because a change starts from the whole
dict. Reads write nothing.

A step changes the dict `raw` in place, or raises `InvalidRunStep` and leaves it unchanged. The
sentences are OpenChrome's, whose agents match them. Source: seed 001; the flow of its task runs.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from engine.contracts.bulk_progress import (
    KEPT,
    Contract,
    InvalidRunStep,
    Note,
    TaskRunNotFound,
)
from engine.ledger import journal, meta, task_files
from engine.ledger.files import MIB, Folder, Unusable, unusable, writing
from engine.ledger.lease import make_root
from engine.ledger.lock import TIMEOUT_S, LockLost, TaskLock
from engine.ledger.record_store import HEX16, NotAnId, RecordUnreadable, stage
from engine.model import redact
from engine.model.errors import LockTimeout
from engine.model.lifecycle import TASK_RUN
from engine.model.records import EVENTS_NAME, META_NAME, TASK_RUNS_FOLDER, TaskEvent
from engine.model.status import moment

log = logging.getLogger(__name__)

CHECKPOINTS: Final = "checkpoints"
NOUN: Final = "task run"
CAP: Final = 8 * MIB  # 500 items of 2,048 characters, 500 failures, all fields at their limits
LOCKS: Final = ("lock", "meta.lock", "meta.lock.lock")


class LockedRun:
    """Locked task run: change the whole dict `raw`, then save it."""

    def __init__(self, folder: Folder, raw: dict[str, Any], lock: TaskLock, now_ms: int) -> None:
        self.raw = raw
        self.now_ms = now_ms
        self._folder, self._lock = folder, lock

    def save(self, *, durable: bool = False) -> None:
        """Replace meta.json whole. Raises Unusable, OSError, LockLost."""
        self.raw["updated_at"] = max(self.now_ms, moment(self.raw.get("updated_at")) or 0)
        data = meta.encoded(self.raw)
        if len(data) > CAP:
            raise Unusable(f"the {NOUN} would be larger than {CAP // MIB} MiB")
        self._lock.check()
        stage(self._folder, META_NAME, data, durable=durable)

    def event(self, kind: str, data: Mapping[str, Any], *, durable: bool = False) -> None:
        """Append one redacted event; a failed write is only logged, since the change is on disk."""
        line = journal.event_line(kind, self.now_ms, redact.value(data))
        try:
            self._folder.append(EVENTS_NAME, line, heal=True, durable=durable)
        except (OSError, Unusable) as error:
            log.warning("task run %s: its event could not be written: %s", self._folder.path, error)

    def checkpoint(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Write a checkpoint under a new id, flushed; return its record."""
        checkpoint_id = secrets.token_hex(8)
        run_id = self.raw.get("run_id")
        made = {"checkpoint_id": checkpoint_id, "run_id": run_id, **fields}
        with suppress(FileExistsError):
            self._folder.make_folder(CHECKPOINTS)
        with self._folder.enter(CHECKPOINTS) as checkpoints:
            stage(checkpoints, f"{checkpoint_id}.json", meta.encoded(made), durable=True)
        return made

    def refusals(self) -> int:
        """Return how often the guard has refused this run."""
        events = journal.read_events(self._folder, EVENTS_NAME, 0, 64 * MIB, False).events
        return sum(1 for event in events if is_refusal(event))


class RunFolders:
    """Task runs of one home. Thread-safe.

    Every call with an id may raise NotAnId, TaskRunNotFound and RecordUnreadable; writing calls
    also LockTimeout, LedgerReadOnly and LedgerWriteFailed, and then nothing changed.
    """

    def __init__(self, home: Path, now_ms: Callable[[], int]) -> None:
        self.root = home / TASK_RUNS_FOLDER
        self._now_ms = now_ms

    def create(self, run_id: str, raw: dict[str, Any], started: Mapping[str, Any]) -> None:
        """Create a run under a new id with its `started` event; it is on disk on return."""
        make_root(self.root)
        now = self._now_ms()
        whole = {"run_id": run_id, **raw, "created_at": now, "updated_at": now}
        with writing(str(self.root)), Folder.at(str(self.root)) as top:
            files = {META_NAME: meta.encoded(whole)}
            if not task_files.place_task(top, run_id, files, f".new-{run_id}.tmp"):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), run_id)
            line = journal.event_line("started", now, dict(started))
            try:
                with top.enter(run_id) as folder:
                    folder.append(EVENTS_NAME, line, heal=True)
            except (OSError, Unusable) as error:  # the run exists, and is valid without this event
                log.warning("task run %s: its event could not be written: %s", run_id, error)

    def ids(self) -> list[str]:
        """Return every id, unordered; [] where there is no folder. Raises LedgerUnusable."""
        try:
            with Folder.at(str(self.root)) as top:
                return [name for name in top.names() if HEX16.fullmatch(name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unusable(error, str(self.root)) from error

    def has(self, run_id: str) -> bool:
        try:
            self._open(run_id).close()
        except TaskRunNotFound:
            return False
        return True

    def read(self, run_id: str) -> dict[str, Any]:
        """Read the whole meta.json."""
        with self._open(run_id) as folder:
            return self._whole(folder, run_id)

    def events(self, run_id: str) -> tuple[TaskEvent, ...]:
        """Return the events, oldest first."""
        with self._open(run_id) as folder:
            try:
                return journal.read_events(folder, EVENTS_NAME, 0, 64 * MIB, True).events
            except (OSError, Unusable) as error:
                raise self._unreadable(run_id, str(error)) from error

    @contextmanager
    def hold(self, run_id: str) -> Iterator[LockedRun]:
        """Lock a run; changes that are not saved are discarded."""
        with self._open(run_id) as folder, writing(folder.path):
            self._whole(folder, run_id)  # an unusable folder gets no lock file either
            try:
                with TaskLock(folder, run_id, names=LOCKS) as lock:
                    yield LockedRun(folder, self._whole(folder, run_id), lock, self._now_ms())
            except LockLost as error:
                raise LockTimeout(task_id=run_id, waited_s=TIMEOUT_S) from error

    def _open(self, run_id: str) -> Folder:
        if not isinstance(run_id, str) or not HEX16.fullmatch(run_id):
            raise NotAnId(given=run_id, noun=NOUN)
        try:
            with Folder.at(str(self.root)) as top:
                return top.enter(run_id)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise TaskRunNotFound(id=run_id, path=str(self.root)) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise self._unreadable(run_id, reason) from error

    def _whole(self, folder: Folder, run_id: str) -> dict[str, Any]:
        try:
            raw = meta.decode_object(folder.read(META_NAME, CAP))
        except FileNotFoundError as error:
            raise self._unreadable(run_id, "was never finished") from error
        except Unusable as error:
            raise self._unreadable(run_id, str(error)) from error
        except OSError as error:
            raise self._unreadable(run_id, error.strerror or str(error)) from error
        raw["run_id"] = run_id  # the folder name is the id; the file may hold another one
        return raw

    def _unreadable(self, run_id: str, reason: str) -> RecordUnreadable:
        path = str(self.root / run_id / META_NAME)
        return RecordUnreadable(noun=NOUN, id=run_id, reason=reason, path=path)


def is_refusal(event: TaskEvent) -> bool:
    """Return whether this event records a refusal by a guard."""
    said = event.data or {}
    return event.kind == "guard" and said.get("allowed") is False and "forced" not in said


KEPT_EVIDENCE: Final = 50
PLAIN: Final = ("progress_summary", "current_cursor", "workflow_id")
LISTS: Final = {"completed": "completed_items", "failed": "failed_items"}


def new_run(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Build a RUNNING run (PENDING is declared and never written)."""
    links = list(fields.get("ledger_task_ids", ()))
    plain = {name: _plain(value) for name, value in fields.items()}
    return {"status": "RUNNING", **plain, "ledger_task_ids": links}


def check_open(raw: Mapping[str, Any], run_id: str) -> None:
    """Raise unless the run can still be changed."""
    status = raw.get("status")
    if isinstance(status, str) and TASK_RUN.is_terminal(status):
        _refuse(f"TaskRun {run_id} is terminal ({status}) and cannot be modified")


def check_target(raw: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Raise unless an update may request this status."""
    target = fields.get("status")
    if target is None or target == "RUNNING":
        if target and raw.get("status") == "NEEDS_HELP" and not fields.get("resume_reason"):
            _refuse("TaskRun needs a resume_reason to go from NEEDS_HELP back to RUNNING")
        return
    if target == "NEEDS_HELP":
        raise InvalidRunStep(
            "Use {step} to enter NEEDS_HELP",
            step_verb="task-run needs-help",
            step="oc_task_run_needs_help",
        )
    if target == "PENDING":
        _refuse("TaskRun cannot transition back to PENDING")
    if TASK_RUN.is_terminal(target):
        raise InvalidRunStep(
            "Use {step} to enter a terminal state",
            step_verb="complete",
            step="oc_task_run_complete",
        )
    _refuse(f"Unknown TaskRun status: {target}")


def update(raw: dict[str, Any], fields: Mapping[str, Any]) -> None:
    """Apply changed fields; only an explicit status RUNNING ends NEEDS_HELP."""
    if fields.get("status") == "RUNNING":
        raw["status"] = "RUNNING"
        raw.pop("needs_help", None)
    for name in PLAIN:
        if name in fields:
            raw[name] = fields[name]
    if "last_evidence" in fields:
        raw["last_evidence"] = list(fields["last_evidence"])[-KEPT_EVIDENCE:]
    if "ledger_task_ids" in fields:
        known = _texts(raw.get("ledger_task_ids"))
        raw["ledger_task_ids"] = list(dict.fromkeys([*known, *fields["ledger_task_ids"]]))


def notes_of(fields: Mapping[str, Any]) -> tuple[Note, ...]:
    """Return the item states in a request about a run."""
    names = ("completed_items", "failed_items", "skipped_items")
    return tuple(note for name in names for note in fields.get(name, ()))


def listed_items(raw: Mapping[str, Any]) -> tuple[Note, ...]:
    """Return a run's listed items as notes."""
    failures = _failures(raw.get("failed_items"))
    return (
        *(Note("failed", one["item"], str(one.get("reason", ""))) for one in failures),
        *(Note("completed", item) for item in _texts(raw.get("completed_items"))),
    )


def record_items(raw: dict[str, Any], notes: Iterable[Note]) -> None:
    """Record items of a run without a contract: newest 500 of each list, latest state wins."""
    completed = dict.fromkeys(_texts(raw.get("completed_items")))
    failed = {one["item"]: one for one in _failures(raw.get("failed_items"))}
    for note in notes:
        completed.pop(note.item, None)
        failed.pop(note.item, None)
        if note.word == "completed":
            completed[note.item] = None
        elif note.word == "failed":
            failed[note.item] = {"item": note.item, "reason": note.reason or ""}
    _keep(raw, "completed_items", list(completed))
    _keep(raw, "failed_items", list(failed.values()))


def mirror(raw: dict[str, Any], contract: Contract) -> None:
    """Copy lists, counts and cursor of the contract into its run."""
    raw["completed_items"] = list(contract.completed)
    raw["failed_items"] = [{"item": one.item, "reason": one.reason} for one in contract.failed]
    for word, name in LISTS.items():
        cut = getattr(contract, f"{word}_truncated")
        raw[f"{name}_truncated"] = cut
        if not cut:
            del raw[f"{name}_truncated"]
    if contract.cursor is not None:
        raw["current_cursor"] = contract.cursor


def from_checkpoint(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a checkpoint to the fields of an update."""
    found = {"progress_summary": fields["summary"]}
    for name, source in (("current_cursor", "current_cursor"), ("last_evidence", "evidence")):
        if source in fields:
            found[name] = fields[source]
    return found


def request_help(raw: dict[str, Any], fields: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """Set NEEDS_HELP, from any state that is not terminal, and return the help request."""
    asked = {"reason": fields["reason"], "requested_at": now_ms}
    if "resume_hint" in fields:
        asked["resume_hint"] = fields["resume_hint"]
    raw["status"] = "NEEDS_HELP"
    raw["needs_help"] = asked
    update(raw, {name: fields[name] for name in fields if name not in ("status", "reason")})
    return asked


def complete(
    raw: dict[str, Any], status: str, now_ms: int, forced: Mapping[str, Any] | None
) -> None:
    """Set the terminal status; `forced` is kept permanently."""
    raw["status"] = status
    raw["completed_at"] = now_ms
    raw.pop("needs_help", None)
    if forced is not None:
        raw["forced"] = dict(forced)


def counts(raw: Mapping[str, Any]) -> dict[str, int]:
    """Return how many items a run counts as completed and failed."""
    found = {}
    for word, name in LISTS.items():
        kept = raw.get(name)
        cut = raw.get(f"{name}_truncated")
        known = isinstance(cut, int) and not isinstance(cut, bool) and cut > 0
        found[f"{word}_count"] = (len(kept) if isinstance(kept, list) else 0) + (
            cut if known and isinstance(cut, int) else 0
        )
    return found


def _keep(raw: dict[str, Any], name: str, items: list[Any]) -> None:
    if cut := max(0, len(items) - KEPT):
        before = raw.get(f"{name}_truncated")
        raw[f"{name}_truncated"] = cut + (before if isinstance(before, int) else 0)
    raw[name] = items[-KEPT:]


def _texts(given: object) -> list[str]:
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def _failures(given: object) -> list[dict[str, Any]]:
    kept = given if isinstance(given, list) else []
    return [one for one in kept if isinstance(one, dict) and isinstance(one.get("item"), str)]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _refuse(message: str) -> None:
    raise InvalidRunStep(message=message)
