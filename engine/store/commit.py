"""One read-modify-write of a meta.json under both locks; terminal is final."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from engine.errors import LockTimeout, TaskUnreadable
from engine.lifecycle import LEDGER
from engine.records import LIVE, META_NAME, TaskRecord
from engine.store import meta
from engine.store.files import Folder, Unusable
from engine.store.lease import Lease
from engine.store.lock import TIMEOUT_S, LockLost, TaskLock

log = logging.getLogger(__name__)

Change = Callable[[dict[str, Any]], None]
_TRIES: Final = 10


class Commit(NamedTuple):
    """The record that stands on disk now, and whether this very call changed it."""

    record: TaskRecord
    changed: bool


def commit(folder: Folder, task_id: str, change: Change, lease: Lease, *, durable: bool) -> Commit:
    """Apply `change` to the whole dict on disk; see `Ledger.mutate` for what it raises."""
    for _ in range(_TRIES):
        try:
            with TaskLock(folder, task_id) as lock:
                return _rewrite(folder, task_id, change, lease, lock, durable)
        except LockLost:
            log.warning("task %s: somebody took our lock; nothing was written, again", task_id)
    raise LockTimeout(task_id=task_id, waited_s=TIMEOUT_S)


def _rewrite(
    folder: Folder, task_id: str, change: Change, lease: Lease, lock: TaskLock, durable: bool
) -> Commit:
    old = folder.read(META_NAME, meta.META_CAP)
    try:
        raw = meta.opened(old)
        source = raw.get("status", "")
        if not isinstance(source, str):
            raise Unusable("its status is not a text")
    except Unusable as error:
        raise TaskUnreadable(task_id=task_id, reason=str(error), path=folder.path) from error
    before = meta.encoded(raw)
    change(raw)
    data = meta.encoded(raw)
    if data == before:
        return Commit(meta.glance(old, task_id), False)
    if source not in LIVE or source != raw.get("status"):
        LEDGER.check(f"task {task_id}", source, str(raw.get("status")))
    if len(data) > meta.META_CAP:
        raise Unusable("meta.json would be larger than 1 MiB")
    temp = lease.temp_name(META_NAME)
    folder.replace(META_NAME, [data], temp=temp, durable=durable, check=lock.check)
    return Commit(meta.glance(data, task_id), True)
