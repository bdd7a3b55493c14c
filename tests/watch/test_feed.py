"""The feed's picture equals what is on disk, soon after whoever changed it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.errors import TaskNotFound
from engine.feed import PART, Batch, Feed
from engine.records import TaskId, TaskRecord, TaskView, Units, Unreadable
from engine.store.hints import Ears
from engine.store.look import LedgerLook
from engine.store.watch import Watch
from tests.watch.folders import elsewhere, task_id, write_meta

SOON_S = 8.0


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
    root: Path, *, ours: Callable[[TaskId], bool] = lambda _: False, **options: object
) -> AsyncIterator[Reader]:
    feed = Feed(LedgerLook(root), Watch(root, **options), ours=ours)  # type: ignore[arg-type]
    reader = Reader(feed)
    running = asyncio.create_task(reader.run())
    try:
        await reader.until(lambda: reader.batches and reader.batches[-1].complete)
        yield reader
    finally:
        await feed.close()
        async with asyncio.timeout(SOON_S):
            await running


def on_disk(root: Path) -> dict[str, str]:
    return {
        name: (root / name / "meta.json").read_text()
        for name in os.listdir(root)
        if not name.startswith(".")
    }


async def test_a_ledger_too_large_to_be_sorted_first_is_told_whole_and_then_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.feed.MANY", 100)
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


async def test_rows_go_with_the_root_and_come_back_with_it(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    write_meta(root, 1)
    async with reading(root) as reader:
        root.rename(tmp_path / "away")
        await reader.until(lambda: not reader.views)
        assert reader.feed.watch
        assert reader.feed.watch.state == "gone"
        (tmp_path / "away").rename(root)
        begin = asyncio.get_running_loop().time()
        await reader.until(lambda: reader.is_(1, "RUNNING"))
        assert asyncio.get_running_loop().time() - begin < 2


async def test_a_root_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    async with reading(root) as reader:
        assert reader.feed.watch
        assert reader.feed.watch.state == "gone"
        write_meta(root, 1)
        await reader.until(lambda: reader.is_(1, "RUNNING"))


async def test_rows_go_when_a_file_takes_the_place_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    write_meta(root, 1)
    async with reading(root) as reader:
        root.rename(tmp_path / "away")
        root.write_text("")
        await reader.until(lambda: not reader.views)
        assert reader.feed.watch
        assert reader.feed.watch.reason == f"{root}: this is a file, not a folder"


async def test_rows_stay_while_no_file_can_be_opened_and_are_right_afterwards(
    tmp_path: Path,
) -> None:
    resource = pytest.importorskip("resource")
    for number in range(5):
        write_meta(tmp_path, number, "COMPLETED")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with reading(tmp_path, scan_s=0.1, poll_s=0.1) as reader:
        watch = reader.feed.watch
        assert watch
        for number in range(5, 8):
            write_meta(tmp_path, number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            await reader.until(lambda: watch.state == "polling")
            assert "open files" in watch.reason
            assert {task_id(number) for number in range(5)} <= set(reader.views)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await reader.until(lambda: len(reader.views) == 8 and watch.state == "live")
        told = [view.entry for batch in reader.batches for view in batch.views]
        assert not [entry for entry in told if isinstance(entry, Unreadable)]


async def test_a_task_whose_files_are_kept_back_stops_nothing(tmp_path: Path, monkeypatch) -> None:
    for number in range(3):
        (write_meta(tmp_path, number) / "events.jsonl").write_text("{}\n")
    real = os.open

    def kept_back(path, *rest, **named):
        if path == "events.jsonl":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", kept_back)
    async with reading(tmp_path) as reader:
        assert set(reader.views) == {task_id(number) for number in range(3)}
        write_meta(tmp_path, 1, "COMPLETED")
        await reader.until(lambda: reader.is_(1, "COMPLETED"))


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO])
async def test_a_ledger_that_cannot_be_listed_for_a_while_is_shown_afterwards(
    tmp_path: Path, monkeypatch, code: int
) -> None:
    write_meta(tmp_path, 1)
    real = os.scandir
    async with reading(tmp_path, scan_s=0.1, poll_s=0.1) as reader:
        failed = threading.Event()

        def failing(place: int | Path) -> object:
            if not isinstance(place, int):  # the watcher's own looking
                return real(place)
            failed.set()
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "scandir", failing)
        assert await asyncio.to_thread(failed.wait, SOON_S)
        monkeypatch.setattr(os, "scandir", real)
        write_meta(tmp_path, 1, "COMPLETED")
        write_meta(tmp_path, 2)
        await reader.until(lambda: reader.is_(1, "COMPLETED") and reader.is_(2, "RUNNING"))


async def test_a_look_that_breaks_on_one_task_goes_on_with_the_others(tmp_path: Path) -> None:
    for number in range(PART * 2):
        write_meta(tmp_path, number, "COMPLETED")
    broken: list[str] = []

    class Failing(LedgerLook):
        def entries(self, ids):
            if not broken:
                broken.extend(ids)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().entries(ids)

    feed = Feed(Failing(tmp_path), Watch(tmp_path, scan_s=0.5), ours=lambda _: False)
    reader = Reader(feed)
    running = asyncio.create_task(reader.run())
    await reader.until(lambda: reader.views)
    assert not set(reader.views) & set(broken)
    await reader.until(lambda: len(reader.views) == PART * 2)  # the next survey names it again
    await feed.close()
    await running


@pytest.mark.case("R55")
async def test_without_any_watcher_the_picture_is_still_right(tmp_path: Path) -> None:
    def none_left() -> Ears:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    write_meta(tmp_path, 1)
    async with reading(tmp_path, poll_s=0.2, ears=none_left) as reader:
        write_meta(tmp_path, 1, "FAILED")
        write_meta(tmp_path, 2)
        await reader.until(lambda: reader.is_(1, "FAILED") and reader.is_(2, "RUNNING"))


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


async def test_a_folder_without_a_record_is_shown_only_after_five_seconds(tmp_path: Path) -> None:
    old = tmp_path / task_id(1)
    old.mkdir()
    os.utime(old, (1, 1))
    async with reading(tmp_path) as reader:
        (tmp_path / task_id(2)).mkdir()
        (tmp_path / task_id(3)).mkdir()
        shown = reader.views[TaskId(task_id(1))].entry
        assert isinstance(shown, Unreadable)
        assert shown.reason == "was never finished"
        write_meta(tmp_path, 3)
        await reader.until(lambda: reader.is_(3, "RUNNING"))
        assert TaskId(task_id(2)) not in reader.views
        await reader.until(lambda: TaskId(task_id(2)) in reader.views)


async def test_an_unreadable_record_is_shown_and_mended_when_it_is(tmp_path: Path) -> None:
    folder = write_meta(tmp_path, 1)
    (folder / "meta.json").write_text("{")
    async with reading(tmp_path, scan_s=0.2) as reader:
        assert isinstance(reader.views[TaskId(task_id(1))].entry, Unreadable)
        write_meta(tmp_path, 1, "COMPLETED")
        await reader.until(lambda: reader.is_(1, "COMPLETED"))


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
        take = reader.feed.watch._post.take

        async def counted(within_s: float | None) -> object:
            taken = await take(within_s)
            if taken.ids:
                bundles.append(taken)
            return taken

        reader.feed.watch._post.take = counted  # type: ignore[method-assign,assignment]
        write_meta(tmp_path, 40)
        await reader.until(lambda: reader.is_(40, "RUNNING"))
        count = len(reader.batches)
        # Each read opens and closes 31 files; a reader that heard itself would never rest.
        reader.feed.rescan()
        for _ in range(10):
            await asyncio.sleep(0.05)
        assert len(reader.batches) == count
        assert len(bundles) <= 4
    shutil.rmtree(tmp_path / task_id(40))
    after = state()
    before.pop(str(tmp_path))
    after.pop(str(tmp_path))
    assert after == before


async def test_a_burst_over_many_tasks_ends_with_the_picture_that_is_on_disk(
    tmp_path: Path,
) -> None:
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
    feed = Feed(LedgerLook(tmp_path), None, ours=lambda _: True)
    (view,) = feed.look([task_id(1)])
    assert view.ours
    with pytest.raises(TaskNotFound):
        feed.look([task_id(2)])


async def test_the_loop_is_never_held_up_while_thousands_are_read(tmp_path: Path) -> None:
    for number in range(3_000):
        write_meta(tmp_path, number, "COMPLETED", args_summary={"url": "https://example.org/"})
    loop = asyncio.get_running_loop()
    longest = 0.0

    async def heart() -> None:
        nonlocal longest
        while True:
            begin = loop.time()
            await asyncio.sleep(0.005)
            longest = max(longest, loop.time() - begin - 0.005)

    beating = asyncio.create_task(heart())
    async with reading(tmp_path) as reader:
        assert len(reader.views) == 3_000
    beating.cancel()
    await asyncio.wait({beating})
    assert longest < 0.1
