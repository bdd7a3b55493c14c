"""Several tasks asked to stop, and one answer for all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from engine.model.errors import EngineError
from engine.model.records import TaskRecord
from engine.service.stop_many import stop_all


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What came of cancelling several tasks: the records as they stand now, and the refusals.

    `waiting` are those that had not begun when a person chose them.
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
    """Ask each of these tasks to stop; one that cannot be asked does not keep the others."""
    stopped = await stop_all(cancel, task_ids, reason)
    return Cancelled(stopped.records, stopped.refused, waiting)
