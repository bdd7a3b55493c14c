"""The feed's snapshot equals the disk soon after any change."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from engine.ledger.files import HAS_DIR_FD, Folder
from engine.ledger.listing import AT_ONCE, packed
from engine.ledger.reader import LedgerReader
from engine.ledger.snapshot import Difference
from engine.ledger.watch import Changes, Watch
from engine.model.errors import TaskNotFound
from engine.model.records import TaskId, Units
from engine.service.feed import PART, PULSE_S, SLOW_PULSE_S, Batch, Feed, PulsePace
from tests.support.engines import opened
from tests.support.task_folders import elsewhere, task_id, write_meta
from tests.watch.readers import SOON_S, Reader, reading


async def test_large_ledgers_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.service.feed.MANY", 100)
    for number in range(PART + 200):
        write_meta(tmp_path, number, "COMPLETED" if number else "RUNNING")
    async with reading(tmp_path) as reader:
        await reader.until(lambda: reader.batches and reader.batches[-1].complete)
        assert len(reader.views) == reader.batches[-1].total == PART + 200
        told = [batch.loaded for batch in reader.batches]
        assert told == sorted(told)
        assert {batch.total for batch in reader.batches} == {PART + 200}
        write_meta(tmp_path, 0, "COMPLETED")
        write_meta(tmp_path, PART + 200)
        await reader.until(lambda: reader.is_(0, "COMPLETED") and reader.is_(PART + 200, "RUNNING"))


async def test_everything_comes_newest_first_and_a_small_part_at_once(tmp_path: Path) -> None:
    for number in range(1_300):
        folder = write_meta(tmp_path, number, "COMPLETED")
        os.utime(folder / "meta.json", ns=(number, number))
    async with reading(tmp_path) as reader:
        loads = [batch for batch in reader.batches if batch.views]
        assert [len(batch.views) for batch in loads] == [100, 500, 500, 200]
        assert [view.task_id for view in loads[0].views[:2]] == [task_id(1_299), task_id(1_298)]
        assert [batch.loaded for batch in loads] == [100, 600, 1_100, 1_300]
        assert {batch.total for batch in loads} == {1_300}
        assert [batch.complete for batch in loads] == [False, False, False, True]


async def test_an_empty_ledger_is_told_as_complete(tmp_path: Path) -> None:
    async with reading(tmp_path) as reader:
        assert reader.batches == [Batch(complete=True)]


async def test_changes_by_another_process_arrive(tmp_path: Path) -> None:
    write_meta(tmp_path, 1)
    script = "root = Path(sys.argv[1])\n" + (
        "write_meta(root, 1, 'COMPLETED'); write_meta(root, 2, 'PENDING')"
    )
    async with reading(tmp_path) as reader:
        with elsewhere(script, tmp_path):
            await reader.until(lambda: reader.is_(1, "COMPLETED") and reader.is_(2, "PENDING"))


async def test_only_what_differs_is_told(tmp_path: Path) -> None:
    for number in range(20):
        write_meta(tmp_path, number)
    async with reading(tmp_path, scan_s=0.1) as reader:
        before = len(reader.batches)
        write_meta(tmp_path, 3)  # another inode, the same words
        write_meta(tmp_path, 4, "FAILED")
        await reader.until(lambda: reader.is_(4, "FAILED"))
        told = [view.task_id for batch in reader.batches[before:] for view in batch.views]
        assert told == [task_id(4)]


class Patient(Watch):
    """A watch that notes how long its reader would wait."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, scan_s=3_600)  # no scan ends a wait before its time
        self.waits: list[float] = []
        self.noted = asyncio.Condition()

    async def changes(self, within_s: float | None = None) -> Changes:
        self.waits.append(within_s or 0.0)
        async with self.noted:
            self.noted.notify_all()
        return await super().changes(within_s)

    async def until(self, condition: Callable[[float], bool]) -> None:
        async with asyncio.timeout(SOON_S), self.noted:
            await self.noted.wait_for(lambda: bool(self.waits) and condition(self.waits[-1]))


async def test_live_tasks_are_looked_at_half_as_often_until_they_change_often(
    tmp_path: Path,
) -> None:
    folder = write_meta(tmp_path, 1)
    watch = Patient(tmp_path)
    feed = Feed(LedgerReader(tmp_path), watch, ours=lambda _: False)
    reader = Reader(feed)
    running = asyncio.create_task(reader.run())
    try:
        await watch.until(lambda wait: wait > PULSE_S)

        def shows(done: int) -> Callable[[], bool]:
            line = {"ts": 1, "kind": "progress", "data": {"unitsDone": done, "unitsTotal": 9}}
            with (folder / "events.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
            return lambda: reader.views[TaskId(task_id(1))].units == Units(done, 9)

        await reader.until(shows(3))
        await reader.until(shows(4))
        await watch.until(lambda wait: 0 < wait <= PULSE_S)
        assert max(watch.waits) <= SLOW_PULSE_S
    finally:
        await feed.close()
        async with asyncio.timeout(SOON_S):
            await running


def test_a_change_at_each_second_look_does_not_make_looks_more_frequent() -> None:
    pace = PulsePace()
    assert [pace.after(False, True) for _ in range(3)] == [PULSE_S, SLOW_PULSE_S, SLOW_PULSE_S]
    assert {pace.after(bool(turn % 2), True) for turn in range(20)} == {SLOW_PULSE_S}
    assert pace.after(True, True) == PULSE_S, "it changed at two looks in a row"
    assert [pace.after(False, False) for _ in range(9)] == [PULSE_S] * 9, "no round is over"
    assert [pace.after(False, True) for _ in range(2)] == [PULSE_S, SLOW_PULSE_S]


def test_a_notice_of_a_change_makes_looks_frequent_at_once() -> None:
    pace = PulsePace()
    for _ in range(3):
        pace.after(False, True)
    assert pace.hurry() == PULSE_S
    assert [pace.after(False, True) for _ in range(2)] == [PULSE_S, SLOW_PULSE_S]


async def test_pulses_slow_down_only_after_rounds_of_all_live_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.ledger.snapshot.PULSE_TASKS", 1)
    monkeypatch.setattr("engine.service.feed.PULSE_S", 0.05)
    for number in range(1, 5):
        write_meta(tmp_path, number)
    watch = Patient(tmp_path)
    feed = Feed(LedgerReader(tmp_path), watch, ours=lambda _: False)
    pulses, pulse = list[bool](), feed._snapshot.pulse

    def counted() -> Difference:
        found = pulse()
        pulses.append(bool(found.views))
        return found

    monkeypatch.setattr(feed._snapshot, "pulse", counted)
    running = asyncio.create_task(Reader(feed).run())
    try:
        await watch.until(lambda wait: wait > 0.05)
    finally:
        await feed.close()
        async with asyncio.timeout(SOON_S):
            await running
    assert len(pulses) >= 8  # two rounds of four tasks
    assert not any(pulses[-4:])


async def test_a_scan_compares_parts_and_reads_what_differs(tmp_path: Path) -> None:
    for number in range(300):
        write_meta(tmp_path, number, "COMPLETED")
    reader = LedgerReader(tmp_path)
    known = {one: packed(stamp) for one, stamp in reader.scan()}

    def different() -> set[str]:
        """The tasks whose stamps a scan looks at one by one, and which differ."""
        found = [stamp for _, part in reader.compare(known) for stamp in part]
        return {one for one, stamp in found if packed(stamp) != known.get(one)}

    assert different() == set()
    if HAS_DIR_FD:
        assert [part for _, part in reader.compare(known) if part] == []
    assert {one for ids, _ in reader.compare(known) for one in ids} == set(known)
    write_meta(tmp_path, 7, "COMPLETED")
    (tmp_path / task_id(8) / "meta.json").unlink()
    write_meta(tmp_path, 301, "COMPLETED")
    assert different() == {task_id(7), task_id(8), task_id(301)}


async def test_a_scan_without_an_open_root_compares_smaller_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(AT_ONCE + 1):
        write_meta(tmp_path, number, "COMPLETED")
    reader = LedgerReader(tmp_path)
    monkeypatch.setattr(reader, "_open_root", lambda: Folder(str(tmp_path), None))  # Windows
    assert [len(ids) for ids, _ in reader.compare({})] == [AT_ONCE, 1]


async def test_a_change_that_made_no_hint_is_found_by_the_scan(tmp_path: Path) -> None:
    write_meta(tmp_path, 1, "COMPLETED")  # an ended task is not listened to
    async with reading(tmp_path, scan_s=0.2) as reader:
        write_meta(tmp_path, 1, "COMPLETED", objective="edited by hand")
        await reader.until(lambda: (one := reader.record(1)) and one.objective)


async def test_a_removed_folder_goes(tmp_path: Path) -> None:
    write_meta(tmp_path, 1)
    folder = write_meta(tmp_path, 2, "COMPLETED")
    async with reading(tmp_path) as reader:
        shutil.rmtree(folder)
        await reader.until(lambda: set(reader.views) == {task_id(1)})
        assert reader.batches[-1].gone == (task_id(2),)


async def test_progress_of_a_running_task_is_read_from_its_events(tmp_path: Path) -> None:
    folder = write_meta(tmp_path, 1)

    def progress(done: int) -> None:
        data = {"unitsDone": done, "unitsTotal": 9}
        with open(folder / "events.jsonl", "a") as events:
            events.write(json.dumps({"ts": 1_000 + done, "kind": "progress", "data": data}) + "\n")

    progress(1)
    async with reading(tmp_path) as reader:
        assert reader.views[TaskId(task_id(1))].units == Units(1, 9)
        progress(2)
        await reader.until(lambda: reader.views[TaskId(task_id(1))].units == Units(2, 9))
        assert reader.views[TaskId(task_id(1))].last_event_at == 1_002


def add_progress(folder: Path, done: int, total: int) -> None:
    event = {"ts": done, "kind": "progress", "data": {"unitsDone": done, "unitsTotal": total}}
    with open(folder / "events.jsonl", "a") as events:
        events.write(json.dumps(event) + "\n")


async def test_a_foreign_task_keeps_its_progress_when_it_ends(tmp_path: Path) -> None:
    folder = write_meta(tmp_path, 1)
    add_progress(folder, 12, 40)
    async with reading(tmp_path) as reader:
        write_meta(tmp_path, 1, "COMPLETED")
        await reader.until(lambda: reader.is_(1, "COMPLETED"))
        assert reader.views[TaskId(task_id(1))].units == Units(12, 40)


async def test_the_progress_of_ended_foreign_tasks_is_read_for_answers_only(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    for number in (1, 2):
        add_progress(write_meta(root, number, "COMPLETED"), 12, 40)
    async with opened(tmp_path) as engine, aclosing(engine.tasks.changes()) as changes:
        seen: dict[str, Units | None] = {}

        async def until(name: str, units: Units | None) -> None:
            async for batch in changes:
                seen.update({view.task_id: view.units for view in batch.views})
                if name in seen and seen[name] == units:
                    return

        async with asyncio.timeout(SOON_S):
            await until(task_id(1), None)
            assert [view.units for view in await engine.tasks.list()] == [Units(12, 40)] * 2
            assert (await engine.tasks.get(task_id(1))).units == Units(12, 40)
            await until(task_id(1), Units(12, 40))
            assert seen[task_id(2)] is None


async def test_a_long_answer_reads_the_progress_of_its_first_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.service.feed.COMPLETED", 2)
    for number in range(4):
        folder = write_meta(tmp_path / "tasks", number, "COMPLETED", created_at=number)
        add_progress(folder, 12, 40)
    async with opened(tmp_path) as engine:
        listed = [view.units for view in await engine.tasks.list(limit=None)]
    assert listed == [Units(12, 40), Units(12, 40), None, None]


async def test_whose_a_task_is_and_whether_its_owner_lives_is_told(tmp_path: Path) -> None:
    gone = elsewhere("")
    gone.communicate()
    with elsewhere("sys.stdin.read()") as other:
        write_meta(tmp_path, 1, created_at=0)
        write_meta(tmp_path, 2, pid=other.pid, created_at=0)
        write_meta(tmp_path, 3, pid=gone.pid, created_at=0)
        async with reading(tmp_path, ours=lambda one: one == task_id(1)) as reader:
            seen = {
                number: (view.ours, view.foreign, view.orphaned)
                for number in (1, 2, 3)
                for view in [reader.views[TaskId(task_id(number))]]
            }
            assert seen == {
                1: (True, False, False),
                2: (False, True, False),
                3: (False, False, True),
            }
            other.kill()
            other.wait()
            await reader.until(lambda: reader.views[TaskId(task_id(2))].orphaned)
        assert other.stdin
        other.stdin.close()


async def test_looking_writes_nothing_and_makes_no_events_of_its_own(tmp_path: Path) -> None:
    for number in range(30):
        write_meta(tmp_path, number)

    def state() -> dict[str, int]:
        return {
            path: os.stat(path).st_mtime_ns
            for folder, _, files in os.walk(tmp_path)
            for path in [folder, *(os.path.join(folder, name) for name in files)]
        }

    before = state()
    async with reading(tmp_path) as reader:
        bundles: list[object] = []
        assert reader.feed.watch
        next_bundle = reader.feed.watch._queue.next_bundle

        async def counted(within_s: float | None) -> object:
            taken = await next_bundle(within_s)
            if taken.ids:
                bundles.append(taken)
            return taken

        # Replaces a method to count its calls.
        reader.feed.watch._queue.next_bundle = counted  # type: ignore[assignment]
        write_meta(tmp_path, 40)
        await reader.until(lambda: reader.is_(40, "RUNNING"))
        count = len(reader.batches)
        # Each read opens and closes 31 files; a reader that heard itself would never rest.
        reader.feed.rescan()
        for _ in range(30):
            await asyncio.sleep(0.05)
        assert len(reader.batches) == count
        assert len(bundles) <= 8
    shutil.rmtree(tmp_path / task_id(40))
    after = state()
    before.pop(str(tmp_path))
    after.pop(str(tmp_path))
    assert after == before


async def test_a_burst_ends_with_the_state_on_disk(tmp_path: Path) -> None:
    script = """
root = Path(sys.argv[1])
for turn in range(20):
    for number in range(100):
        write_meta(root, number, "RUNNING" if turn < 19 else "COMPLETED", objective=str(turn))
"""
    async with reading(tmp_path) as reader:
        with elsewhere(script, tmp_path):
            await reader.until(lambda: len(reader.views) == 100)
            await reader.until(
                lambda: all(reader.is_(number, "COMPLETED") for number in range(100))
            )


async def test_single_tasks_are_looked_at_without_a_watch(tmp_path: Path) -> None:
    write_meta(tmp_path, 1)
    feed = Feed(LedgerReader(tmp_path), None, ours=lambda _: True)
    (view,) = feed.look([task_id(1)])
    assert view.ours
    with pytest.raises(TaskNotFound):
        feed.look([task_id(2)])


async def test_no_task_is_read_on_the_thread_of_the_loop(tmp_path: Path) -> None:
    for number in range(PART + 200):
        write_meta(tmp_path, number)
    readers = []

    def ours(_: TaskId) -> bool:
        readers.append(threading.get_ident())  # asked for each task that is read
        return False

    async with reading(tmp_path, ours=ours):
        assert len(readers) >= PART + 200
    assert threading.get_ident() not in readers
