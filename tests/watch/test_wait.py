"""`wait_terminal` reports a task's end and every other result of waiting."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from pathlib import Path

import pytest

from engine.ledger import wait
from engine.ledger.directory_watcher import DirectoryWatcher
from engine.ledger.ledger import Ledger
from engine.ledger.reader import LedgerReader
from engine.ledger.wait import wait_terminal
from engine.model.errors import NotATaskId, TaskNotFound, TaskRemoved, TaskUnreadable, WaitTimeout
from engine.model.records import TaskRecord, Unreadable
from tests.support.engines import until
from tests.support.task_folders import elsewhere, task_id, write_meta

ENDS = """
root = Path(sys.argv[1])
for line in sys.stdin:
    for count in range(5):
        write_meta(root, 1, at=count)
    write_meta(root, 1, line.strip())
"""


def deaf() -> DirectoryWatcher:
    raise OSError("no watcher is left")


@pytest.mark.case("R57")
@pytest.mark.parametrize("hears", [True, False])
async def test_the_end_made_by_another_process_is_told_by_ear_and_by_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hears: bool
) -> None:
    """How soon (200 ms) is for the bench and its rig to hold."""
    if hears:
        monkeypatch.setattr(wait, "POLL_S", 3_600)
    else:
        monkeypatch.setattr(wait, "open_watcher", deaf)
    ledger = Ledger(tmp_path)
    with elsewhere(ENDS, tmp_path) as child:
        assert child.stdin
        for status in ("COMPLETED", "FAILED", "CANCELLED"):
            write_meta(tmp_path, 1, "RUNNING")
            waiting = asyncio.create_task(wait_terminal(ledger, task_id(1), 90_000))
            await asyncio.sleep(0)
            child.stdin.write(f"{status}\n")
            child.stdin.flush()
            assert (await waiting).status == status
        child.stdin.close()


async def test_a_task_that_has_already_ended_is_told_at_once(tmp_path: Path) -> None:
    write_meta(tmp_path, 1, "FAILED", error={"message": "no"})
    record = await wait_terminal(Ledger(tmp_path), task_id(1), 0)
    assert record.status == "FAILED"


@pytest.mark.case("R58")
async def test_the_limit_is_kept_and_named(tmp_path: Path) -> None:
    write_meta(tmp_path, 1)
    begin = time.monotonic()
    with pytest.raises(WaitTimeout) as late:
        await wait_terminal(Ledger(tmp_path), task_id(1), 300)
    took = time.monotonic() - begin
    assert took >= 0.3
    assert late.value.code == "ETIMEDOUT"
    assert str(late.value) == f"Task {task_id(1)} did not end within 300 ms."


@pytest.mark.case("R58")
async def test_unknown_ids_and_other_shapes_are_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    with pytest.raises(TaskNotFound):
        await wait_terminal(ledger, task_id(1), 1_000)
    with pytest.raises(NotATaskId):
        await wait_terminal(ledger, "../../etc/passwd", 1_000)


@pytest.mark.case("R58")
async def test_a_folder_removed_meanwhile_is_told(tmp_path: Path) -> None:
    folder = write_meta(tmp_path, 1)
    waiting = asyncio.create_task(wait_terminal(Ledger(tmp_path), task_id(1), 90_000, away_s=0.3))
    await _watched()
    folder.rename(folder.with_name(".gone"))  # at once: half of it would be a damaged task
    with pytest.raises(TaskRemoved, match="was removed"):
        await waiting


async def test_a_meta_that_cannot_be_used_ends_the_wait(tmp_path: Path) -> None:
    folder = write_meta(tmp_path, 1)
    waiting = asyncio.create_task(wait_terminal(Ledger(tmp_path), task_id(1), 90_000))
    await _watched()
    (folder / "meta.json").write_text("{")
    with pytest.raises(TaskUnreadable, match="cut short"):
        await waiting


class Torn(LedgerReader):
    """A ledger in which the third look falls into the middle of a writer's work."""

    reads = 0

    def read(self, task_id: str) -> TaskRecord | Unreadable:
        self.reads += 1
        if self.reads != 3:
            return super().read(task_id)
        (self.root / task_id / "meta.json").write_text("")
        entry = super().read(task_id)
        write_meta(self.root, 1, "COMPLETED")
        return entry


async def test_a_meta_that_is_torn_for_a_moment_only_does_not_end_the_wait(tmp_path: Path) -> None:
    write_meta(tmp_path, 1)
    ledger = Torn(tmp_path)
    assert (await wait_terminal(ledger, task_id(1), 90_000)).status == "COMPLETED"
    assert ledger.reads == 4


async def test_many_waits_share_one_lookout_and_all_are_told(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for number in range(200):
        write_meta(tmp_path, number)
    before = threading.active_count()
    waits = [
        asyncio.create_task(wait_terminal(ledger, task_id(number), 90_000)) for number in range(200)
    ]
    await _watched()
    workers = min(32, (os.cpu_count() or 1) + 4)
    assert threading.active_count() <= before + workers + 1
    assert len([one for one in asyncio.all_tasks() if one.get_name() == "wait poller"]) == 1
    for number in range(200):
        write_meta(tmp_path, number, "COMPLETED")
    assert {record.status for record in await asyncio.gather(*waits)} == {"COMPLETED"}


async def test_a_cancelled_wait_leaves_nothing_behind(tmp_path: Path) -> None:
    write_meta(tmp_path, 1)
    ledger = Ledger(tmp_path)

    async def cancelled() -> None:
        waiting = asyncio.create_task(wait_terminal(ledger, task_id(1), 90_000))
        await _watched()
        here = wait._pollers[asyncio.get_running_loop()].values()
        await until(lambda: all(poller._folders._watcher is not None for poller in here))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    await cancelled()  # starts the loop's worker threads
    gc.collect()  # what other tests left open must not be closed in between
    before = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    await cancelled()
    after = {thread for thread in threading.enumerate() if "asyncio" not in thread.name}
    assert after <= before[0]
    assert len(os.listdir("/proc/self/fd")) == before[1]
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert not wait._pollers.get(asyncio.get_running_loop())


async def _watched() -> None:
    """Return when the lookout has had its first look."""
    async with asyncio.timeout(60):
        while True:
            here = wait._pollers.get(asyncio.get_running_loop())
            if here and all(poller._stamps for poller in here.values()):
                return
            await asyncio.sleep(0.01)
