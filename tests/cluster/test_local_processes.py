"""The processes of an embedded cluster: how they start, fail to, and are started again."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from engine.cluster import cluster_connection
from engine.cluster.cluster_address import LocalClusterFailed
from tests.support.engines import until

# In the place of `octask`: it notes each start, and answers as the file of its role tells.
PROGRAM = """
import json, pathlib, sys, time
folder, role = pathlib.Path(sys.argv[1]), sys.argv[-1]
sys.stdin.readline()
number = 1
while True:  # each of those that start at the same time has a number of its own
    try:
        (folder / f"{role}-{number}").touch(exist_ok=False)
        break
    except FileExistsError:
        number += 1
plan = folder / f"{role}.plan"
steps = plan.read_text().split() if plan.exists() else []
step = steps[number - 1] if number <= len(steps) else "live"
while step == "wait" and not (folder / "go").exists():
    time.sleep(0.01)
if step == "fail":
    sys.exit(1)
print(json.dumps({"address": "tls://127.0.0.1:1"}), flush=True)
if step != "die":
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    monkeypatch.setattr(cluster_connection, "program_command", lambda: command)
    monkeypatch.setattr(cluster_connection, "FIRST_PAUSE_S", 0.01)


async def tell(_: str, **__: object) -> None:
    pass


def started(folder: Path, role: str = "worker") -> int:
    return len(list(folder.glob(f"{role}-*")))


def left(folder: Path) -> list[psutil.Process]:
    """The processes of this test that still run."""
    found = []
    for process in psutil.Process().children():
        try:
            if str(folder) in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


async def test_processes_that_start_leave_the_threads_of_other_work_alone(tmp_path: Path) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    (tmp_path / "worker.plan").write_text("wait " * 4)

    async def runs() -> None:
        async with cluster_connection.local_cluster(4, 1, None, tell):
            pass

    running = asyncio.create_task(runs())
    await until(lambda: started(tmp_path) == 4)
    await asyncio.to_thread((tmp_path / "go").touch)  # as a write of the ledger
    await running
    assert not left(tmp_path)


async def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "worker.plan").write_text("wait " * 4)

    async def runs() -> None:
        async with cluster_connection.local_cluster(4, 1, None, tell):
            pass

    running = asyncio.create_task(runs())
    await until(lambda: started(tmp_path))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not left(tmp_path)


async def test_a_process_is_started_again_until_it_runs(tmp_path: Path) -> None:
    (tmp_path / "worker.plan").write_text("die fail fail live")
    told = []

    async def note(text: str, **_: object) -> None:
        told.append(text)

    async with cluster_connection.local_cluster(1, 1, None, note):
        await until(lambda: started(tmp_path) == 4)
        assert len(left(tmp_path)) == 2
    assert told == [
        "The process local-1 of the local cluster has died; it is started again",
        "The local cluster does not start: its process local-1 ended at once.",
    ]
    assert not left(tmp_path)


async def test_news_that_cannot_be_written_do_not_prevent_a_start(tmp_path: Path) -> None:
    (tmp_path / "worker.plan").write_text("die live")

    async def full(_: str, **__: object) -> None:
        raise OSError(28, "No space left on device")

    async with cluster_connection.local_cluster(1, 1, None, full):
        await until(lambda: started(tmp_path) == 2)


async def test_a_program_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_connection, "program_command", lambda: ["/nowhere/octask"])
    with pytest.raises(LocalClusterFailed, match="its process scheduler cannot be started"):
        async with cluster_connection.local_cluster(1, 1, None, tell):
            pass
