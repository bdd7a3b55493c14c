"""Errors of recordings, and the request to stop one."""

from __future__ import annotations

from typing import Any, Final

from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.ledger.machine import wall_ms
from engine.model.errors import EngineError
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


class NoDisplay(EngineError):
    """A window was requested, but no display is available."""

    code = "no_display"
    title = "There is no screen"
    # The message has the advice, because it is all that is stored of an error that ends a task.
    sentence = (
        "A recording with a window needs a screen, and there is none here. "
        "Record without a window (--headless), or start it where there is a screen."
    )


class NotStoppable(EngineError):
    """A stop was requested for a task that only supports cancel."""

    code = "not_stoppable"
    title = "This task cannot be stopped in good order"
    sentence = "Task {task_id} is of the kind {kind}: only a recording can be stopped."
    advice_text = "Cancel it instead; what it has finished is kept."


class NotARecording(EngineError):
    """An export as a command task or trace was requested for another kind of task."""

    code = "not_a_recording"
    title = "This is no recording"
    sentence = "Task {task_id} is of the kind {kind}, not a recording."
    advice_text = "Look for recordings with `octask list --kind recording`."


class NothingToReplay(EngineError):
    """A recording without any action that a command can replay."""

    code = "nothing_to_replay"
    title = "There is nothing to replay"
    sentence = "Recording {task_id} holds no action that can be replayed."
    advice_text = "Record again, and do in the page what is to be replayed."
