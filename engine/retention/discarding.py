"""Letting go of one task that a person points at: to the trash, or for good. Nothing else goes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from engine.ledger.listing import Found
from engine.ledger.machine import unhurried_ms
from engine.ledger.reader import LedgerLook
from engine.model.errors import TaskNotFound
from engine.model.records import TaskRecord
from engine.retention import removal
from engine.retention.errors import TaskStays
from engine.retention.judging import Kept, just_ended, unheld

WHY = {
    Kept.LIVING: "it has not ended",
    Kept.LOCKED: "another program is changing it right now",
    Kept.JUST_ENDED: "the program that ran it may still be writing; try again in a minute",
}


def discard(root: Path, task_id: str, *, delete: bool, settled: bool) -> None:
    """Let one task's folder go; `settled` says that whoever ran it has left it for sure.

    One that cannot be read may go, too: only a person can say so.

    Raises:
        TaskStays: it has not ended, or somebody still writes there.
        NoTrash, DeleteFailed, NotATaskId, TaskNotFound.
    """
    ledger = LedgerLook(root)
    ledger.read(task_id)  # refuses what is no task id, before a path is made of it
    found = ledger.read_many([task_id])
    if not found:
        raise TaskNotFound(task_id=task_id, root=str(root))
    why = _stays(ledger, found[0], settled)
    if why is Kept.GONE:
        raise TaskNotFound(task_id=task_id, root=str(root))
    if why is not None:
        raise TaskStays(task_id=task_id, reason=WHY[why])
    if delete:
        removal.delete(root, task_id)
    else:
        removal.to_trash(root, task_id)


def _stays(ledger: LedgerLook, found: Found, settled: bool) -> Kept | None:
    record = found.entry
    if isinstance(record, TaskRecord):
        if not record.is_terminal:
            return Kept.LIVING
        stamp = None if settled else found.stamp
        if stamp is not None and just_ended(ledger, record, stamp, unhurried_ms()):
            return Kept.JUST_ENDED
    with suppress(OSError):
        return unheld(ledger, record.task_id)
    return None
