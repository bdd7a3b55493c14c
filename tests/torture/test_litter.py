"""Leftovers of dead processes (temporary files, torn lines, empty folders) are removed."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.contract_service import Goals
from engine.ledger.files import Folder
from engine.ledger.lease import RUNNERS, Lease
from engine.ledger.ledger import Ledger
from engine.ledger.task_files import discard
from engine.model.config import Settings
from engine.model.records import Unreadable
from engine.service.engine import Engine
from engine.service.maintenance import LedgerMaintenance, Tidier
from tests.support.engines import WAIT_S, until

DEAD = "0123456789abcdef"


def temp_files(folder: Path, nonce: str, count: int) -> list[Path]:
    """Temp files as a process with this lease makes them."""
    made = [folder / f".meta.json.{nonce}.{number}.tmp" for number in range(count)]
    for place in made:
        place.write_bytes(b"{")
    return made


def tidied(ledger: Ledger, *shelves: Path, old_s: float = 60.0) -> int:
    return Tidier(ledger.root, shelves).tidy(old_s)


@pytest.mark.case("R18")
def test_old_temporary_files_are_removed(ledger: Ledger, task_id: str, lease: Lease) -> None:
    folder = ledger.root / task_id
    dead = temp_files(folder, DEAD, 150) + temp_files(ledger.root, DEAD, 150)
    living = temp_files(folder, lease.nonce, 1)
    assert [entry.task_id for entry in ledger.list()] == [task_id]
    assert tidied(ledger) == 0  # a minute must pass
    assert all(place.exists() for place in dead)
    assert tidied(ledger, old_s=0) == 300
    assert not any(place.exists() for place in dead)
    assert all(place.exists() for place in living)
    assert not isinstance(ledger.read(task_id), Unreadable)


def left_by_a_death(ledger: Ledger, task_id: str, nonce: str) -> list[Path]:
    """What a killed process with this lease leaves in a task, its artifacts and the root."""
    (ledger.root / RUNNERS / nonce).write_bytes(b"{}")  # no process holds it
    artifacts = ledger.root / task_id / "artifacts"
    artifacts.mkdir(exist_ok=True)
    new = ledger.root / f".new.{nonce}.8.tmp"
    new.mkdir()
    (new / "meta.json").write_bytes(b"{")
    (new / "artifacts").mkdir()  # of an import
    (new / "artifacts" / "page-1.png").write_bytes(b"")
    files = [*temp_files(artifacts.parent, nonce, 2), *temp_files(artifacts, nonce, 1)]
    return [new, *files, ledger.root / RUNNERS / nonce]


def left_behind(places: list[Path]) -> list[Path]:
    return [place for place in places if place.exists()]


@pytest.mark.case("R18")
def test_files_of_a_proved_death_are_removed_at_once_and_others_are_not(
    ledger: Ledger, task_id: str, lease: Lease
) -> None:
    dead, folder = left_by_a_death(ledger, task_id, DEAD), ledger.root / task_id
    others = [*temp_files(folder, lease.nonce, 1), *temp_files(folder, "f" * 16, 1)]
    others += [folder / "meta.json.3724810021", ledger.root / RUNNERS / lease.nonce]
    others[2].write_bytes(b"{")  # a temp file of OpenChrome
    assert Tidier(ledger.root, ()).tidy_after_death() == 4
    assert left_behind(dead) == []
    assert left_behind(others) == others
    assert Tidier(ledger.root, ()).tidy_after_death() == 0  # and no file is looked at
    assert not isinstance(ledger.read(task_id), Unreadable)


@pytest.mark.case("R18")
def test_a_lock_of_a_proved_death_is_freed_at_once(ledger: Ledger, task_id: str) -> None:
    left_by_a_death(ledger, task_id, DEAD)
    place = ledger.root / task_id / ".lock.lock"
    place.mkdir()
    facts = place.stat()
    record = {"dir": [facts.st_ino, facts.st_mtime_ns]}
    (ledger.root / task_id / "lock").write_text(json.dumps(record))
    Tidier(ledger.root, ()).tidy_after_death()
    assert not place.exists()


@pytest.mark.case("R18")
def test_a_round_that_is_stopped_is_repeated_by_the_next_program(
    ledger: Ledger, task_id: str
) -> None:
    dead = left_by_a_death(ledger, task_id, DEAD)
    stopped = Tidier(ledger.root, ())
    stopped.stop()
    assert stopped.tidy_after_death() == 0
    assert left_behind(dead) == dead
    assert Tidier(ledger.root, ()).tidy_after_death() == 4
    assert left_behind(dead) == []


@pytest.mark.case("R18")
def test_a_death_in_a_task_that_was_clean_before_leaves_no_file(
    ledger: Ledger, task_id: str
) -> None:
    artifacts = ledger.root / task_id / "artifacts"
    artifacts.mkdir()
    tidier = Tidier(ledger.root, ())
    tidier.tidy()
    (ledger.root / RUNNERS / DEAD).write_bytes(b"{}")  # no process holds it
    files = temp_files(artifacts, DEAD, 2)  # which changes nothing in the folder of the task
    assert tidier.tidy() == 2
    assert left_behind(files) == []


@pytest.mark.case("R18")
def test_a_folder_that_cannot_be_opened_once_is_tidied_in_the_next_round(
    ledger: Ledger, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts = ledger.root / task_id / "artifacts"
    artifacts.mkdir()
    files, enter = temp_files(artifacts, DEAD, 1), Folder.enter

    def refused(folder: Folder, name: str) -> Folder:
        if name == "artifacts":
            raise OSError(errno.EMFILE, "too many open files")
        return enter(folder, name)

    tidier = Tidier(ledger.root, ())
    monkeypatch.setattr(Folder, "enter", refused)
    assert tidier.tidy(old_s=0) == 0
    monkeypatch.undo()
    assert tidier.tidy(old_s=0) == 1
    assert left_behind(files) == []


@pytest.mark.case("R18")
async def test_an_engine_that_is_opened_again_tidies(
    ledger: Ledger, task_id: str, home: Path
) -> None:
    maintenance = LedgerMaintenance(ledger.root, 3_600)
    await maintenance.open()
    await maintenance.close()
    dead = left_by_a_death(ledger, task_id, DEAD)
    await maintenance.open()
    try:
        await maintenance.tidy_after_death()
        assert left_behind(dead) == []
    finally:
        await maintenance.close()


@pytest.mark.case("R18")
@pytest.mark.parametrize("place", ["artifacts", ""])
def test_a_file_whose_writer_dies_between_two_rounds_is_removed_by_the_second(
    ledger: Ledger, task_id: str, place: str
) -> None:
    folder = ledger.root / task_id / place
    folder.mkdir(exist_ok=True)
    writer = Lease.acquire(ledger.root)
    (file,) = temp_files(folder, writer.nonce, 1)
    tidier = Tidier(ledger.root, ())
    assert tidier.tidy(old_s=0) == 0  # it is alive
    writer.release()
    assert tidier.tidy() == 0  # a minute must pass
    assert tidier.tidy(old_s=0) == 1
    assert not file.exists()


@pytest.mark.case("R18")
@pytest.mark.parametrize("list_first", [False, True])
async def test_a_start_removes_the_files_of_a_killed_program(
    ledger: Ledger, task_id: str, home: Path, list_first: bool
) -> None:
    dead = left_by_a_death(ledger, task_id, DEAD)
    engine = Engine(replace(Settings.at(home=home), reap_s=3_600), accepts=True)
    await engine.open(list_first=list_first)
    try:
        assert list_first or left_behind(dead) == []
        await until(lambda: left_behind(dead) == [])
    finally:
        await engine.close()


@pytest.mark.case("R18")
async def test_a_first_list_and_a_start_do_not_wait_for_the_removal_of_stale_files(
    ledger: Ledger, task_id: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, may_go = left_by_a_death(ledger, task_id, DEAD), threading.Event()
    tidy = Tidier.tidy_after_death

    def held(tidier: Tidier) -> int:
        assert may_go.wait(WAIT_S)
        return tidy(tidier)

    monkeypatch.setattr(Tidier, "tidy_after_death", held)
    engine = Engine(replace(Settings.at(home=home), reap_s=3_600), accepts=True)
    await engine.open(list_first=True)
    try:
        record = await engine.requests.start(
            "crawl", {"url": "http://site.invalid/", "engine": "static", "max_pages": 1}
        )
        assert {view.task_id for view in await engine.tasks.list()} == {task_id, record.task_id}
        assert left_behind(dead) == dead
        may_go.set()
        await until(lambda: left_behind(dead) == [])
    finally:
        may_go.set()
        await engine.close()


@pytest.mark.case("R18")
async def test_a_program_that_closes_ends_its_round(
    ledger: Ledger, task_id: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = left_by_a_death(ledger, task_id, DEAD)
    began, may_go, ended = (threading.Event() for _ in range(3))
    tidy = Tidier.tidy

    def held(folder: Folder, name: str) -> None:
        began.set()
        assert may_go.wait(WAIT_S)
        discard(folder, name)

    def followed(tidier: Tidier) -> int:
        try:
            return tidy(tidier)
        finally:
            ended.set()

    monkeypatch.setattr("engine.service.maintenance.discard", held)
    monkeypatch.setattr(Tidier, "tidy", followed)
    engine = Engine(replace(Settings.at(home=home), reap_s=3_600), accepts=True)
    await engine.open(list_first=True)
    try:
        await until(began.is_set)
    finally:
        await engine.close()
        may_go.set()
    await until(ended.is_set)
    assert len(left_behind(dead)) == len(dead) - 1  # the file that it was removing


@pytest.mark.case("R18")
async def test_an_idle_program_tidies(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.service.maintenance.OLD_S", 0.0)
    engine = Engine(Settings(home=home, root=home / "tasks", reap_s=0.05), accepts=True)
    await engine.open()
    try:
        dead = temp_files(home / "tasks", DEAD, 3)
        async with asyncio.timeout(60):
            while any(place.exists() for place in dead):
                await asyncio.sleep(0.02)
    finally:
        await engine.close()


@pytest.mark.case("R18")
def test_openchromes_temp_files_are_left_alone(ledger: Ledger, task_id: str) -> None:
    theirs = ledger.root / task_id / "meta.json.1234567890"
    theirs.write_bytes(b"{")
    tidied(ledger, old_s=0)
    assert theirs.exists()


@pytest.mark.case("R18")
def test_shelves_are_tidied_too_and_keep_what_is_whole(ledger: Ledger, home: Path) -> None:
    goals = Goals(home, lambda: ledger)
    contract_id = goals.contracts.start(
        {"scope": "batch", "expected_total": 2}
    ).contract.contract_id
    run_id = str(goals.runs.start({"goal": "see all"}).raw["run_id"])
    contracts, runs = goals.folders
    litter = [
        contracts / f".{contract_id}.json.tmp",
        contracts / f"{DEAD}.items.jsonl",
        runs / run_id / ".meta.json.tmp",
    ]
    for place in litter:
        place.write_bytes(b"{")
    (runs / f".new-{DEAD}.tmp").mkdir()
    assert tidied(ledger, *goals.folders) == 0
    assert tidied(ledger, *goals.folders, old_s=0) == 4
    assert not any(place.exists() for place in litter)
    assert goals.contracts.get(contract_id).contract.completed_total == 0
    assert goals.runs.get(run_id).raw["goal"] == "see all"


@pytest.mark.case("R18")
def test_a_temp_file_that_is_put_in_place_meanwhile_keeps_no_other_from_going(
    ledger: Ledger, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = home / "progress-contracts"
    shelf.mkdir(parents=True, exist_ok=True)
    for name in ("a", "b", "c"):
        (shelf / f".{name}.tmp").touch()
    stat = os.stat
    passing: list[str] = []

    def look(path: Any, **options: Any) -> os.stat_result:
        if str(path).endswith(".tmp") and not passing:
            passing.append(path)
            (shelf / os.path.basename(path)).unlink()
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", look)
    assert tidied(ledger, shelf, old_s=-1) == 2
    assert not list(shelf.glob(".*.tmp"))


@pytest.mark.case("R05")
def test_a_torn_line_is_ended_by_the_next(ledger: Ledger, task_id: str, root: Path) -> None:
    with open(root / task_id / "events.jsonl", "ab") as events:
        events.write(b'{"ts":1,"kind":"prog')
    lease = Lease.acquire(root)
    try:
        Ledger(root, lease=lease).append_event(task_id, "log", {"note": "after"})
    finally:
        lease.release()
    read = ledger.read_events(task_id)
    assert [event.kind for event in read.events] == ["started", "log"]
    assert read.skipped == 1


async def test_a_killed_import_of_a_profile_leaves_no_file_with_its_cookies(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.service.maintenance.OLD_S", 0.0)
    states = home / "profiles" / "states"
    states.mkdir(parents=True)
    left = states / ".shop.json.tmp"
    left.write_text('{"state": {"cook')
    engine = Engine(Settings(home=home, root=home / "tasks", reap_s=0.05), accepts=True)
    await engine.open()
    try:
        await until(lambda: not left.exists())
    finally:
        await engine.close()
