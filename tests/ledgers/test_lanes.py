"""A disk that does not answer delays only the calls for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from pathlib import Path

import pytest

from engine.service.router import connection, ledger_paths
from engine.service.router.isolated_executor import THREADS, Lane, Lanes
from engine.service.router.ledger_paths import Beside
from tests.ledgers.world import furnished, reading, side_by_side, until
from tests.support.task_folders import task_id, write_meta


def _thread() -> str:
    return threading.current_thread().name


async def _names() -> AsyncGenerator[str, None]:
    for _ in range(2):
        yield await asyncio.to_thread(_thread)


@pytest.fixture
def lane() -> Iterator[Lane]:
    lane = Lane("slow")
    yield lane
    lane.close()


async def test_what_is_done_in_a_lane_has_threads_of_its_own(lane: Lane) -> None:
    asyncio.get_running_loop().set_default_executor(Lanes(1, thread_name_prefix="all"))
    assert (await asyncio.to_thread(_thread)).startswith("all")
    assert (await lane.run(asyncio.to_thread(_thread))).startswith("oc-slow")
    found = [name async for name in lane.each(_names())]
    assert len(found) == 2
    assert all(name.startswith("oc-slow") for name in found)
    assert (await asyncio.to_thread(_thread)).startswith("all")


async def test_a_lane_that_hangs_or_is_closed_leaves_the_others_alone(lane: Lane) -> None:
    asyncio.get_running_loop().set_default_executor(Lanes(1, thread_name_prefix="all"))
    dead = threading.Event()
    hanging = [asyncio.create_task(lane.run(asyncio.to_thread(dead.wait))) for _ in range(9)]
    try:
        await asyncio.sleep(0)
        assert (await asyncio.to_thread(_thread)).startswith("all")
        lane.close()
        assert (await lane.run(asyncio.to_thread(_thread))).startswith("all")
    finally:
        dead.set()
        await asyncio.wait(hanging)


async def test_a_lane_returns_results_and_uses_three_threads(lane: Lane) -> None:
    asyncio.get_running_loop().set_default_executor(Lanes(1))

    def work(number: int) -> tuple[int, int]:
        return number, threading.get_ident()

    found = await asyncio.gather(*(lane.run(asyncio.to_thread(work, n)) for n in range(200)))
    assert [number for number, _ in found] == list(range(200))
    assert 1 <= len({thread for _, thread in found}) <= THREADS
    with pytest.raises(ZeroDivisionError):
        await lane.run(asyncio.to_thread(lambda: 1 // 0))


def test_what_hangs_in_a_lane_keeps_no_program_from_ending() -> None:
    script = """
import asyncio, threading
from contextlib import suppress
from engine.service.router.isolated_executor import THREADS, Lane, Lanes
async def main():
    asyncio.get_running_loop().set_default_executor(Lanes(1))
    lane, begun = Lane("dead"), threading.Event()
    def hang():
        begun.set()
        threading.Event().wait()
    work = asyncio.ensure_future(lane.run(asyncio.to_thread(hang)))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work
    lane.close()
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", script], timeout=90, check=False)
    assert ended.returncode == 0


async def test_on_any_other_loop_a_lane_changes_nothing(lane: Lane) -> None:
    assert (await lane.run(asyncio.to_thread(_thread))).startswith("asyncio")


async def test_a_dead_disk_blocks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.get_running_loop().set_default_executor(Lanes(2))
    own, nas = await furnished(tmp_path / "own"), await furnished(tmp_path / "nas")
    dead, asked = threading.Event(), threading.Event()

    def look(root: Path, others: Iterable[Path]) -> None:
        if root.name == "dead":
            asked.set()
            dead.wait(120)
        ledger_paths.check_apart(root, others)

    monkeypatch.setattr(connection, "check_apart", look)
    async with side_by_side(own.top, Beside(nas.root, "nas")) as engine:
        try:
            for number in range(4):
                engine.ledgers.add(Beside(tmp_path / f"{number}" / "dead", f"dead-{number}"))
            await until(asked.is_set)
            async with reading(engine) as reader:
                await reader.until(lambda: len(reader.views) == 8)
                write_meta(own.root, 7)
                write_meta(nas.root, 7)
                await reader.until(lambda: reader.status(task_id(7), "nas") == "RUNNING")
                await reader.until(lambda: reader.status(task_id(7)) == "RUNNING")
            assert {one.state for one in engine.ledgers.states if "dead" in one.label} == {
                "opening"
            }
            began = time.monotonic()
            engine.ledgers.remove("dead-0")
            assert len(engine.ledgers.states) == 4
            assert time.monotonic() - began < 40
        finally:
            dead.set()
