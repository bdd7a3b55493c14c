"""Letting go of ended tasks: first a preview, then exactly what it showed, judged again one by one.

What belongs to a task outside of its folder (its run in `comet-runs/`, its contract) stays:
these are records of what was done, a few hundred bytes each. Ages go by `unhurried_ms`: a
clock that is set ahead while the program runs makes nothing old.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from engine.ledger.listing import Found
from engine.ledger.machine import unhurried_ms
from engine.ledger.reader import LedgerLook
from engine.model.errors import EngineError, TaskNotFound
from engine.model.records import TaskRecord
from engine.retention import removal
from engine.retention.errors import TaskStays
from engine.retention.judging import Kept, judged, judged_again, just_ended, unheld
from engine.retention.rules import Ended, Rules, chosen


class Preview(msgspec.Struct, frozen=True):
    """What would go, oldest first, how many bytes that is, and how many stay for which reason.

    `by_rules` counts ended tasks that the rules leave alone.
    """

    tasks: tuple[Ended, ...]
    size_bytes: int
    by_rules: int
    kept: dict[str, int]


class Refused(msgspec.Struct, frozen=True):
    """A task that should have gone and did not."""

    task_id: str
    error: EngineError


class Pruned(msgspec.Struct, frozen=True):
    """What went, what stayed after all (id and reason), and what could not go."""

    gone: tuple[Ended, ...]
    size_bytes: int
    stayed: tuple[tuple[str, str], ...]
    refused: tuple[Refused, ...]


def preview(ledger: LedgerLook, rules: Rules, now_ms: float) -> Preview:
    """What `rules` let go of now; nothing is changed."""
    ended: list[Ended] = []
    kept: Counter[str] = Counter()
    for found in ledger.read_many([task_id for task_id, _ in ledger.scan()]):
        verdict = judged(ledger, found, now_ms)
        if isinstance(verdict, Kept):
            kept[verdict.value] += 1
        else:
            ended.append(verdict)
    tasks = tuple(chosen(ended, rules, now_ms))
    size = sum(one.size_bytes for one in tasks)
    return Preview(tasks, size, len(ended) - len(tasks), dict(kept))


def prune(
    ledger: LedgerLook,
    shown: Preview,
    *,
    delete: bool = False,
    stop: Callable[[], bool] = lambda: False,
    now_ms: Callable[[], float] = unhurried_ms,
) -> Pruned:
    """Let go of what the preview showed; what has changed since, or cannot go, stays."""
    gone: list[Ended] = []
    stayed: list[tuple[str, str]] = []
    refused: list[Refused] = []
    let_go = removal.delete if delete else removal.to_trash
    if delete:
        removal.sweep(ledger.root)
    for one in shown.tasks:
        if stop():
            break
        try:
            why = judged_again(ledger, one, now_ms())
            if why is not None:
                stayed.append((one.task_id, why.value))
                continue
            let_go(ledger.root, one.task_id)
        except EngineError as error:  # one task's trouble is not the next one's
            refused.append(Refused(one.task_id, error))
        else:
            gone.append(one)
    size = sum(one.size_bytes for one in gone)
    return Pruned(tuple(gone), size, tuple(stayed), tuple(refused))


class Retention:
    """Preview and prune for whoever has a loop; the work is done on a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def preview(self, rules: Rules) -> Preview:
        """Raises LedgerUnusable."""
        return await asyncio.to_thread(
            lambda: preview(LedgerLook(self._root), rules, unhurried_ms())
        )

    async def prune(
        self, shown: Preview, *, delete: bool = False, stop: threading.Event | None = None
    ) -> Pruned:
        """To the trash, or with `delete` for good; `stop` ends it between two tasks."""
        stopped = stop or threading.Event()
        try:
            return await asyncio.to_thread(
                lambda: prune(LedgerLook(self._root), shown, delete=delete, stop=stopped.is_set)
            )
        finally:
            stopped.set()


# Letting go of one task that a person points at: to the trash, or for good. Nothing else goes.

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
