"""Pruning of ended tasks: a preview first, then exactly its tasks, each judged again.

Records of a task outside its folder (its run in `comet-runs/`, its contract) stay: they document
what was done, a few hundred bytes each. Ages use `age_clock_ms`: a clock that is set ahead while
the program runs makes nothing old.
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
from engine.ledger.machine import age_clock_ms
from engine.ledger.reader import LedgerReader
from engine.model.errors import EngineError, TaskNotFound
from engine.model.records import TaskRecord
from engine.retention import removal
from engine.retention.errors import TaskStays
from engine.retention.judging import KeepReason, judge, judge_again, just_ended, lock_verdict
from engine.retention.rules import Ended, Rules, chosen


class Preview(msgspec.Struct, frozen=True):
    """Tasks to remove, oldest first, their bytes, and the number kept for each reason.

    `by_rules` counts ended tasks that the rules keep.
    """

    tasks: tuple[Ended, ...]
    size_bytes: int
    by_rules: int
    kept: dict[str, int]


class Refused(msgspec.Struct, frozen=True):
    """A task that should have been removed and was not."""

    task_id: str
    error: EngineError


class Pruned(msgspec.Struct, frozen=True):
    """Result of pruning: removed tasks, tasks kept after all (id and reason), and failures."""

    gone: tuple[Ended, ...]
    size_bytes: int
    stayed: tuple[tuple[str, str], ...]
    refused: tuple[Refused, ...]


def preview(ledger: LedgerReader, rules: Rules, now_ms: float) -> Preview:
    """Find the tasks that `rules` would remove now; nothing is changed."""
    ended: list[Ended] = []
    kept: Counter[str] = Counter()
    for found in ledger.read_many([task_id for task_id, _ in ledger.scan()]):
        verdict = judge(ledger, found, now_ms)
        if isinstance(verdict, KeepReason):
            kept[verdict.value] += 1
        else:
            ended.append(verdict)
    tasks = tuple(chosen(ended, rules, now_ms))
    size = sum(one.size_bytes for one in tasks)
    return Preview(tasks, size, len(ended) - len(tasks), dict(kept))


def prune(
    ledger: LedgerReader,
    shown: Preview,
    *,
    delete: bool = False,
    stop: Callable[[], bool] = lambda: False,
    now_ms: Callable[[], float] = age_clock_ms,
) -> Pruned:
    """Remove the tasks of the preview; those that have changed since, or fail, stay."""
    gone: list[Ended] = []
    stayed: list[tuple[str, str]] = []
    refused: list[Refused] = []
    remove = removal.delete if delete else removal.to_trash
    if delete:
        removal.sweep(ledger.root)
    for one in shown.tasks:
        if stop():
            break
        try:
            why = judge_again(ledger, one, now_ms())
            if why is not None:
                stayed.append((one.task_id, why.value))
                continue
            remove(ledger.root, one.task_id)
        except EngineError as error:  # an error of one task must not stop the others
            refused.append(Refused(one.task_id, error))
        else:
            gone.append(one)
    size = sum(one.size_bytes for one in gone)
    return Pruned(tuple(gone), size, tuple(stayed), tuple(refused))


class Retention:
    """Asynchronous preview and prune; the work runs on a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def preview(self, rules: Rules) -> Preview:
        """Preview on a thread. Raises LedgerUnusable."""
        return await asyncio.to_thread(
            lambda: preview(LedgerReader(self._root), rules, age_clock_ms())
        )

    async def prune(
        self, shown: Preview, *, delete: bool = False, stop: threading.Event | None = None
    ) -> Pruned:
        """Move to the trash, or with `delete` remove for good; `stop` ends it between two tasks."""
        stopped = stop or threading.Event()
        try:
            return await asyncio.to_thread(
                lambda: prune(LedgerReader(self._root), shown, delete=delete, stop=stopped.is_set)
            )
        finally:
            stopped.set()


# Removal of one task that a person points at: to the trash, or for good.

WHY = {
    KeepReason.LIVING: "it has not ended",
    KeepReason.LOCKED: "another program is changing it right now",
    KeepReason.JUST_ENDED: "the program that ran it may still be writing; try again in a minute",
}


def discard(root: Path, task_id: str, *, delete: bool, settled: bool) -> None:
    """Remove one task's folder; `settled` says that its owner has surely finished with it.

    An unreadable task may be removed, too: only a person can decide that.

    Raises:
        TaskStays: it has not ended, or its owner may still be writing.
        NoTrash, DeleteFailed, NotATaskId, TaskNotFound.
    """
    ledger = LedgerReader(root)
    ledger.read(task_id)  # refuses an invalid task id before it becomes a path
    found = ledger.read_many([task_id])
    if not found:
        raise TaskNotFound(task_id=task_id, root=str(root))
    why = _keep_reason(ledger, found[0], settled)
    if why is KeepReason.GONE:
        raise TaskNotFound(task_id=task_id, root=str(root))
    if why is not None:
        raise TaskStays(task_id=task_id, reason=WHY[why])
    if delete:
        removal.delete(root, task_id)
    else:
        removal.to_trash(root, task_id)


def _keep_reason(ledger: LedgerReader, found: Found, settled: bool) -> KeepReason | None:
    record = found.entry
    if isinstance(record, TaskRecord):
        if not record.is_terminal:
            return KeepReason.LIVING
        stamp = None if settled else found.stamp
        if stamp is not None and just_ended(ledger, record, stamp, age_clock_ms()):
            return KeepReason.JUST_ENDED
    with suppress(OSError):
        return lock_verdict(ledger, record.task_id)
    return None
