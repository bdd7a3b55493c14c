"""Task runs on disk: `task-runs/<id>/` with meta.json, events.jsonl and checkpoints/.

OpenChrome writes the same folders and locks them by `meta.lock`; this module does the same, and
acquires its own kernel lock first. Unknown fields survive, because a change starts from the whole
dict. Reads write nothing.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from engine.contracts.errors import TaskRunNotFound
from engine.ledger import journal, meta, task_files
from engine.ledger.files import MIB, Folder, Unusable, writing
from engine.ledger.lease import make_root
from engine.ledger.lock import TIMEOUT_S, LockLost, TaskLock
from engine.ledger.record_store import HEX16, NotAnId, RecordUnreadable, stage
from engine.model import redact
from engine.model.errors import LedgerUnusable, LockTimeout
from engine.model.records import EVENTS_NAME, META_NAME, TaskEvent
from engine.model.status import moment

log = logging.getLogger(__name__)

FOLDER: Final = "task-runs"
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
        self.root = home / FOLDER
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
            reason = error.strerror or str(error)
            raise LedgerUnusable(path=str(self.root), reason=reason) from error

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
