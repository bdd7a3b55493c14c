"""A hold on new starts: waiting tasks stay, in every program; running ones go on."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.budgets import lasted_ms, runs_out_at
from engine.ledger.hold import NAME, hold_starts, read_hold, release_starts
from engine.ledger.reader import LedgerReader
from engine.model.errors import LedgerWriteFailed
from engine.model.records import Hold, Status, TaskRecord
from engine.service.engine import Engine, NotWaiting
from tests.support.engines import opened, until
from tests.support.octask import FAST, Octask
from tests.support.processes import ENGINE, heard, started

CRAWL: dict[str, Any] = {"engine": "static", "delay_ms": 0, "max_pages": 2}
OTHER = (
    ENGINE
    + """
async def work(engine):
    args = {"url": sys.argv[2], "engine": "static", "delay_ms": 0, "max_pages": 2}
    record = await engine.requests.start("crawl", args)
    say(task_id=record.task_id)
    await engine.tasks.join(record.task_id)
asyncio.run(with_engine(work))
"""
)


def state(home: Path, task_id: str) -> str:
    record = LedgerReader(home / "tasks").read(task_id)
    assert isinstance(record, TaskRecord)
    return record.status


async def start(engine: Engine, site: Any) -> str:
    return (await engine.requests.start("crawl", {"url": site.url, **CRAWL})).task_id


async def holds(engine: Engine, task_id: str) -> None:
    """Wait until the queue has looked at the hold with this task in it."""
    executor = engine.own.executor
    assert executor is not None
    await until(lambda: executor.starts.held and executor.waits(task_id))


async def test_a_task_waits_under_a_hold_and_starts_after_it(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        await engine.start_hold.hold("maintenance")
        task_id = await start(engine, site)
        await holds(engine, task_id)
        assert state(home, task_id) == Status.PENDING
        assert engine.health().hold == await engine.start_hold.read()
        await engine.start_hold.release()
        await engine.tasks.join(task_id)
        assert state(home, task_id) == Status.COMPLETED


async def test_a_running_task_goes_on_under_a_hold(home: Path, site: Any) -> None:
    async with opened(home, slots=2) as engine:
        args = {"url": site.url, **CRAWL, "max_pages": 8, "delay_ms": 100}
        running = (await engine.requests.start("crawl", args)).task_id
        await until(lambda: state(home, running) == Status.RUNNING)
        await engine.start_hold.hold()
        waiting = await start(engine, site)
        await engine.tasks.join(running)
        assert state(home, running) == Status.COMPLETED
        assert state(home, waiting) == Status.PENDING
        await engine.commands.cancel(waiting)


async def test_one_task_starts_anyway_and_the_others_wait(home: Path, site: Any) -> None:
    async with opened(home, slots=1) as engine:
        await engine.start_hold.hold()
        first, second = await start(engine, site), await start(engine, site)
        await engine.start_hold.start_anyway(second)
        await engine.tasks.join(second)
        assert state(home, second) == Status.COMPLETED
        assert state(home, first) == Status.PENDING
        with pytest.raises(NotWaiting):
            await engine.start_hold.start_anyway(second)
        await engine.start_hold.release()
        await engine.tasks.join(first)
        assert state(home, first) == Status.COMPLETED


async def test_waiting_tasks_start_in_the_order_of_their_acceptance(home: Path, site: Any) -> None:
    async with opened(home, slots=1) as engine:
        await engine.start_hold.hold()
        ids = [await start(engine, site) for _ in range(3)]
        await engine.start_hold.release()
        for task_id in ids:
            await engine.tasks.join(task_id)
        records = [LedgerReader(home / "tasks").read(task_id) for task_id in ids]
        begun = [one.started_at for one in records if isinstance(one, TaskRecord)]
        assert None not in begun
        assert begun == sorted(begun)  # type: ignore[type-var]


async def test_a_waiting_task_can_be_cancelled_under_a_hold(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        await engine.start_hold.hold()
        task_id = await start(engine, site)
        await holds(engine, task_id)
        await engine.commands.cancel(task_id)
        await engine.tasks.join(task_id)
        assert state(home, task_id) == Status.CANCELLED


async def test_a_hold_of_one_program_holds_the_tasks_of_another(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        await engine.start_hold.hold()
        other = started(OTHER, home, site.url)
        try:
            task_id = (await asyncio.to_thread(heard, other))["task_id"]
            mine = await start(engine, site)
            await holds(engine, mine)
            assert state(home, task_id) == Status.PENDING
            await engine.start_hold.start_anyway(task_id)
            await asyncio.to_thread(other.communicate, timeout=150)
        finally:
            other.kill()
            other.communicate()
        assert state(home, task_id) == Status.COMPLETED
        assert state(home, mine) == Status.PENDING
        await engine.commands.cancel(mine)


async def test_a_program_follows_the_hold_of_another(home: Path, octask: Octask) -> None:
    async with opened(home) as engine:
        await asyncio.to_thread(octask, "hold", "--reason", "the site is being moved")
        await until(lambda: engine.health().hold is not None)
        hold = engine.health().hold
        assert hold is not None
        assert hold.reason == "the site is being moved"
        assert hold.by.endswith("(octask)")
        await asyncio.to_thread(octask, "release")
        await until(lambda: engine.health().hold is None)


async def test_a_hold_outlives_the_program_that_made_it(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        made = await engine.start_hold.hold()
    async with opened(home) as engine:
        task_id = await start(engine, site)
        await holds(engine, task_id)
        assert engine.health().hold == made
        assert [view.task_id for view in await engine.tasks.list()] == [task_id]
        await engine.commands.cancel(task_id)


async def test_a_hold_does_not_end_while_the_ledger_is_away(home: Path, site: Any) -> None:
    root, away = home / "tasks", home / "away"
    async with opened(home) as engine:
        await engine.start_hold.hold()
        task_id = await start(engine, site)
        await holds(engine, task_id)
        executor = engine.own.executor
        assert executor is not None
        for mount_point in (False, True):
            root.rename(away)
            if mount_point:
                root.mkdir()
            for _ in range(3):
                executor.starts.look()
                await executor.starts.looked()
            assert executor.waits(task_id)
            if mount_point:
                for left in root.iterdir():  # the lease that the engine made anew
                    assert left.name == ".runners"
                root.rename(home / "mount point")
            away.rename(root)
        await engine.start_hold.release()
        await engine.tasks.join(task_id)
        assert state(home, task_id) == Status.COMPLETED


async def test_a_program_may_close_its_own_queue_alone(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        engine.start_hold.close_to_starts(True)
        task_id = await start(engine, site)
        executor = engine.own.executor
        assert executor is not None
        await executor.starts.looked()
        assert executor.waits(task_id)
        assert read_hold(home / "tasks") is None
        assert engine.health().ends_after_running
        engine.start_hold.close_to_starts(False)
        await engine.tasks.join(task_id)
        assert state(home, task_id) == Status.COMPLETED


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"since": "soon"}', b"\xff" * 9])
def test_a_hold_file_that_cannot_be_read_holds(home: Path, content: bytes) -> None:
    root = home / "tasks"
    root.mkdir()
    (root / NAME).write_bytes(content)
    assert read_hold(root) == Hold()
    assert release_starts(root) == Hold()
    assert read_hold(root) is None


def test_a_release_that_fails_says_so(home: Path) -> None:
    root = home / "tasks"
    (root / NAME / "inside").mkdir(parents=True)  # a folder in the place of the file
    assert read_hold(root) == Hold()
    with pytest.raises(LedgerWriteFailed):
        release_starts(root)
    assert read_hold(root) == Hold()


def test_the_first_of_two_holds_stays(home: Path) -> None:
    first = hold_starts(home / "tasks", "anna", 1, reason="password=geheim123")
    assert hold_starts(home / "tasks", "otto", 2) == first
    assert "geheim123" not in (home / "tasks" / NAME).read_text()
    assert [path.name for path in (home / "tasks").glob("*.tmp")] == []


def test_time_does_not_run_for_a_task_that_waits() -> None:
    waiting = {"kind": "crawl", "status": "PENDING", "created_at": 1_000}
    waiting["policy"] = {"maxWallMs": 500}
    assert lasted_ms(waiting, 60_000) == 0
    assert runs_out_at(waiting) is None
    running = {**waiting, "status": "RUNNING", "started_at": 59_000}
    assert lasted_ms(running, 60_000) == 1_000
    assert runs_out_at(running) == 59_501


async def test_a_time_budget_counts_from_the_start_and_not_from_the_hold(
    home: Path, site: Any
) -> None:
    from engine.service.admission import Terms

    terms = Terms(policy={"maxWallMs": 1_800_000}, enforce=True)
    async with opened(home) as engine:
        await engine.start_hold.hold()
        args = {"url": site.url, **CRAWL}
        record = await engine.requests.start("crawl", args, terms=terms)
        await holds(engine, record.task_id)
        path = home / "tasks" / record.task_id / "meta.json"
        meta = json.loads(path.read_bytes())
        meta["created_at"] -= 3_600_000  # it has waited for an hour
        path.write_text(json.dumps(meta))
        await engine.start_hold.release()
        await engine.tasks.join(record.task_id)
        assert state(home, record.task_id) == Status.COMPLETED


@pytest.fixture
def held(octask: Octask) -> Iterator[Octask]:
    octask("hold", "--reason", "lunch")
    yield octask
    octask("release")


def test_octask_says_that_a_start_waits_and_then_goes_on(held: Octask, site: Any) -> None:
    running = held.start("start", "crawl", site.url, *FAST, "--max-pages", "2")
    assert running.stderr is not None
    said = ""
    while "octask release" not in said:
        said = running.stderr.readline()
        assert said, "it ended without a word about the hold"
    assert "New starts are held since" in said
    assert ": lunch." in said
    assert held.tasks()[0]["status"] == "PENDING"
    held("release")
    out, err = running.communicate(timeout=150)
    assert "no longer held" in err
    assert "COMPLETED" in out


def test_octask_says_that_a_detached_start_is_queued(held: Octask, site: Any) -> None:
    said = held("start", "crawl", site.url, *FAST, "--max-pages", "2", "--detach")
    assert "It is queued" in said
    task = held.tasks()[0]
    assert task["status"] == "PENDING"
    assert task["task_id"] in held("release", task["task_id"][:8])
    held("wait", task["task_id"])
    assert json.loads(held("list", "--json"))["hold"]["reason"] == "lunch"
    assert "does not wait" in held("release", task["task_id"], code=1)


def test_rows_of_a_list_are_alone_in_a_pipe_and_the_hold_is_told_beside_them(held: Octask) -> None:
    environment = held.environment()
    command = held.command("list", "--home", str(held.home))
    piped = subprocess.run(command, capture_output=True, env=environment, check=True, text=True)
    assert piped.stdout == ""
    assert "New starts are held since" in piped.stderr
    typed = subprocess.run(
        ["script", "-qec", " ".join(command), "/dev/null"],
        capture_output=True,
        env=environment,
        check=True,
        text=True,
    )
    assert "New starts are held since" in typed.stdout


def test_watch_in_a_pipe_tells_the_hold_and_its_end_beside_its_rows(octask: Octask) -> None:
    octask("start", "browser_task", "--objective", "wait")
    watch = octask.start("watch")
    assert watch.stdout is not None
    assert watch.stderr is not None
    assert "browser_task" in watch.stdout.readline()
    octask("hold", "--reason", "lunch")
    told = watch.stderr.readline()
    assert told.startswith("New starts are held since ")
    assert told.endswith(": lunch.\n")
    octask("release")
    assert watch.stderr.readline() == "New starts are no longer held.\n"
    watch.send_signal(signal.SIGINT)
    assert watch.communicate(timeout=150) == ("", "")
