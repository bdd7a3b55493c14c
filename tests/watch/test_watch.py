"""Hints become bundles of task ids, and a scan finds missed changes."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.ledger import watch as ledger_watch
from engine.ledger.directory_watcher import (
    DirectoryWatcher,
    InotifyWatcher,
    Listener,
    ObserverWatcher,
)
from engine.ledger.watch import Watch
from engine.model.records import TaskId
from tests.support.task_folders import elsewhere, task_id, write_meta

SOON_S = 60.0
LINUX = pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="inotify is Linux'")


class Chronicle(Watch):
    """Keeps each state with its reason in `told`: one may be over before anybody looks."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "reason":  # it is told last
            self.__dict__.setdefault("told", []).append((self.state, value))

    def reasons(self, state: str) -> list[str]:
        return [reason for each, reason in self.__dict__["told"] if each == state]


@asynccontextmanager
async def watching(root: Path, **options: object) -> AsyncIterator[Chronicle]:
    watch = Chronicle(root, **options)  # type: ignore[arg-type]  # passed on as they are
    await watch.start()
    try:
        first = await watch.changes(SOON_S)
        assert (first.rescan, first.whole) == (True, True)
        yield watch
    finally:
        await watch.stop()


async def heard(watch: Watch, *numbers: int) -> set[str]:
    """Collect until all of these were heard."""
    wanted, seen = {task_id(number) for number in numbers}, set[str]()
    async with asyncio.timeout(SOON_S):
        while not wanted <= seen:
            seen |= (await watch.changes(SOON_S)).ids
    return seen


async def until(watch: Watch, condition: Callable[[], bool]) -> None:
    """Take bundles until the condition has held and a rescan was asked for."""
    held = rescan = False
    async with asyncio.timeout(SOON_S):
        while not (held and rescan):
            rescan |= (await watch.changes(0.05)).rescan
            held |= condition()


async def back_to_live(watch: Watch) -> None:
    """Wait until it hears again; the look at everything may have come before."""
    async with asyncio.timeout(SOON_S):
        while watch.state != "live":
            await watch.changes(0.05)


@pytest.fixture(params=[pytest.param(InotifyWatcher, marks=LINUX), ObserverWatcher])
def open_watcher(request: pytest.FixtureRequest) -> Callable[[], DirectoryWatcher]:
    way: Callable[[], DirectoryWatcher] = request.param
    return way


async def test_a_new_task_and_a_removed_one_are_told(
    tmp_path: Path, open_watcher: Callable[[], DirectoryWatcher]
) -> None:
    folder = write_meta(tmp_path, 1)
    async with watching(tmp_path, open_watcher=open_watcher) as watch:
        write_meta(tmp_path, 2)
        assert await heard(watch, 2) == {task_id(2)}
        for name in os.listdir(folder):
            (folder / name).unlink()
        folder.rmdir()
        assert await heard(watch, 1) <= {task_id(1), task_id(2)}  # the new one may be told again


async def test_every_replacement_by_another_process_is_told(
    tmp_path: Path, open_watcher: Callable[[], DirectoryWatcher]
) -> None:
    write_meta(tmp_path, 1)
    script = "for line in sys.stdin: write_meta(Path(sys.argv[1]), 1, at=line)"
    async with watching(tmp_path, open_watcher=open_watcher) as watch:
        watch.follow([TaskId(task_id(1))])
        child = elsewhere(script, tmp_path)
        with child:
            assert child.stdin
            for number in range(6):  # a watch on the file would go deaf after the first
                child.stdin.write(f"{number}\n")
                child.stdin.flush()
                await heard(watch, 1)
            child.stdin.close()


async def test_locks_temp_names_appends_and_reads_are_not_told(
    tmp_path: Path, open_watcher: Callable[[], DirectoryWatcher]
) -> None:
    folder = write_meta(tmp_path, 1)
    async with watching(tmp_path, open_watcher=open_watcher) as watch:
        watch.follow([TaskId(task_id(1))])
        if open_watcher is InotifyWatcher:  # a folder that is followed from now on is told once
            await heard(watch, 1)
        (folder / ".lock.lock").mkdir()
        (folder / "lock").touch()
        (folder / ".meta.json.abc.1.tmp").write_text("{}")
        (folder / "events.jsonl").write_text("{}\n")
        (tmp_path / ".runners").mkdir()
        for _ in range(20):
            (folder / "meta.json").read_bytes()
        write_meta(tmp_path, 2)
        assert await heard(watch, 2) == {task_id(2)}


@LINUX
async def test_a_folder_that_is_followed_no_more_is_not_heard(tmp_path: Path) -> None:
    write_meta(tmp_path, 1)
    write_meta(tmp_path, 2)
    async with watching(tmp_path) as watch:
        watch.follow([TaskId(task_id(1)), TaskId(task_id(2))])
        await heard(watch, 1, 2)
        watch.follow([TaskId(task_id(2))])
        await asyncio.to_thread(watch._watch_set.repair)
        write_meta(tmp_path, 1)
        write_meta(tmp_path, 2)
        assert await heard(watch, 2) == {task_id(2)}


async def test_hints_are_bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(tmp_path) as watch:
        loop = asyncio.get_running_loop()
        calls: list[object] = []
        original = loop.call_soon_threadsafe

        def counted(*args: Any, **kw: Any) -> asyncio.Handle:
            if args[0] == watch._queue._release:  # others have their own reasons
                calls.append(args)
            return original(*args, **kw)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        for number in range(1_000):
            watch.nudge(TaskId(task_id(number)))
        assert len((await watch.changes(SOON_S)).ids) == 1_000
        assert len(calls) == 1


async def test_the_first_hint_is_immediate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hour = 3_600.0
    async with watching(tmp_path, scan_s=hour) as watch:
        monkeypatch.setattr(ledger_watch, "FLUSH_S", hour)
        watch._queue._flushed_at = float("-inf")  # it was idle for longer than a bundle takes
        watch.nudge(TaskId(task_id(1)))
        assert (await watch.changes(SOON_S)).ids == {task_id(1)}  # and not in an hour
        monkeypatch.setattr(ledger_watch, "FLUSH_S", 0.05)
        watch.nudge(TaskId(task_id(2)))
        watch.nudge(TaskId(task_id(3)))
        assert (await watch.changes(SOON_S)).ids == {task_id(2), task_id(3)}
        monkeypatch.setattr(ledger_watch, "FLUSH_S", hour)
        watch.nudge(TaskId(task_id(4)))
        assert (await watch.changes(0.3)).ids == set()


async def test_with_nothing_heard_a_rescan_is_due_every_period(tmp_path: Path) -> None:
    async with watching(tmp_path, scan_s=0.1) as watch:
        for _ in range(3):
            changes = await watch.changes(SOON_S)
            assert (changes.rescan, changes.whole) == (True, False)
        assert watch.state == "live"
        watch.rescan()
        while not (changes := await watch.changes(SOON_S)).whole:
            assert changes.rescan


class Limited:
    """Real ears that run out of watches after `left` folders."""

    def __init__(self, left: int) -> None:
        self.recursive = False
        self.left = left
        self._watcher = InotifyWatcher()

    def watch_folder(self, folder: Path, listener: Listener) -> Callable[[], None]:
        if self.left <= 0:
            raise OSError(errno.ENOSPC, "inotify watch limit reached")
        self.left -= 1
        return self._watcher.watch_folder(folder, listener)

    def close(self) -> None:
        self._watcher.close()


@LINUX
@pytest.mark.case("R55")
async def test_too_few_watches_mean_polling_until_there_are_enough(tmp_path: Path) -> None:
    for number in range(5):
        write_meta(tmp_path, number)
    limited = Limited(3)
    async with watching(tmp_path, scan_s=3_600, poll_s=0.1, open_watcher=lambda: limited) as watch:
        watch.follow([TaskId(task_id(number)) for number in range(5)])
        await until(watch, lambda: watch.state == "polling")
        assert watch.reason == (
            "Looking every 0.1 s: the system's limit of file watches is used up."
        )
        limited.left = 10
        await until(watch, lambda: watch.state == "live")
        assert watch.reason == ""
        write_meta(tmp_path, 4)
        await heard(watch, 4)


@LINUX
@pytest.mark.case("R55")
async def test_no_watcher_left_at_all_means_polling(tmp_path: Path) -> None:
    def none_left() -> DirectoryWatcher:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    async with watching(tmp_path, poll_s=0.1, open_watcher=none_left) as watch:
        assert watch.state == "polling"
        assert "open files" in watch.reason
        for _ in range(2):
            changes = await watch.changes(SOON_S)
            assert (changes.rescan, changes.whole) == (True, True), "notices are incomplete"


@LINUX
async def test_an_overflow_triggers_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = threading.Event()
    write_meta(tmp_path, 1)
    async with watching(tmp_path, scan_s=3_600, poll_s=0.3) as watch:
        watch.follow([TaskId(task_id(1))])
        await heard(watch, 1)
        gate = watch._watch_set._listeners[TaskId(task_id(1))]
        monkeypatch.setattr(gate, "on_change", lambda name: blocked.wait(200))
        write_meta(tmp_path, 1)
        limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        # Two events each, twice the limit: a thread that wakes late takes thousands in one read,
        # before it meets the record's and is blocked.
        for number in range(limit):
            place = tmp_path / f"x{number % 2}"
            place.touch()
            place.unlink()
        blocked.set()
        await until(watch, lambda: bool(watch.reasons("polling")))
        assert "dropped" in watch.reasons("polling")[0]
        await back_to_live(watch)


async def test_what_watchdog_complains_of_in_its_log_counts_as_lost(tmp_path: Path) -> None:
    async with watching(tmp_path, scan_s=3_600, poll_s=0.3, open_watcher=ObserverWatcher) as watch:
        logging.getLogger("watchdog.observers").warning("buffer overflow")
        await until(watch, lambda: bool(watch.reasons("polling")))
        await back_to_live(watch)


async def test_a_root_that_goes_and_comes_back_is_watched_again(
    tmp_path: Path, open_watcher: Callable[[], DirectoryWatcher]
) -> None:
    root = tmp_path / "tasks"
    root.mkdir()
    async with watching(root, open_watcher=open_watcher) as watch:
        root.rmdir()
        await until(watch, lambda: watch.state == "gone")
        assert watch.reason == f"{root}: the ledger folder is gone"
        root.mkdir()
        await until(watch, lambda: watch.state == "live")
        write_meta(root, 7)
        await heard(watch, 7)


async def test_a_recreated_root_is_watched_again(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    root.mkdir()
    async with watching(root, scan_s=60) as watch:
        root.rmdir()
        root.mkdir()
        async with asyncio.timeout(SOON_S):
            number = 0
            while not (await watch.changes(0.1)).ids:
                number += 1
                write_meta(root, number)


async def test_a_root_replaced_by_another_folder_is_watched_again(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    root.mkdir()
    async with watching(root, scan_s=0.2) as watch:
        root.rename(tmp_path / "old")
        write_meta(root, 1)
        async with asyncio.timeout(SOON_S):
            number = 1
            while not (await watch.changes(0.1)).ids:
                number += 1
                write_meta(root, number)


@pytest.mark.case("R51")
async def test_a_root_that_is_missing_or_a_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    place = tmp_path / "tasks"
    async with watching(place) as watch:
        assert (watch.state, watch.reason) == ("gone", f"{place}: the ledger folder is gone")
    place.write_text("")
    async with watching(place) as watch:
        assert (watch.state, watch.reason) == ("gone", f"{place}: this is a file, not a folder")


async def test_stopping_leaves_no_thread_and_no_open_file(
    tmp_path: Path, open_watcher: Callable[[], DirectoryWatcher]
) -> None:
    async with watching(tmp_path, open_watcher=open_watcher):
        pass  # the loop's worker threads exist from here on
    gc.collect()  # what other tests left open must not be closed in between
    before = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    async with watching(tmp_path, open_watcher=open_watcher):
        assert set(threading.enumerate()) - before[0]
    after = {thread for thread in threading.enumerate() if "asyncio" not in thread.name}
    assert after <= before[0]
    assert len(os.listdir("/proc/self/fd")) == before[1]


async def test_a_stop_while_the_disk_is_slow_leaves_no_task_behind(tmp_path: Path) -> None:
    held, go = threading.Event(), threading.Event()

    def slow(_: Path) -> str:
        if armed:
            held.set()
            go.wait(SOON_S)
        return ""

    armed = False
    async with watching(tmp_path, scan_s=0.05, notice_check=slow) as watch:
        armed = True
        tmp_path.rename(tmp_path.with_name("away"))
        tmp_path.mkdir()  # a root made again is judged again
        assert await asyncio.to_thread(held.wait, SOON_S)
        stopping = asyncio.create_task(watch.stop())
        async with asyncio.timeout(SOON_S):
            while watch._maintainer is not None:
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        try:
            running = asyncio.all_tasks() - {asyncio.current_task(), stopping}
            assert {task.get_name() for task in running} <= {"watch maintenance"}
        finally:
            go.set()
        await stopping
