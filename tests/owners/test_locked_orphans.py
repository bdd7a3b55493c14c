"""Orphans locked by another program delay nothing, and are ended once they are free."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from engine.ledger import lock, reaper
from engine.model.records import TaskRecord, TaskView
from engine.service.engine import Engine
from engine.text import words
from tests.owners.unreaped import opened_unreaped, status
from tests.support.engines import WAIT_S, until
from tests.support.octask import Octask
from tests.support.task_folders import task_id, write_meta

AGES = (3_600.0, 0.0, -7_200.0, -31_536_000.0)  # -1 h, now, +2 h, +1 year
CRAWL = {"url": "http://site.invalid/", "engine": "static", "max_pages": 1}
NO_PROCESS = 0


@pytest.fixture
def soon_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that does not move for a second is dead: the rig measures the real time."""
    monkeypatch.setattr(lock, "UNMOVED_S", 1.0)
    monkeypatch.setattr(lock, "GAP_S", 0.2)  # one pause of this process proves no death


def orphan(root: Path, number: int, status: str = "RUNNING") -> Path:
    write_meta(root, number, status, pid=NO_PROCESS)
    return root / task_id(number)


def locked(folder: Path, age_s: float, *, own: bool = False) -> Path:
    """A lock as a killed program leaves it; `own` is one that ours wrote down as its own."""
    place = folder / ".lock.lock"
    (folder / ".lock").write_bytes(b"{}")
    place.mkdir()
    then = round(time.time() - age_s, 3)
    os.utime(place, (then, then))
    if own:
        facts = place.stat()
        (folder / "lock").write_text(json.dumps({"dir": [facts.st_ino, facts.st_mtime_ns]}))
    return place


@contextmanager
def moving(place: Path) -> Iterator[None]:
    """A living peer, which touches its lock again and again."""
    ended = threading.Event()

    def beat() -> None:
        number = 0
        while not ended.wait(0.05):
            number += 1
            os.utime(place, (number, number))

    peer = threading.Thread(target=beat)
    peer.start()
    try:
        yield
    finally:
        ended.set()
        peer.join()


async def first_views(engine: Engine, count: int) -> dict[str, TaskView]:
    found: dict[str, TaskView] = {}
    async with aclosing(engine.tasks.changes()) as batches:
        async for batch in batches:
            found |= {view.task_id: view for view in batch.views}
            if len(found) >= count:
                break
    return found


async def test_locks_do_not_delay_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "tasks"
    for number in range(12):
        locked(orphan(root, number), AGES[number % 4], own=number >= 8)
    monkeypatch.setattr(lock, "UNMOVED_S", 3_600)
    monkeypatch.setattr(reaper, "PATIENCE_S", 1_000.0)  # for one lock would be too much
    async with opened_unreaped(tmp_path) as engine:
        views = await first_views(engine, 12)
        for number in range(8):
            view = views[task_id(number)]
            assert view.locked
            assert "another program holds its lock" in words.why(view, 0)
        async with asyncio.timeout(WAIT_S):
            record = await engine.requests.start("crawl", CRAWL)
        assert [status(root, number) for number in range(12)] == ["RUNNING"] * 8 + ["FAILED"] * 4
        monkeypatch.setattr(lock, "UNMOVED_S", 0.5)
        await until(lambda: all(status(root, number) == "FAILED" for number in range(12)))
        await until(lambda: engine.commands.unreaped == ())
        assert record.status == "PENDING"


async def test_a_locked_orphan_is_reaped_when_free(tmp_path: Path, soon_dead: None) -> None:
    root = tmp_path / "tasks"
    place = locked(orphan(root, 1), 0)
    dead = locked(orphan(root, 2), 0)
    async with opened_unreaped(tmp_path, list_first=False) as engine:
        with moving(place):
            await until(lambda: status(root, 2) == "FAILED")
            assert place.is_dir()
            await until(lambda: not dead.exists())  # after its record
            await until(lambda: len(engine.commands.unreaped) == 1)
            assert engine.commands.unreaped[0].code == "task_busy"
        place.rmdir()
        await until(lambda: status(root, 1) == "FAILED")


async def test_new_orphans_are_reaped_at_once(tmp_path: Path, soon_dead: None) -> None:
    root = tmp_path / "tasks"
    write_meta(root, 1, "COMPLETED")
    async with opened_unreaped(tmp_path) as engine, aclosing(engine.tasks.changes()) as batches:
        async for batch in batches:
            if batch.complete and not (root / task_id(2)).exists():
                locked(orphan(root, 2), 0)
            found = [view.entry for view in batch.views if view.task_id == task_id(2)]
            if found and isinstance(found[0], TaskRecord) and found[0].status == "FAILED":
                break


@pytest.mark.thorough
def test_a_list_says_who_is_busy_and_reap_waits_for_all_of_them_at_once(home: Path) -> None:
    root = home / "tasks"
    for number in range(4):
        locked(orphan(root, number), AGES[number])
    octask = Octask(home)
    assert octask("list").count("busy, held by another program") == 4
    assert [one["view"]["locked"] for one in json.loads(octask("list", "--json"))["tasks"]] == (
        [True] * 4
    )
    assert len(octask("reap").splitlines()) == 4
    assert "busy" not in octask("list")
