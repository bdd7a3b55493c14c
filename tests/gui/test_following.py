"""Events are followed while the panel is visible and new ones arrive."""

from __future__ import annotations

import asyncio

import pytest

from engine.model.errors import TaskNotFound
from engine.model.records import History, TaskId, TaskRecord, TaskView
from engine.service.feed import Batch
from gui.engine_link import task_events
from gui.engine_link.task_events import LAST_LOOKS, EventFollower, EventPart, EventRow, Offset, Told

ONE, TWO = TaskId(f"{1:016x}"), TaskId(f"{2:016x}")


def view(task_id: TaskId, status: str = "RUNNING") -> TaskView:
    return TaskView(TaskRecord(task_id, kind="crawl", status=status, created_at=1))


def row(number: int) -> EventRow:
    return EventRow(at="", kind="log", name="Log", text=str(number), tone="")


def texts(part: EventPart) -> list[str]:
    return [one.text for one in part.rows]


class File:
    """A history that grows by hand; counts how often it is read."""

    def __init__(self, told: Told) -> None:
        self.size, self.reads, self.trouble = 10, 0, False
        self.seen: list[EventPart] = []
        self.read_once = asyncio.Event()
        self.follower = EventFollower(self.read, told.has_ended, lambda _, s: self.seen.append(s))

    async def read(self, task_id: str, before: Offset, since: Offset) -> History[EventRow]:
        self.reads += 1
        self.read_once.set()
        if self.trouble:
            self.trouble = False
            raise TaskNotFound(task_id=task_id, root="/x")
        if before is not None:
            return History((row(before - 1),), before - 1, before)
        if since is None:
            return History((row(self.size - 1),), self.size - 1, self.size, 0, self.size - 1)
        return History((row(since),) if self.size > since else (), since, self.size)

    async def reads_of(self, number: int) -> None:
        async with asyncio.timeout(60):
            while self.reads < number:
                self.read_once.clear()
                await self.read_once.wait()


async def test_an_ended_task_is_read_to_its_end_and_then_only_on_news() -> None:
    told = Told()
    batch = told.whole(Batch((view(ONE, "COMPLETED"),), (), 1, 1, True))
    file = File(told)
    work = asyncio.ensure_future(file.follower.follow(ONE))
    await file.reads_of(2 * 9 + LAST_LOOKS + 2)
    before = file.reads
    await asyncio.sleep(0.6)  # more than two looks of a task that goes on
    assert file.reads == before
    file.size = 20
    file.follower.hear(batch)
    await file.reads_of(before + 1)
    await asyncio.sleep(0)
    assert texts(file.seen[0]) == ["9"]
    assert [texts(part) for part in file.seen if part.older] == [[str(n)] for n in range(8, -1, -1)]
    assert file.seen[0].earlier == 9
    assert texts(file.seen[-1]) == ["10"]
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def test_no_more_is_read_than_the_table_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_events, "KEPT", 4)
    told = Told()
    told.whole(Batch((view(ONE, "COMPLETED"),), (), 1, 1, True))
    file = File(told)
    work = asyncio.ensure_future(file.follower.follow(ONE))
    await file.reads_of(2 * 3 + LAST_LOOKS + 2)  # the newest, three older, and the last looks
    await asyncio.sleep(0)
    assert [texts(part) for part in file.seen if part.older] == [["8"], ["7"], ["6"]]
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def test_nothing_is_read_while_the_details_are_hidden_and_an_error_is_tried_again() -> None:
    file = File(Told())
    file.follower.show(False)
    file.trouble = True
    work = asyncio.ensure_future(file.follower.follow(ONE))
    await asyncio.sleep(0.3)
    assert file.reads == 0
    file.follower.show(True)
    await file.reads_of(2)
    await asyncio.sleep(0)
    assert texts(file.seen[0]) == ["9"]
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def test_a_new_feed_drops_what_it_does_not_know_once_it_is_complete() -> None:
    told = Told()
    told.whole(Batch((view(ONE), view(TWO)), (), 2, 2, True))
    told.start_over()
    assert told.whole(Batch((view(TWO),), (), 1, 2, False)).gone == ()
    assert told.whole(Batch((), (), 1, 1, True)).gone == (ONE,)
    assert told.whole(Batch((), (), 1, 1, True)).gone == ()
