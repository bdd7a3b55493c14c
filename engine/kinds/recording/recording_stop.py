"""The orderly stop of a recording: it ends COMPLETED, as if its time had been over.

A cancel would end it too, with everything kept; but who presses "stop recording" has got what
was wanted, and must not find it among the cancelled ones. Only a recording has such an end.
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
    """Leave the request in the task's meta.json; its runner hears it as it hears a cancel.

    One that has not begun is CANCELLED (it holds nothing), an ended one is returned as it is.

    Raises:
        NotStoppable: the task is no recording.
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
