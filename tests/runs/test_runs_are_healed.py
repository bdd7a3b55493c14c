"""Runs of dead programs are ended by the next one, and no others."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from engine.budgets.envelopes import Envelopes
from engine.contracts.run_lifecycle import LinkedRuns, Runs
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from engine.model.records import EngineFields, Status
from tests.runs.run_marks import marks, only_run
from tests.support.engines import opened

# Dies by its own hand at the instant that it is told of: the argument names the step.
DIE = """
import os, signal, sys
from pathlib import Path
from engine.contracts.run_lifecycle import LinkedRuns, Runs
from engine.model.records import EngineFields, Status
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
home, step = Path(sys.argv[1]), sys.argv[2]
root = home / "tasks"
runs = Runs(home)
linked = LinkedRuns(runs, home, root)
ledger = Ledger(root, lease=Lease.acquire(root))
ledger.on_state_change = linked.follow
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
record = ledger.create("crawl", {"url": "http://a.test/"}, engine=EngineFields(run_id="run-1"))
print(record.task_id, flush=True)
if step == "accept":
    die()
linked.accept(record, {})
if step == "claim":
    ledger.on_state_change = die
ledger.claim(record.task_id)
ledger.on_state_change = die
ledger.finish(record.task_id, Status[step])
"""


def test_the_reaper_ends_the_run_of_an_orphan(home: Path, ledger: Ledger) -> None:
    runs = Runs(home)
    ledger.on_state_change = LinkedRuns(runs, home, ledger.root).follow
    record = ledger.create("crawl", {"url": "http://a.test/"}, engine=EngineFields(run_id="run-1"))
    ledger.claim(record.task_id)
    assert ledger.lease is not None
    ledger.lease.release()
    (orphan,) = Reaper(ledger).reap()
    run = runs.get_run("run-1")
    assert run is not None
    assert orphan.error is not None
    assert (run.status, run.failure_reason) == ("failed", orphan.error.message)


@pytest.mark.parametrize(
    ("step", "task", "run"),
    [
        ("accept", "FAILED", "failed"),
        ("claim", "FAILED", "failed"),
        ("COMPLETED", "COMPLETED", "completed"),
        ("FAILED", "FAILED", "failed"),
        ("CANCELLED", "CANCELLED", "aborted"),
    ],
)
async def test_runs_of_dead_programs_are_healed(home: Path, step: str, task: str, run: str) -> None:
    died = subprocess.run(
        [sys.executable, "-c", DIE, str(home), step],
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert died.returncode < 0
    task_id = died.stdout.decode().strip()
    before = Runs(home).get_run("run-1")
    assert before is None or not before.is_terminal
    async with opened(home) as engine:
        assert (await engine.tasks.meta(task_id))["status"] == task
        healed = engine.runs.get_run("run-1")
    assert healed is not None
    assert (healed.status, healed.task_thread_id) == (run, task_id)
    assert marks(home) == []


async def test_a_run_is_healed_whose_task_another_program_has_ended(home: Path) -> None:
    """OpenChrome finishes envelopes of ours, and knows nothing of runs."""
    async with opened(home, reap_s=1_000.0) as engine:  # it reaps when it is told to
        record = await engine.requests.start("browser_task", {"objective": "look"})
        theirs = Ledger(home / "tasks")
        Envelopes(theirs).finish(record.task_id, "completed")
        assert only_run(home)["status"] == "running"
        await engine.commands.reap()
        assert only_run(home)["status"] == "completed"


async def test_healing_skips_ended_runs(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = home / "comet-runs"
    folder.mkdir()
    for number in range(200):  # each of them would be told of if it were read
        (folder / f"run-{number}.json").write_text("{")
    with caplog.at_level(logging.INFO, "engine.contracts.run_lifecycle"):
        async with opened(home):
            pass
    assert not caplog.records


async def test_a_run_whose_task_was_removed_is_aborted(home: Path, ledger: Ledger) -> None:
    runs = Runs(home)
    linked = LinkedRuns(runs, home, ledger.root)
    record = ledger.create("crawl", {"url": "http://a.test/"}, engine=EngineFields(run_id="run-1"))
    linked.accept(record, {})
    (home / "tasks" / record.task_id).rename(home / "in the trash")
    assert linked.heal(ledger) == 1
    run = runs.get_run("run-1")
    assert run is not None
    assert (run.status, run.failure_reason) == ("aborted", "its task was removed")
    assert linked.heal(ledger) == 0


def test_runs_of_other_ledgers_are_not_healed(home: Path, ledger: Ledger, tmp_path: Path) -> None:
    runs = Runs(home)
    record = ledger.create("crawl", {"url": "http://a.test/"}, engine=EngineFields(run_id="run-1"))
    LinkedRuns(runs, home, ledger.root).accept(record, {})
    ledger.request_cancel(record.task_id)
    other = LinkedRuns(runs, home, tmp_path / "elsewhere")
    assert other.heal(Ledger(tmp_path / "elsewhere")) == 0
    assert runs.get_run("run-1").status == "pending"  # type: ignore[union-attr]  # never None here
    assert LinkedRuns(runs, home, ledger.root).heal(ledger) == 1


def test_a_task_of_another_program_gets_no_run(home: Path, ledger: Ledger) -> None:
    ledger.on_state_change = LinkedRuns(Runs(home), home, ledger.root).follow
    record = ledger.create("read_page", {})
    ledger.claim(record.task_id)
    ledger.finish(record.task_id, Status.COMPLETED)
    assert not (home / "comet-runs").exists()


def test_an_impossible_run_id_in_a_record_harms_nothing(home: Path, ledger: Ledger) -> None:
    ledger.on_state_change = LinkedRuns(Runs(home), home, ledger.root).follow
    record = ledger.create("crawl", {}, engine=EngineFields(run_id="../../up"))
    ledger.claim(record.task_id)
    assert ledger.finish(record.task_id, Status.COMPLETED).status == Status.COMPLETED
    assert not (home / "comet-runs").exists()
