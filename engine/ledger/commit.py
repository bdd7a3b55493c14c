"""Read-modify-write of one meta.json under both locks; a terminal state is final."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from engine.ledger import meta
from engine.ledger.files import Folder, Unflushed, Unusable
from engine.ledger.lease import Lease
from engine.ledger.lock import TIMEOUT_S, LockLost, TaskLock
from engine.ledger.stable_reads import read_meta
from engine.model.errors import LockTimeout, TaskUnreadable
from engine.model.lifecycle import LEDGER
from engine.model.records import LIVE, META_NAME, TaskRecord

log = logging.getLogger(__name__)

Change = Callable[[dict[str, Any]], None]
_TRIES: Final = 10


class Commit(NamedTuple):
    """Record that is on disk now, and whether this call changed it."""

    record: TaskRecord
    changed: bool


class How(NamedTuple):
    """Options of a commit: `durable` survives a loss of power, `patience_s` limits the lock
    wait."""

    durable: bool
    patience_s: float = TIMEOUT_S


class Commits:
    """Changes that one process makes to the tasks of a ledger.

    `unsure` maps tasks to the status that they were given in a change that is in place but was not
    flushed, so that its caller got an error. The same change, requested again, is written and
    flushed again.
    """

    def __init__(self) -> None:
        self.unsure: dict[str, str] = {}

    def ended(self, task_id: str, status: str) -> bool:
        """Return whether we gave the task this end in an unflushed change."""
        return status not in LIVE and self.unsure.get(task_id) == status

    def make(self, folder: Folder, task_id: str, change: Change, lease: Lease, how: How) -> Commit:
        """Apply `change` to the whole dict on disk; see `Ledger.mutate` for its errors."""
        for _ in range(_TRIES):
            try:
                with TaskLock(folder, task_id, timeout_s=how.patience_s) as lock:
                    raw, was = _read(folder, task_id)
                    data = self._changed(raw, was, task_id, change)
                    if data is None:
                        return Commit(meta.decode_record(meta.encoded(raw), task_id), False)
                    temp = lease.temp_name(META_NAME)
                    folder.replace(
                        META_NAME, [data], temp=temp, durable=how.durable, check=lock.check
                    )
            except LockLost:
                log.warning("task %s: somebody took our lock; nothing was written, again", task_id)
            except Unflushed:
                self.unsure[task_id] = str(raw.get("status"))
                raise
            else:
                self.unsure.pop(task_id, None)
                return Commit(meta.decode_record(data, task_id), True)
        raise LockTimeout(task_id=task_id, waited_s=TIMEOUT_S)

    def _changed(self, raw: dict[str, Any], was: str, task_id: str, change: Change) -> bytes | None:
        """Return the file's new bytes; None when there is no difference. Raises Unusable."""
        again = task_id in self.unsure
        before = meta.encoded(raw)
        change(raw)
        data = meta.encoded(raw)
        if data == before and not again:
            return None
        status = raw.get("status")
        if (was not in LIVE or was != status) and not (again and was == status):
            LEDGER.check(f"task {task_id}", was, str(status))
        if len(data) > meta.META_CAP:
            raise Unusable("meta.json would be larger than 1 MiB")
        return data


def _read(folder: Folder, task_id: str) -> tuple[dict[str, Any], str]:
    """Read the whole dict and its status. Raises TaskUnreadable, OSError."""
    try:
        _, raw = read_meta(folder)
        status = raw.get("status", "")
        if not isinstance(status, str):
            raise Unusable("its status is not a text")
    except Unusable as error:
        raise TaskUnreadable(task_id=task_id, reason=str(error), path=folder.path) from error
    return raw, status
