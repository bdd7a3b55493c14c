"""Every task has one run, which is where the task is: whoever wrote it, and whoever died."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.admission import Terms
from engine.comet import LinkedRuns, RunOfTask, Runs
from engine.config import Settings
from engine.envelopes import EnvelopeEnded, EnvelopeRequest, Envelopes
from engine.errors import EngineError, TransitionError
from engine.records import EngineFields, ErrorInfo, Status, TaskRecord
from engine.service import Engine
from engine.store.ledger import Ledger
from engine.store.reaper import Reaper

CRAWL = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_pages": 2}

# Dies by its own hand at the instant that it is told of: the argument names the step.
DIE = """
import os, signal, sys
from pathlib import Path
from engine.comet import LinkedRuns, Runs
from engine.records import EngineFields, Status
from engine.store.lease import Lease
from engine.store.ledger import Ledger
home, step = Path(sys.argv[1]), sys.argv[2]
root = home / "tasks"
runs = Runs(home)
linked = LinkedRuns(runs, home, root)
ledger = Ledger(root, lease=Lease.acquire(root))
ledger.told = linked.follow
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
record = ledger.create("crawl", {"url": "http://a.test/"}, engine=EngineFields(run_id="run-1"))
print(record.task_id, flush=True)
if step == "accept":
    die()
linked.accept(record, {})
if step == "claim":
    ledger.told = die
ledger.claim(record.task_id)
ledger.told = die
ledger.finish(record.task_id, Status[step])
"""


@asynccontextmanager
async def opened(home: Path, *, accepts: bool = True, **settings: Any) -> AsyncIterator[Engine]:
    engine = Engine(Settings(home=home, root=home / "tasks", **settings), accepts=accepts)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


def only_run(home: Path) -> dict[str, Any]:
    (place,) = (home / "comet-runs").glob("*.json")
    found: dict[str, Any] = json.loads(place.read_bytes())
    return found


def marks(home: Path) -> list[str]:
    folder = home / "comet-runs" / "open"
    return os.listdir(folder) if folder.exists() else []


def steps(home: Path) -> list[tuple[str | None, str]]:
    (file,) = (home / "audit").glob("*/lifecycle.jsonl")
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [(line["from"], line["to"]) for line in lines]


async def test_a_crawls_run_goes_along_with_it_from_its_acceptance_to_its_end(
    home: Path, site: Any
) -> None:
    async with opened(home, route="cli", agent_id="agent-7") as engine:
        record = await engine.start("crawl", {"url": site.url, **CRAWL})
        ended = await engine.wait(record.task_id)
        await engine.join(record.task_id)
        meta = await engine.meta(record.task_id)
    run = only_run(home)
    assert ended.status == Status.COMPLETED
    assert run["runId"] == meta["engine"]["run_id"]
    assert run["taskThreadId"] == record.task_id
    assert (run["status"], run["route"], run["agentId"]) == ("completed", "cli", "agent-7")
    assert run["fallbackUsed"] is False
    assert "failureReason" not in run
    assert steps(home) == [(None, "pending"), ("pending", "running"), ("running", "completed")]
    assert marks(home) == []


async def test_what_was_said_of_the_run_at_the_start_stands_in_it(home: Path, site: Any) -> None:
    terms = Terms(task_thread_id="thread-9", workflow_id="flow-3", agent_id="mine")
    async with opened(home, agent_id="ours") as engine:
        record = await engine.start("crawl", {"url": site.url, **CRAWL}, terms=terms)
        await engine.wait(record.task_id)
        await engine.join(record.task_id)
    run = only_run(home)
    assert (run["taskThreadId"], run["workflowId"], run["agentId"]) == (
        *("thread-9", "flow-3", "mine"),
    )
    assert "route" not in run


async def test_all_tasks_of_one_process_share_one_audit_session(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        for _ in range(2):
            record = await engine.start("crawl", {"url": site.url, **CRAWL})
            await engine.join(record.task_id)
        runs = engine.runs.list_runs()
    assert len(runs) == 2
    assert len({run.audit_session_id for run in runs}) == 1
    assert os.listdir(home / "audit") == [runs[0].audit_session_id]


async def test_a_task_that_fails_leaves_a_failed_run_with_its_reason(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        record = await engine.start("crawl", {"url": f"{site.url}/", **CRAWL, "failOnPage": 1})
        ended = await engine.wait(record.task_id)
        await engine.join(record.task_id)
    run = only_run(home)
    assert ended.error is not None
    assert (run["status"], run["failureReason"]) == ("failed", ended.error.message)


async def test_a_cancel_from_another_process_ends_the_run_of_what_had_not_begun(
    home: Path, ledger: Ledger
) -> None:
    record = ledger.create("crawl", {"url": "http://a.test/"}, engine=EngineFields(run_id="run-1"))
    async with opened(home, accepts=False) as engine:
        await engine.cancel(record.task_id, "not today")
        run = engine.runs.get_run("run-1")
    assert run is not None
    assert (run.status, run.failure_reason) == ("aborted", "not today")
    assert run.task_thread_id == record.task_id


async def test_a_running_task_that_is_cancelled_leaves_an_aborted_run(
    home: Path, site: Any
) -> None:
    slow = {**CRAWL, "delay_ms": 60_000, "max_pages": 50}
    async with opened(home) as engine:
        record = await engine.start("crawl", {"url": site.url, **slow})
        await running(engine, record.task_id)
        async with asyncio.timeout(10):  # the run follows its task, a moment later
            while only_run(home)["status"] == "pending":
                await asyncio.sleep(0.01)
        assert only_run(home)["status"] == "running"
        assert len(marks(home)) == 1
        await engine.cancel(record.task_id, "seen enough")
        await engine.wait(record.task_id)
        await engine.join(record.task_id)
    run = only_run(home)
    assert (run["status"], run["failureReason"]) == ("aborted", "seen enough")
    assert marks(home) == []


async def running(engine: Engine, task_id: str) -> None:
    async for batch in engine.changes():
        if any(getattr(view.entry, "status", "") == "RUNNING" for view in batch.views):
            return


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("completed", "completed"), ("failed", "failed"), ("cancelled", "aborted")],
)
async def test_an_envelopes_run_is_running_at_once_and_ends_with_it(
    home: Path, outcome: str, status: str
) -> None:
    async with opened(home) as engine:
        record = await engine.start("browser_task", {"objective": "look"})
        assert only_run(home)["status"] == "running"
        await engine.finish(record.task_id, outcome, note="the end")
    run = only_run(home)
    assert run["status"] == status
    assert run.get("failureReason") == (None if status == "completed" else "the end")


def test_the_reaper_ends_the_run_of_an_orphan(home: Path, ledger: Ledger) -> None:
    runs = Runs(home)
    ledger.told = LinkedRuns(runs, home, ledger.root).follow
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
async def test_a_run_that_a_sudden_death_left_behind_is_healed_by_the_next_program(
    home: Path, step: str, task: str, run: str
) -> None:
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
        assert (await engine.meta(task_id))["status"] == task
        healed = engine.runs.get_run("run-1")
    assert healed is not None
    assert (healed.status, healed.task_thread_id) == (run, task_id)
    assert marks(home) == []


async def test_a_run_is_healed_whose_task_another_program_has_ended(home: Path) -> None:
    """OpenChrome finishes envelopes of ours, and knows nothing of runs."""
    async with opened(home, reap_s=0.05) as engine:
        record = await engine.start("browser_task", {"objective": "look"})
        theirs = Ledger(home / "tasks")
        Envelopes(theirs).finish(record.task_id, "completed")
        assert only_run(home)["status"] == "running"
        await engine.reap()
        assert only_run(home)["status"] == "completed"


async def test_healing_reads_no_run_that_has_ended(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = home / "comet-runs"
    folder.mkdir()
    for number in range(200):  # each of them would be told of if it were read
        (folder / f"run-{number}.json").write_text("{")
    with caplog.at_level(logging.INFO, "engine.comet"):
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


def test_the_runs_of_another_ledger_are_left_to_whoever_opens_that(
    home: Path, ledger: Ledger, tmp_path: Path
) -> None:
    runs = Runs(home)
    record = ledger.create("crawl", {"url": "http://a.test/"}, engine=EngineFields(run_id="run-1"))
    LinkedRuns(runs, home, ledger.root).accept(record, {})
    ledger.request_cancel(record.task_id)
    other = LinkedRuns(runs, home, tmp_path / "elsewhere")
    assert other.heal(Ledger(tmp_path / "elsewhere")) == 0
    assert runs.get_run("run-1").status == "pending"  # type: ignore[union-attr]
    assert LinkedRuns(runs, home, ledger.root).heal(ledger) == 1


def test_a_task_of_another_program_gets_no_run(home: Path, ledger: Ledger) -> None:
    ledger.told = LinkedRuns(Runs(home), home, ledger.root).follow
    record = ledger.create("read_page", {})
    ledger.claim(record.task_id)
    ledger.finish(record.task_id, Status.COMPLETED)
    assert not (home / "comet-runs").exists()


def test_an_impossible_run_id_in_a_record_harms_nothing(home: Path, ledger: Ledger) -> None:
    ledger.told = LinkedRuns(Runs(home), home, ledger.root).follow
    record = ledger.create("crawl", {}, engine=EngineFields(run_id="../../up"))
    ledger.claim(record.task_id)
    assert ledger.finish(record.task_id, Status.COMPLETED).status == Status.COMPLETED
    assert not (home / "comet-runs").exists()


async def test_a_run_that_follows_a_task_is_not_ended_by_hand(home: Path) -> None:
    async with opened(home) as engine:
        record = await engine.start("browser_task", {"objective": "look"})
        run_id = only_run(home)["runId"]
        with pytest.raises(RunOfTask) as refused:
            await engine.by_hand(run_id)
        assert refused.value.fields["task_id"] == record.task_id
        await engine.by_hand("a-run-of-a-host")


async def test_runs_in_memory_only_are_told_in_the_health_and_stop_no_task(
    home: Path, site: Any, not_writable: Callable[[], None]
) -> None:
    not_writable()
    async with opened(home) as engine:
        record = await engine.start("crawl", {"url": site.url, **CRAWL})
        assert (await engine.wait(record.task_id)).status == Status.COMPLETED
        await engine.join(record.task_id)
        (run,) = engine.runs.list_runs()
        warnings = engine.health().warnings
    assert (run.status, run.task_thread_id) == ("completed", record.task_id)
    assert any("memory only" in warning for warning in warnings)


async def test_the_command_lines_run_and_the_services_differ_in_route_ids_and_times_alone(
    home: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    command = [sys.executable, "-m", "engine.cli", "start", "browser_task", "--home", str(other)]
    command += ["--objective", "look", "--agent-id", "a", "--workflow-id", "w", "--thread-id", "t"]
    subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60)
    terms = Terms(workflow_id="w", task_thread_id="t")
    async with opened(home, route="mcp", agent_id="a") as engine:
        await engine.start("browser_task", {"objective": "look"}, terms=terms)
    ours, theirs = only_run(home), only_run(other)
    assert (ours["route"], theirs["route"]) == ("mcp", "cli")
    assert list(ours) == list(theirs)
    own = ("route", "runId", "auditSessionId", "startedAt")
    for name in set(ours) - set(own):
        assert ours[name] == theirs[name], name


@pytest.mark.timeout(240)
def test_of_a_cancel_and_a_finish_at_once_one_stands_and_the_run_agrees(
    home: Path, ledger: Ledger
) -> None:
    """One terminal state, one terminal event, aborted exactly when CANCELLED."""
    runs = Runs(home)
    linked = LinkedRuns(runs, home, ledger.root)
    ledger.told = linked.follow
    envelopes, other = Envelopes(ledger), Ledger(home / "tasks")
    other.told = linked.follow
    seen = set()
    for number in range(100):  # the ends alone are raced 500 times in rules/test_races.py
        fields = EngineFields(run_id=f"run-{number}")
        record = envelopes.start(EnvelopeRequest("race"), fields)
        linked.accept(record, {})
        at_once = threading.Barrier(2)
        acts: list[Callable[[], TaskRecord]] = [
            partial(other.request_cancel, record.task_id),
            partial(envelopes.finish, record.task_id, "completed"),
        ]
        rivals = [threading.Thread(target=raced, args=(at_once, act)) for act in acts]
        for rival in rivals[:: 1 if number % 2 else -1]:
            rival.start()
        for rival in rivals:
            rival.join(30)
        status = ledger.read_raw(record.task_id)["status"]
        kinds = [event.kind for event in ledger.read_events(record.task_id).events]
        ends = [kind for kind in kinds if kind in ("completed", "failed", "cancelled")]
        assert ends == [status.lower()]
        run = runs.get_run(f"run-{number}")
        assert run is not None
        assert run.status == {"CANCELLED": "aborted", "COMPLETED": "completed"}[status]
        seen.add(status)
    assert marks(home) == []
    assert seen == {"CANCELLED", "COMPLETED"}  # else nothing raced


def raced(at_once: threading.Barrier, act: Callable[[], TaskRecord]) -> None:
    at_once.wait(30)
    with suppress(EnvelopeEnded, TransitionError):  # the other was first
        act()


def test_what_goes_wrong_with_a_run_never_stands_in_the_way_of_its_task(
    home: Path, ledger: Ledger
) -> None:
    def broken(record: TaskRecord) -> None:
        raise EngineError(message="no room")

    ledger.told = broken
    record = ledger.create("crawl", {}, engine=EngineFields(run_id="run-1"))
    ledger.claim(record.task_id)
    error = ErrorInfo(message="x")
    assert ledger.finish(record.task_id, Status.FAILED, error=error).status == Status.FAILED
