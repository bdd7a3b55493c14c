"""Lifecycle records while their folder cannot be written: nothing stays behind its task."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.contracts.run_lifecycle import LinkedRuns, Runs
from engine.ledger.ledger import Ledger
from engine.model.errors import LedgerUnusable
from engine.model.records import EngineFields, Status, TaskRecord
from tests.support.octask import Octask

RUN_ID = "run-1"


class Trouble:
    """A file in the place of the folder of runs: that stops root, too."""

    def __init__(self, home: Path) -> None:
        self.place = home / "comet-runs"
        self.aside = home / "comet-runs-aside"

    def begin(self) -> None:
        self.place.rename(self.aside)
        self.place.write_text("in the way")

    def end(self) -> None:
        self.place.unlink()
        self.aside.rename(self.place)


@pytest.fixture
def trouble(home: Path) -> Trouble:
    return Trouble(home)


@pytest.fixture
def linked(home: Path, ledger: Ledger) -> LinkedRuns:
    linked = LinkedRuns(Runs(home), home, ledger.root)
    ledger.on_state_change = linked.follow
    return linked


def accepted(ledger: Ledger, linked: LinkedRuns) -> TaskRecord:
    record = ledger.create("crawl", {"url": "http://s.test/"}, engine=EngineFields(run_id=RUN_ID))
    linked.accept(record, {})
    return record


def on_disk(home: Path) -> str:
    """The run as any other process sees it."""
    run = Runs(home).get_run(RUN_ID)
    assert run is not None
    return run.status


@pytest.mark.case("R03")
def test_a_start_that_could_not_be_written_is_written_when_there_is_room(
    ledger: Ledger, linked: LinkedRuns, trouble: Trouble, home: Path
) -> None:
    task_id = accepted(ledger, linked).task_id
    trouble.begin()
    ledger.claim(task_id)
    trouble.end()
    assert on_disk(home) == "pending"
    linked.heal(ledger)
    assert on_disk(home) == "running"


@pytest.mark.case("R03")
def test_a_start_that_its_process_could_not_write_is_written_by_another(
    ledger: Ledger, linked: LinkedRuns, trouble: Trouble, home: Path
) -> None:
    task_id = accepted(ledger, linked).task_id
    trouble.begin()
    ledger.claim(task_id)
    trouble.end()
    assert LinkedRuns(Runs(home), home, ledger.root).heal(ledger) == 1
    assert on_disk(home) == "running"


@pytest.mark.case("R03")
def test_an_unwritten_end_is_repaired(ledger: Ledger, linked: LinkedRuns, home: Path) -> None:
    task_id = accepted(ledger, linked).task_id
    ledger.claim(task_id)
    plant = home / "comet-runs" / f".{RUN_ID}.json.tmp"
    plant.mkdir()  # this one file cannot be staged; all else can be written
    ledger.finish(task_id, Status.COMPLETED)
    plant.rmdir()
    assert on_disk(home) == "running"
    assert LinkedRuns(Runs(home), home, ledger.root).heal(ledger) == 1
    assert on_disk(home) == "completed"
    assert list((home / "comet-runs" / "open").iterdir()) == []


def test_runs_that_cannot_be_read_are_not_passed_off_as_none(
    ledger: Ledger, linked: LinkedRuns, trouble: Trouble, home: Path
) -> None:
    accepted(ledger, linked)
    trouble.begin()
    with pytest.raises(LedgerUnusable, match="Not a directory"):
        Runs(home).list_runs()
    assert "Not a directory" in Octask(home)("runs", "list", code=1)
