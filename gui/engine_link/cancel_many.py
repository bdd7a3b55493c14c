"""Cancellation of several tasks with one combined result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from engine.model.errors import EngineError
from engine.model.records import TaskRecord
from engine.service.stop_many import stop_all


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Records and errors after cancelling several tasks.

    `waiting` are the tasks that were queued when the user chose them.
    """

    records: tuple[TaskRecord, ...]
    refused: tuple[EngineError, ...]
    waiting: frozenset[str] = frozenset()


async def cancel_all(
    cancel: Callable[[str, str | None], Awaitable[TaskRecord]],
    task_ids: Iterable[str],
    reason: str | None,
    waiting: frozenset[str],
) -> Cancelled:
    """Cancel each task; a failure does not stop the others."""
    stopped = await stop_all(cancel, task_ids, reason)
    return Cancelled(stopped.records, stopped.refused, waiting)
