"""A reader of the feed as a window is one: it keeps the newest word on each task."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from engine.ledger.machine import wall_ms
from engine.ledger.reader import LedgerReader
from engine.ledger.snapshot import Difference, LedgerSnapshot
from engine.ledger.watch import Watch
from engine.model.records import TaskId, TaskRecord, TaskView
from engine.service.feed import Batch, Feed
from tests.support.task_folders import task_id

SOON_S = 60.0


class Reader:
    """What a window keeps: the newest word on each task."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.batches: list[Batch] = []
        self.views: dict[TaskId, TaskView] = {}
        self._came = asyncio.Condition()

    async def run(self) -> None:
        async for batch in self.feed.batches():
            self.batches.append(batch)
            self.views |= {view.task_id: view for view in batch.views}
            for gone in batch.gone:
                del self.views[gone]
            async with self._came:
                self._came.notify_all()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(SOON_S), self._came:
            await self._came.wait_for(condition)

    def record(self, number: int) -> TaskRecord | None:
        view = self.views.get(TaskId(task_id(number)))
        return view.entry if view and isinstance(view.entry, TaskRecord) else None

    def is_(self, number: int, status: str) -> bool:
        record = self.record(number)
        return record is not None and record.status == status


@asynccontextmanager
async def reading(
    root: Path,
    *,
    ours: Callable[[TaskId], bool] = lambda _: False,
    now_ms: Callable[[], int] = wall_ms,
    **options: object,
) -> AsyncIterator[Reader]:
    # `options` are passed on as they are; the watch knows their types
    feed = Feed(LedgerReader(root, now_ms=now_ms), Watch(root, **options), ours=ours)  # type: ignore[arg-type]
    reader = Reader(feed)
    running = asyncio.create_task(reader.run())
    try:
        await reader.until(lambda: reader.batches and reader.batches[-1].complete)
        yield reader
    finally:
        await feed.close()
        async with asyncio.timeout(SOON_S):
            await running


def first_load(snapshot: LedgerSnapshot) -> Difference:
    """Read all tasks of a ledger, as of a large one."""
    snapshot.begin_load(ids := snapshot.list_ids())
    found = snapshot.load_next(len(ids))
    snapshot.end_load()
    return found


def on_disk(root: Path) -> dict[str, str]:
    return {
        name: (root / name / "meta.json").read_text()
        for name in os.listdir(root)
        if not name.startswith(".")
    }
