"""Every task has one run with the same state, whoever changed the task."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.budgets.envelopes import EnvelopeEnded, EnvelopeRequest, Envelopes
from engine.contracts.run_lifecycle import LinkedRuns, RunOfTask, Runs
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError, InvalidArguments, TransitionError
from engine.model.records import EngineFields, ErrorInfo, Status, TaskRecord
from engine.service.admission import Terms
from engine.service.engine import Engine
from tests.runs.run_marks import marks, only_run
from tests.support.engines import opened
from tests.support.line_files import whole_lines

CRAWL = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_pages": 2}


def steps(home: Path) -> list[tuple[str | None, str]]:
    (file,) = (home / "audit").glob("*/lifecycle.jsonl")
    lines = whole_lines(file)
    return [(line["from"], line["to"]) for line in lines]


async def test_a_run_follows_its_crawl(home: Path, site: Any) -> None:
    async with opened(home, route="cli", agent_id="agent-7") as engine:
        record = await engine.requests.start("crawl", {"url": site.url, **CRAWL})
        ended = await engine.tasks.wait(record.task_id)
        await engine.tasks.join(record.task_id)
        meta = await engine.tasks.meta(record.task_id)
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
        record = await engine.requests.start("crawl", {"url": site.url, **CRAWL}, terms=terms)
        await engine.tasks.wait(record.task_id)
        await engine.tasks.join(record.task_id)
    run = only_run(home)
    assert (run["taskThreadId"], run["workflowId"], run["agentId"]) == (
        *("thread-9", "flow-3", "mine"),
    )
    assert "route" not in run


async def test_a_request_has_a_route_and_a_client_of_its_own(home: Path) -> None:
    """The engine of a window serves its operator and, at the same time, hosts over MCP."""
    async with opened(home) as engine:
        start = partial(engine.requests.start, "browser_task", {"objective": "look"})
        own = await start()
        asked = await start(terms=Terms(client="claude-code", route="mcp"))
        with pytest.raises(InvalidArguments, match="route: must be one of mcp, cli, http"):
            await start(terms=Terms(route="ftp"))
        runs = {run.task_thread_id: run.route for run in engine.runs.list_runs()}
        assert runs == {own.task_id: None, asked.task_id: "mcp"}
        assert asked.engine is not None
        meta = await engine.tasks.meta(asked.task_id)
        assert (meta["engine"]["client"], meta["engine"]["route"]) == ("claude-code", "mcp")
        assert not {"client", "route"} & set((await engine.tasks.meta(own.task_id))["engine"])


async def test_without_one_of_its_own_a_task_has_the_route_of_the_engine(home: Path) -> None:
    async with opened(home, route="http") as engine:
        crawl = await engine.requests.start("crawl", {"url": "http://127.0.0.1:1/", **CRAWL})
        other = await engine.requests.start(
            "browser_task", {"objective": "look"}, terms=Terms(route="mcp")
        )
        assert [one.engine and one.engine.route for one in (crawl, other)] == ["http", "mcp"]
        assert {run.route for run in engine.runs.list_runs()} == {"http", "mcp"}


@pytest.mark.parametrize("route", ["mcp", "http"])
async def test_a_request_from_outside_reaches_no_private_address(
    home: Path, site: Any, route: str
) -> None:
    async with opened(home) as engine:
        start = partial(engine.requests.start, "crawl", {"url": site.url, **CRAWL})
        theirs = await engine.tasks.wait((await start(terms=Terms(route=route))).task_id)
        assert not site.hits
        ours = await engine.tasks.wait((await start()).task_id)
    assert (theirs.status, ours.status) == (Status.FAILED, Status.COMPLETED)
    assert theirs.error is not None
    assert "blocked" in theirs.error.message


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  claude-code\n", "claude-code"),
        ("a\x1b[31mb\u202ec\ud800", "a\ufffd[31mb\ufffdc\ufffd"),
        ("two\r\nlines", "two lines"),
        ("x" * 500, "x" * 79 + "…"),
        (" \t ", None),
        ("", None),
        ("Bearer abcdefgh12345678", "Bearer [redacted]"),
    ],
)
async def test_the_name_of_a_client_is_kept_as_one_short_line(
    home: Path, given: str, kept: str | None
) -> None:
    async with opened(home) as engine:
        terms = Terms(client=given, route="mcp")
        record = await engine.requests.start("browser_task", {"objective": "look"}, terms=terms)
    assert record.engine is not None
    assert record.engine.client == kept


async def test_a_healed_run_has_the_route_of_its_task(home: Path, ledger: Ledger) -> None:
    fields = EngineFields(run_id="run-1", route="mcp")
    odd = EngineFields(run_id="run-2", route="ftp")
    made = [ledger.create("crawl", {"url": "http://a.test/"}, engine=one) for one in (fields, odd)]
    async with opened(home, accepts=False, route="cli") as engine:
        for record in made:
            await engine.commands.cancel(record.task_id)
        runs = [engine.runs.get_run(f"run-{number}") for number in (1, 2)]
    assert [run and run.route for run in runs] == ["mcp", "cli"]


async def test_all_tasks_of_one_process_share_one_audit_session(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        for _ in range(2):
            record = await engine.requests.start("crawl", {"url": site.url, **CRAWL})
            await engine.tasks.join(record.task_id)
        runs = engine.runs.list_runs()
    assert len(runs) == 2
    assert len({run.audit_session_id for run in runs}) == 1
    assert os.listdir(home / "audit") == [runs[0].audit_session_id]


async def test_a_task_that_fails_leaves_a_failed_run_with_its_reason(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        record = await engine.requests.start(
            "crawl", {"url": f"{site.url}/", **CRAWL, "failOnPage": 1}
        )
        ended = await engine.tasks.wait(record.task_id)
        await engine.tasks.join(record.task_id)
    run = only_run(home)
    assert ended.error is not None
    assert (run["status"], run["failureReason"]) == ("failed", ended.error.message)


async def test_a_foreign_cancel_ends_a_pending_run(home: Path, ledger: Ledger) -> None:
    record = ledger.create("crawl", {"url": "http://a.test/"}, engine=EngineFields(run_id="run-1"))
    async with opened(home, accepts=False) as engine:
        await engine.commands.cancel(record.task_id, "not today")
        run = engine.runs.get_run("run-1")
    assert run is not None
    assert (run.status, run.failure_reason) == ("aborted", "not today")
    assert run.task_thread_id == record.task_id


async def test_cancelling_a_running_task_aborts_its_run(home: Path, site: Any) -> None:
    slow = {**CRAWL, "delay_ms": 60_000, "max_pages": 50}
    async with opened(home) as engine:
        record = await engine.requests.start("crawl", {"url": site.url, **slow})
        await running(engine, record.task_id)
        async with asyncio.timeout(60):  # the run follows its task, a moment later
            while only_run(home)["status"] == "pending":
                await asyncio.sleep(0.01)
        assert only_run(home)["status"] == "running"
        assert len(marks(home)) == 1
        await engine.commands.cancel(record.task_id, "seen enough")
        await engine.tasks.wait(record.task_id)
        await engine.tasks.join(record.task_id)
    run = only_run(home)
    assert (run["status"], run["failureReason"]) == ("aborted", "seen enough")
    assert marks(home) == []


async def running(engine: Engine, task_id: str) -> None:
    async for batch in engine.tasks.changes():
        if any(getattr(view.entry, "status", "") == "RUNNING" for view in batch.views):
            return


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("completed", "completed"), ("failed", "failed"), ("cancelled", "aborted")],
)
async def test_a_run_follows_its_envelope(home: Path, outcome: str, status: str) -> None:
    async with opened(home) as engine:
        record = await engine.requests.start("browser_task", {"objective": "look"})
        assert only_run(home)["status"] == "running"
        await engine.contracts.finish(record.task_id, outcome, note="the end")
    run = only_run(home)
    assert run["status"] == status
    assert run.get("failureReason") == (None if status == "completed" else "the end")


async def test_a_run_that_follows_a_task_is_not_ended_by_hand(home: Path) -> None:
    async with opened(home) as engine:
        record = await engine.requests.start("browser_task", {"objective": "look"})
        run_id = only_run(home)["runId"]
        with pytest.raises(RunOfTask) as refused:
            await engine.commands.by_hand(run_id)
        assert refused.value.fields["task_id"] == record.task_id
        await engine.commands.by_hand("a-run-of-a-host")


async def test_runs_in_memory_only_are_told_in_the_health_and_stop_no_task(
    home: Path, site: Any, not_writable: Callable[[], None]
) -> None:
    not_writable()
    async with opened(home) as engine:
        record = await engine.requests.start("crawl", {"url": site.url, **CRAWL})
        assert (await engine.tasks.wait(record.task_id)).status == Status.COMPLETED
        await engine.tasks.join(record.task_id)
        (run,) = engine.runs.list_runs()
        warnings = engine.health().warnings
    assert (run.status, run.task_thread_id) == ("completed", record.task_id)
    assert any("memory only" in warning for warning in warnings)


async def test_cli_and_service_runs_are_equal(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    command = [sys.executable, "-m", "engine.cli", "start", "browser_task", "--home", str(other)]
    command += ["--objective", "look", "--agent-id", "a", "--workflow-id", "w", "--thread-id", "t"]
    subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60)
    terms = Terms(workflow_id="w", task_thread_id="t")
    async with opened(home, route="mcp", agent_id="a") as engine:
        await engine.requests.start("browser_task", {"objective": "look"}, terms=terms)
    ours, theirs = only_run(home), only_run(other)
    assert (ours["route"], theirs["route"]) == ("mcp", "cli")
    assert list(ours) == list(theirs)
    own = ("route", "runId", "auditSessionId", "startedAt")
    for name in set(ours) - set(own):
        assert ours[name] == theirs[name], name


def test_the_run_agrees_after_a_race_of_two_ends(home: Path, ledger: Ledger) -> None:
    """One terminal state, one terminal event, aborted exactly when CANCELLED."""
    runs = Runs(home)
    linked = LinkedRuns(runs, home, ledger.root)
    ledger.on_state_change = linked.follow
    envelopes, other = Envelopes(ledger), Ledger(home / "tasks")
    other.on_state_change = linked.follow
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
        if number < 2:  # once each is first for certain, on a machine with one way to race, too
            at_once.abort()
        for rival in rivals[:: 1 if number % 2 else -1]:
            rival.start()
            if number < 2:
                rival.join(60)
        for rival in rivals:
            rival.join(60)
        status = ledger.read_raw(record.task_id)["status"]
        kinds = [event.kind for event in ledger.read_events(record.task_id).events]
        ends = [kind for kind in kinds if kind in ("completed", "failed", "cancelled")]
        assert ends == [status.lower()]
        run = runs.get_run(f"run-{number}")
        assert run is not None
        assert run.status == {"CANCELLED": "aborted", "COMPLETED": "completed"}[status]
        seen.add(status)
    assert marks(home) == []
    assert seen == {"CANCELLED", "COMPLETED"}


def raced(at_once: threading.Barrier, act: Callable[[], TaskRecord]) -> None:
    with suppress(threading.BrokenBarrierError):
        at_once.wait(60)
    with suppress(EnvelopeEnded, TransitionError):  # the other was first
        act()


def test_failing_runs_do_not_affect_their_task(home: Path, ledger: Ledger) -> None:
    def broken(record: TaskRecord) -> None:
        raise EngineError(message="no room")

    ledger.on_state_change = broken
    record = ledger.create("crawl", {}, engine=EngineFields(run_id="run-1"))
    ledger.claim(record.task_id)
    error = ErrorInfo(message="x")
    assert ledger.finish(record.task_id, Status.FAILED, error=error).status == Status.FAILED
