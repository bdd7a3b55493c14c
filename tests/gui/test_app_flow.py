"""Batches reach the table joined: at once when it is idle, then 25 times a second."""

from __future__ import annotations

import asyncio
import time

from engine.model.records import TaskId, TaskRecord, TaskView, Units
from engine.service.feed import Batch
from gui.engine_link.subscription import MOST_VIEWS, PERIOD_MS, BatchThrottle

AT_ONCE = 5  # turns of the loop: who waits for a timer of 40 ms waits for thousands


def view(number: int, done: int = 0) -> TaskView:
    task_id = f"{number:016x}"
    return TaskView(TaskRecord(task_id, kind="crawl", status="RUNNING"), units=Units(done))


def follow(flow: BatchThrottle) -> list[Batch]:
    seen: list[Batch] = []
    flow.batch.connect(seen.append)
    return seen


async def until_quiet(seen: list[Batch]) -> None:
    before = -1
    while before != len(seen):
        before = len(seen)
        await asyncio.sleep(3 * PERIOD_MS / 1000)


async def test_the_first_batch_does_not_wait() -> None:
    flow = BatchThrottle()
    seen = follow(flow)
    flow.add(Batch((view(1),), (), 1, 1, True))
    for _ in range(AT_ONCE):
        await asyncio.sleep(0)
    assert len(seen) == 1
    assert [one.task_id for one in seen[0].views] == [f"{1:016x}"]


async def test_a_flood_becomes_few_batches_and_the_newest_word_stands() -> None:
    flow = BatchThrottle()
    seen = follow(flow)
    began = time.monotonic()
    for done in range(1, 501):
        flow.add(Batch((view(1, done),), (), 1, 1, True))
        await asyncio.sleep(0)
    await until_quiet(seen)
    allowed = (time.monotonic() - began) * 1000 / PERIOD_MS + 2
    assert len(seen) <= allowed
    assert seen[-1].views[0].units == Units(500)


async def test_a_large_bundle_is_handed_on_in_parts_that_do_not_hold_up_a_click() -> None:
    flow = BatchThrottle()
    seen = follow(flow)
    count = 3 * MOST_VIEWS + 1
    flow.add(Batch(tuple(map(view, range(count))), (), count, count, True))
    await until_quiet(seen)
    assert max(len(batch.views) for batch in seen) <= MOST_VIEWS
    assert sum(len(batch.views) for batch in seen) == count
    assert [batch.complete for batch in seen] == [False] * (len(seen) - 1) + [True]
    assert seen[-1].loaded == count


async def test_what_went_and_came_back_is_there_and_what_came_and_went_is_not() -> None:
    flow = BatchThrottle()
    seen = follow(flow)
    one, two = (TaskId(f"{number:016x}") for number in (1, 2))
    flow.add(Batch((view(2),), (one,), 1, 1, True))
    flow.add(Batch((view(1),), (two,), 1, 1, True))
    await until_quiet(seen)
    assert [shown.task_id for batch in seen for shown in batch.views] == [one]
    assert [task_id for batch in seen for task_id in batch.gone] == [two]


async def test_what_comes_while_it_is_held_is_handed_on_once_it_is_not() -> None:
    flow = BatchThrottle()
    seen = follow(flow)
    flow.hold(True)
    flow.add(Batch((view(1),), (), 1, 2, False))
    await until_quiet(seen)
    assert not seen
    flow.add(Batch((view(2),), (), 2, 2, True))
    flow.hold(False)
    await until_quiet(seen)
    assert sorted(shown.task_id for batch in seen for shown in batch.views) == [
        f"{number:016x}" for number in (1, 2)
    ]
    assert seen[-1].complete
