"""Several tasks asked to stop, and one answer for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from engine.errors import EngineError
from engine.records import TaskRecord

AT_ONCE = 4  # cancel requests under way together: each waits for a disk


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
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(task_id: str) -> TaskRecord | EngineError:
        async with gate:
            try:
                return await cancel(task_id, reason)
            except EngineError as error:
                return error

    answers = await asyncio.gather(*map(one, task_ids))
    return Cancelled(
        tuple(answer for answer in answers if isinstance(answer, TaskRecord)),
        tuple(answer for answer in answers if isinstance(answer, EngineError)),
        waiting,
    )
