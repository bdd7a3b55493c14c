"""Leftovers of dead processes (temporary files, torn lines, empty folders) are removed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.contract_service import Goals
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.model.records import Unreadable
from engine.service.engine import Engine
from engine.service.maintenance import Tidier

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
