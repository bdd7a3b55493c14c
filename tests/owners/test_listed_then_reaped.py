"""A window lists a large ledger before it reaps, with the same result."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reader import LedgerReader
from engine.ledger.reaper import Reaper
from engine.ledger.snapshot import LedgerSnapshot
from engine.ledger.watch import Watch
from engine.model.config import Settings
from engine.model.records import TaskId, TaskRecord
from engine.service import maintenance
from engine.service.engine import Engine
from engine.service.feed import Feed
from tests.owners.unreaped import opened_unreaped, status
from tests.support.engines import until
from tests.support.task_folders import task_id, write_meta
from tests.watch.readers import first_load

NO_PROCESS = 0  # a pid that nobody can have: its owner is proved dead
STATES = ("COMPLETED", "FAILED", "CANCELLED", "PENDING", "RUNNING", "SOMETHING")
CRAWL = {"url": "http://site.invalid/", "engine": "static", "max_pages": 1}


@pytest.fixture(autouse=True)
def one_is_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "FEW", 0)


async def listed(engine: Engine, number: int, wanted: str) -> None:
    """Follow the list until it shows this task so."""
    async with asyncio.timeout(60), aclosing(engine.tasks.changes()) as batches:
        async for batch in batches:
            for view in batch.views:
                entry = view.entry
                found = entry.status if isinstance(entry, TaskRecord) else ""
                if (view.task_id, found) == (task_id(number), wanted):
                    return


async def test_an_orphan_stands_until_the_list_is_read_and_is_ended_then(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    write_meta(root, 1, "RUNNING", pid=NO_PROCESS)
    write_meta(root, 2, "COMPLETED")
    async with opened_unreaped(tmp_path) as engine:
        assert status(root, 1) == "RUNNING"
        await listed(engine, 1, "FAILED")
        assert status(root, 1) == "FAILED"
        assert status(root, 2) == "COMPLETED"


@pytest.mark.parametrize(
    ("kind", "asked"), [("crawl", CRAWL), ("browser_task", {"objective": "look around"})]
)
async def test_reaping_precedes_starts(tmp_path: Path, kind: str, asked: dict[str, object]) -> None:
    root = tmp_path / "tasks"
    write_meta(root, 1, "RUNNING", pid=NO_PROCESS)
    async with opened_unreaped(tmp_path) as engine:
        assert status(root, 1) == "RUNNING"
        record = await engine.requests.start(kind, asked)
        died = LedgerReader(root).read(task_id(1))
        assert isinstance(died, TaskRecord)
        assert died.status == "FAILED"
        assert (died.ended_at or 0) <= record.created_at


async def test_without_a_list_and_without_a_task_it_is_reaped_in_its_time(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    write_meta(root, 1, "PENDING", pid=NO_PROCESS)
    async with opened_unreaped(tmp_path, reap_s=0.05):
        await until(lambda: status(root, 1) == "FAILED")


async def test_small_ledgers_reap_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "FEW", 2)
    write_meta(tmp_path / "tasks", 1, "RUNNING", pid=NO_PROCESS)
    write_meta(tmp_path / "tasks", 2, "COMPLETED")
    async with opened_unreaped(tmp_path) as engine:
        assert [one.task_id for one in engine.reaped] == [task_id(1)]


async def test_an_engine_that_is_not_a_windows_has_reaped_once_it_is_open(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    write_meta(root, 1, "RUNNING", pid=NO_PROCESS)
    engine = Engine(Settings.at(home=tmp_path), accepts=True)
    await engine.open()
    try:
        assert status(root, 1) == "FAILED"
        assert [one.task_id for one in engine.reaped] == [task_id(1)]
    finally:
        await engine.close()


def read_by_a_list(root: Path, large: bool) -> Feed:
    """A feed that has read all there is, in one of the two ways."""
    feed = Feed(LedgerReader(root), Watch(root), ours=lambda _: False)
    snapshot: LedgerSnapshot = feed._snapshot
    if large:
        first_load(snapshot)
    else:
        snapshot.load(snapshot.survey()[0])
    return feed


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(STATES), st.booleans()), max_size=5), st.booleans())
def test_listing_does_not_change_reaping(tasks: list[tuple[str, bool]], large: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        ways = [Path(place) / "one", Path(place) / "two"]
        ways[0].mkdir()
        for number, (state, lives) in enumerate(tasks):
            write_meta(ways[0], number, state, pid=os.getpid() if lives else NO_PROCESS)
        write_meta(ways[0], 98, "RUNNING", pid=NO_PROCESS)
        (ways[0] / task_id(99)).mkdir()
        (ways[0] / task_id(99) / "meta.json").write_text('{"status": "COMPLETED", ')
        shutil.copytree(ways[0], ways[1])
        found: list[set[str]] = []
        for root in ways:
            lease = Lease.acquire(root)
            reaper = Reaper(Ledger(root, lease=lease))
            if root is ways[1]:
                reaper.skip(read_by_a_list(root, large).ended())
            found.append({record.task_id for record in reaper.reap()})
            lease.release()
        assert found[0] == found[1]
        assert task_id(98) in found[1]


@pytest.mark.parametrize("large", [False, True])
def test_only_what_has_ended_for_good_is_passed_over(tmp_path: Path, large: bool) -> None:
    for number, state in enumerate(STATES):
        write_meta(tmp_path, number, state)
    (tmp_path / task_id(9)).mkdir()
    (tmp_path / task_id(9) / "meta.json").write_text("[]")
    ended = set(read_by_a_list(tmp_path, large).ended())
    assert ended == {task_id(0), task_id(1), task_id(2)}


def test_reaping_uses_the_current_state_of_a_task(tmp_path: Path) -> None:
    write_meta(tmp_path, 1, "RUNNING", pid=NO_PROCESS)
    write_meta(tmp_path, 2, "COMPLETED")
    feed = read_by_a_list(tmp_path, large=False)
    write_meta(tmp_path, 1, "COMPLETED", pid=NO_PROCESS)  # its owner had ended it after all
    write_meta(tmp_path, 3, "RUNNING", pid=NO_PROCESS)  # came in the meantime
    lease = Lease.acquire(tmp_path)
    reaper = Reaper(Ledger(tmp_path, lease=lease))
    reaper.skip(feed.ended())
    assert [record.task_id for record in reaper.reap()] == [task_id(3)]
    assert status(tmp_path, 1) == "COMPLETED"
    lease.release()


def test_what_is_passed_over_is_not_read_again(tmp_path: Path) -> None:
    write_meta(tmp_path, 1, "RUNNING", pid=NO_PROCESS)
    lease = Lease.acquire(tmp_path)
    reaper = Reaper(Ledger(tmp_path, lease=lease))
    reaper.skip([TaskId(task_id(1))])
    assert reaper.reap() == []
    lease.release()
