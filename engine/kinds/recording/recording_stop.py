"""Orderly stop of a recording, with the status COMPLETED as at its time limit.

A cancel would keep the actions, too, but list the recording as cancelled although the operator has
the wanted result. Only a recording has such an end.
"""

from __future__ import annotations

from typing import Any, Final

from engine.kinds.recording.recording_errors import NotStoppable
from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.ledger.machine import wall_ms
from engine.model.kind_traits import traits_of
from engine.model.records import Status, TaskRecord, Unreadable

_NOTE: Final = {"phase": "stop", "note": "asked to end in good order"}


def request_stop(ledger: Ledger, task_id: str) -> TaskRecord:
    """Store the stop request in meta.json, where the runner reads it like a cancel.

    A pending recording becomes CANCELLED (it has no actions), an ended one is returned unchanged.

    Raises:
        NotStoppable: the task is not a recording.
        NotATaskId, TaskNotFound, TaskUnreadable, LockTimeout, LedgerWriteFailed.
    """
    record = ledger.read(task_id)
    if not isinstance(record, Unreadable):
        if not traits_of(record.kind).stoppable:
            raise NotStoppable(task_id=task_id, kind=record.kind)
        if record.status == Status.PENDING:
            return ledger.request_cancel(task_id, "stopped before it had begun")
        if record.is_terminal:
            return record

    def ask(raw: dict[str, Any]) -> None:
        if raw.get("status") == Status.RUNNING:
            changes.engine_of(raw).setdefault("stop_requested_at", wall_ms())

    found = ledger.mutate(task_id, ask, durable=True)
    if not found.is_terminal:
        ledger.note(task_id, [("log", _NOTE)])
    return found
