"""Task runs as live rows: the open ones, and those that ended lately, as they change on disk.

The window's list has them beside the tasks. What ended longer than a day ago is a record to
be asked for (`octask task-run list`), not something to watch.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from engine.contracts.task_run_rows import record_of
from engine.contracts.task_runs import RunDesk
from engine.ledger.change_queue import Changes
from engine.ledger.machine import wall_ms
from engine.ledger.reader import LedgerLook
from engine.ledger.record_store import RecordUnreadable
from engine.ledger.watch import Watch
from engine.model.errors import EngineError
from engine.model.records import Stamp, TaskId, TaskRecord, TaskView, Unreadable
from engine.service.feed import Batch

log = logging.getLogger(__name__)

ENDED_LATELY_MS: Final = 24 * 3600 * 1000


class GoalFeed:
    """One reader's live picture of the task runs in `root`."""

    def __init__(self, runs: RunDesk, root: Path, watch: Watch | None = None) -> None:
        self._runs, self._root = runs, root
        self._watch = watch or Watch(root)
        self._stamps: dict[TaskId, Stamp | None] = {}
        self._shown: dict[TaskId, TaskView] = {}
        self._called = False
        self._closed = threading.Event()

    def nudge(self, run_id: TaskId) -> None:
        """Tell of a change made by this very process, at once. From any thread."""
        self._watch.nudge(run_id)

    def rescan(self) -> None:
        """Look at every run again, now."""
        self._watch.rescan()

    def call(self) -> None:
        """Have `batches` tell something soon, if only an empty batch. From any thread."""
        self._called = True
        self._watch.wake()

    async def close(self) -> None:
        """End `batches`. Harmless when called twice."""
        self._closed.set()
        self._watch.rescan()
        await self._watch.stop()

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """All that are to be shown, and then whatever changes, until `close`."""
        await self._watch.start()
        try:
            while not self._closed.is_set():
                changes = await self._watch.changes()
                views, gone = await asyncio.to_thread(self._look, changes)
                if views or gone or self._called:
                    self._called = False
                    number = len(self._shown)
                    yield Batch(tuple(views), tuple(gone), number, number, True)
                self._watch.follow([one for one, view in self._shown.items() if _is_open(view)])
        finally:
            await self._watch.stop()

    def _look(self, changes: Changes) -> tuple[list[TaskView], list[TaskId]]:
        """What differs from what was told; for a worker thread."""
        wanted = set(changes.ids)
        gone: set[TaskId] = set()
        if changes.rescan:
            try:
                stamps = dict(LedgerLook(self._root).scan())
            except EngineError as error:  # for now nothing is known, and nothing is taken away
                log.debug("the task runs cannot be looked at: %s", error)
                return [], []
            gone = self._shown.keys() - stamps.keys()
            known, self._stamps = self._stamps, stamps
            wanted |= {one for one, stamp in stamps.items() if stamp != known.get(one)}
        found = {one: self._read(one) for one in wanted}
        gone |= {one for one, view in found.items() if view is None and one in self._shown}
        news = {one: view for one, view in found.items() if view and view != self._shown.get(one)}
        for one in gone:
            self._shown.pop(one, None)
        self._shown |= news
        return list(news.values()), list(gone)

    def _read(self, run_id: TaskId) -> TaskView | None:
        """One run as a row; None for what is gone, or ended too long ago."""
        try:
            record = record_of(self._runs.get(run_id))
        except RecordUnreadable as error:
            return TaskView(Unreadable(run_id, str(error), str(error.fields["path"])))
        except EngineError:
            return None
        ended = record.ended_at
        if record.is_terminal and ended is not None and wall_ms() - ended > ENDED_LATELY_MS:
            return None
        return TaskView(record, units=record.units)


def _is_open(view: TaskView) -> bool:
    return isinstance(view.entry, TaskRecord) and not view.entry.is_terminal
