"""The feed with faults of the root, the files, the watcher or a reading."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from engine.ledger.directory_watcher import DirectoryWatcher
from engine.ledger.reader import LedgerReader
from engine.ledger.watch import GONE_S, Watch
from engine.model.records import TaskId, Unreadable
from engine.service.feed import PART, Feed
from tests.support.engines import until
from tests.support.task_folders import task_id, write_meta
from tests.watch.readers import SOON_S, Reader, reading


async def test_rows_go_with_the_root_and_come_back_with_it(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    write_meta(root, 1)
    async with reading(root) as reader:
        root.rename(tmp_path / "away")
        await reader.until(lambda: not reader.views)
        assert reader.feed.watch
        assert reader.feed.watch.state == "gone"
        (tmp_path / "away").rename(root)
        await reader.until(lambda: reader.is_(1, "RUNNING"))
        assert GONE_S < 2  # so often it is looked for; what comes on top is the machine's


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
        watch = reader.feed.watch
        assert watch
        await until(lambda: watch.reason == f"{root}: this is a file, not a folder")


async def test_rows_survive_a_lack_of_descriptors(tmp_path: Path) -> None:
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
async def test_an_unlistable_ledger_recovers(tmp_path: Path, monkeypatch, code: int) -> None:
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

    class Failing(LedgerReader):
        def entries(self, ids, *more):
            if not broken:
                broken.extend(ids)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().entries(ids, *more)

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
    def none_left() -> DirectoryWatcher:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    write_meta(tmp_path, 1)
    async with reading(tmp_path, poll_s=0.2, open_watcher=none_left) as reader:
        write_meta(tmp_path, 1, "FAILED")
        write_meta(tmp_path, 2)
        await reader.until(lambda: reader.is_(1, "FAILED") and reader.is_(2, "RUNNING"))


async def test_a_folder_without_a_record_is_shown_only_after_five_seconds(tmp_path: Path) -> None:
    now = [1_700_000_000_000]

    def made(number: int, age_s: float) -> None:
        """In one step with its time, as the given clock tells it."""
        folder = tmp_path / ".being-made"
        folder.mkdir()
        os.utime(folder, (now[0] / 1_000 - age_s,) * 2)
        folder.rename(tmp_path / task_id(number))

    made(1, age_s=6)
    async with reading(tmp_path, now_ms=lambda: now[0]) as reader:
        made(2, age_s=4)
        made(3, age_s=4)
        shown = reader.views[TaskId(task_id(1))].entry
        assert isinstance(shown, Unreadable)
        assert shown.reason == "was never finished"
        write_meta(tmp_path, 3)
        await reader.until(lambda: reader.is_(3, "RUNNING"))
        assert TaskId(task_id(2)) not in reader.views
        now[0] += 1_001
        await reader.until(lambda: TaskId(task_id(2)) in reader.views)


async def test_an_unreadable_record_is_shown_and_mended_when_it_is(tmp_path: Path) -> None:
    folder = write_meta(tmp_path, 1)
    (folder / "meta.json").write_text("{")
    async with reading(tmp_path, scan_s=0.2) as reader:
        assert isinstance(reader.views[TaskId(task_id(1))].entry, Unreadable)
        write_meta(tmp_path, 1, "COMPLETED")
        await reader.until(lambda: reader.is_(1, "COMPLETED"))
