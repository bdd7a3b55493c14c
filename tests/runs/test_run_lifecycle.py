"""The lifecycle of runs: seed 003, one sentence at a time, and its machine against a model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.contracts.run_lifecycle import LifecycleTransitionError, RunNotRunning, Runs
from engine.contracts.run_store import Run, envelope
from engine.ledger.record_store import NotAnId, RecordNotFound
from engine.model.errors import EngineError, InvalidArguments
from engine.model.lifecycle import RUN
from tests.runs.run_files import stored
from tests.support.written_files import contents

FIELDS = (
    *("taskThreadId", "runId", "status", "startedAt", "route", "fallbackUsed", "agentId"),
    *("tabGroupId", "auditSessionId", "workflowId", "completedAt", "failureReason", "metadata"),
)
STATES = ("pending", "running", "completed", "aborted", "failed")
ALLOWED = {
    "pending": {"running", "aborted", "failed"},
    "running": {"completed", "aborted", "failed"},
    "completed": set(),
    "aborted": set(),
    "failed": set(),
}


def brought_to(runs: Runs, state: str) -> str:
    run = runs.start_run("thread-1", deferred=state == "pending")
    end = {
        "completed": lambda: runs.complete_run(run.run_id),
        "aborted": lambda: runs.abort_run(run.run_id, "enough"),
        "failed": lambda: runs.fail_run(run.run_id, "broken"),
    }.get(state)
    if end is not None:
        end()
    return run.run_id


def test_the_states_and_their_steps_are_the_seeds() -> None:
    assert {state: set(steps) for state, steps in RUN.steps.items()} == ALLOWED


def test_a_run_has_the_seeds_thirteen_fields_and_no_other(runs: Runs, home: Path) -> None:
    run = runs.start_run(
        "thread-1",
        route="mcp",
        fallback_used=True,
        tab_group_id="group-7",
        workflow_id="flow-1",
        metadata={"plan": "b"},
    )
    ended = runs.abort_run(run.run_id, "not needed")
    assert tuple(envelope(ended)) == FIELDS
    assert stored(home, run.run_id) == envelope(ended)
    assert envelope(ended) == {
        "taskThreadId": "thread-1",
        "runId": run.run_id,
        "status": "aborted",
        "startedAt": "2025-11-22T04:10:00.123Z",
        "route": "mcp",
        "fallbackUsed": True,
        "agentId": "agent-1",
        "tabGroupId": "group-7",
        "auditSessionId": runs.audit.session_id,
        "workflowId": "flow-1",
        "completedAt": "2025-11-22T04:10:00.123Z",
        "failureReason": "not needed",
        "metadata": {"plan": "b"},
    }


def test_what_is_not_known_is_left_out_and_the_id_is_a_uuid(home: Path) -> None:
    run = Runs(home).start_run("thread-1")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", run.run_id)
    required = {"taskThreadId", "runId", "status", "startedAt", "fallbackUsed", "auditSessionId"}
    assert set(envelope(run)) == required
    assert run.fallback_used is False


def test_a_deferred_run_is_pending_and_runs_when_it_is_started_again(runs: Runs) -> None:
    run = runs.start_run("thread-1", deferred=True)
    assert run.status == "pending"
    assert runs.start_run("thread-1", run_id=run.run_id, deferred=True) == run
    assert runs.start_run("thread-1", run_id=run.run_id).status == "running"


def test_starting_a_running_run_returns_it_as_it_is(runs: Runs) -> None:
    run = runs.start_run("thread-1", workflow_id="flow-1")
    assert runs.start_run("another", run_id=run.run_id, workflow_id="flow-2") == run


@pytest.mark.parametrize("state", ["completed", "aborted", "failed"])
def test_starting_an_ended_run_is_the_seeds_error(runs: Runs, state: str) -> None:
    run_id = brought_to(runs, state)
    with pytest.raises(LifecycleTransitionError) as refused:
        runs.start_run("thread-1", run_id=run_id)
    error = refused.value
    assert str(error) == f"Invalid lifecycle transition for run {run_id}: {state} → running"
    assert error.fields == {
        "name": "LifecycleTransitionError",
        "runId": run_id,
        "from": state,
        "to": "running",
    }


@pytest.mark.parametrize("state", STATES)
def test_only_a_running_run_can_be_updated_and_it_keeps_its_state(runs: Runs, state: str) -> None:
    run_id = brought_to(runs, state)
    if state != "running":
        with pytest.raises(RunNotRunning):
            runs.update_run(run_id, workflow_id="flow-9")
        return
    facts = {"audit_session_id": "mine", "tab_group_id": "g", "workflow_id": "w"}
    run = runs.update_run(run_id, **facts, metadata={"a": 1})
    run = runs.update_run(run_id, metadata={"b": 2})
    assert (run.status, run.audit_session_id, run.tab_group_id) == ("running", "mine", "g")
    assert run.workflow_id == "w"
    assert run.metadata == {"a": 1, "b": 2}


@pytest.mark.parametrize("state", STATES)
def test_completing_works_from_running_and_is_a_no_op_on_completed(runs: Runs, state: str) -> None:
    run_id = brought_to(runs, state)
    before = runs.get_run(run_id)
    if state in ("running", "completed"):
        run = runs.complete_run(run_id)
        assert run.status == "completed"
        assert run.completed_at is not None
        assert run == before or state == "running"
        return
    with pytest.raises(LifecycleTransitionError, match=f"{state} → completed"):
        runs.complete_run(run_id)
    assert runs.get_run(run_id) == before


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("target", ["aborted", "failed"])
def test_abort_and_fail_do_nothing_after_an_end(runs: Runs, state: str, target: str) -> None:
    run_id = brought_to(runs, state)
    before = runs.get_run(run_id)
    end = runs.abort_run if target == "aborted" else runs.fail_run
    run = end(run_id, "a reason")
    if state in ("pending", "running"):
        assert (run.status, run.failure_reason) == (target, "a reason")
        assert run.completed_at is not None
    else:
        assert run == before


def test_an_abort_needs_no_reason_but_a_failure_does(runs: Runs) -> None:
    assert runs.abort_run(brought_to(runs, "running")).failure_reason is None
    with pytest.raises(InvalidArguments):
        runs.fail_run(brought_to(runs, "running"), "  ")


def test_get_returns_the_whole_record_or_nothing(runs: Runs) -> None:
    run = runs.start_run("thread-1")
    assert runs.get_run(run.run_id) == run
    assert runs.get_run("nobody") is None


@pytest.mark.parametrize("operation", ["update_run", "complete_run", "abort_run", "fail_run"])
def test_an_unknown_run_is_said_to_be_unknown(runs: Runs, operation: str) -> None:
    given_: dict[str, Any] = {"update_run": {"workflow_id": "w"}, "fail_run": {"reason": "r"}}
    with pytest.raises(RecordNotFound):
        getattr(runs, operation)("nobody", **given_.get(operation, {}))


@pytest.mark.parametrize(
    "run_id", ["", "..", "../up", "a/b", "a\\b", ".hidden", "con", "NUL", "a" * 129, "a.json", "ä"]
)
def test_unsafe_ids_touch_no_file(runs: Runs, home: Path, run_id: str) -> None:
    for ask in (
        lambda: runs.get_run(run_id),
        lambda: runs.complete_run(run_id),
        lambda: runs.start_run("t", run_id=run_id) if run_id else runs.get_run(run_id),
    ):
        with pytest.raises(NotAnId):
            ask()
    assert not list(home.iterdir())


def test_every_mistake_in_the_facts_is_named(runs: Runs, home: Path) -> None:
    with pytest.raises(InvalidArguments) as refused:
        # Wrong types on purpose.
        runs.start_run("", route="ftp", metadata=[1], audit_session_id="../x")  # type: ignore[arg-type]
    assert {problem.path for problem in refused.value.problems} == {
        *("task_thread_id", "route", "metadata", "audit_session_id")
    }
    assert not list(home.iterdir())


def test_secrets_in_reasons_and_metadata_are_not_written(runs: Runs, home: Path) -> None:
    secret = "hunter2hunter2"
    run = runs.start_run("thread-1", metadata={"password": secret, "url": f"http://u:{secret}@h/"})
    runs.fail_run(run.run_id, f"login with token={secret} was refused")
    for path, data in contents(home).items():
        assert secret.encode() not in data, path


steps = st.lists(
    st.sampled_from(["start", "defer", "update", "complete", "abort", "fail"]), max_size=12
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_runs_match_the_model(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    runs = Runs(tmp_path_factory.mktemp("home"))
    run_id, state = "run-1", ""
    for step in steps:
        expected, error = model(state, step)
        asks: dict[str, Callable[[], Run]] = {
            "start": lambda: runs.start_run("t", run_id=run_id),
            "defer": lambda: runs.start_run("t", run_id=run_id, deferred=True),
            "update": lambda: runs.update_run(run_id, workflow_id="w"),
            "complete": lambda: runs.complete_run(run_id),
            "abort": lambda: runs.abort_run(run_id),
            "fail": lambda: runs.fail_run(run_id, "why"),
        }
        if error is None:
            assert asks[step]().status == expected
        else:
            with pytest.raises(error):
                asks[step]()
        state = expected
        found = runs.get_run(run_id)
        assert (found.status if found else "") == state


def model(state: str, step: str) -> tuple[str, type[EngineError] | None]:
    """The seed's table, written down a second time: (state after, error)."""
    ended = state in ("completed", "aborted", "failed")
    if step in ("start", "defer"):
        if ended:
            return state, LifecycleTransitionError
        return ("pending" if step == "defer" and state != "running" else "running"), None
    if state == "":
        return state, RecordNotFound
    if step == "update":
        return state, None if state == "running" else RunNotRunning
    if step == "complete":
        if state in ("running", "completed"):
            return "completed", None
        return state, LifecycleTransitionError
    return (state if ended else {"abort": "aborted", "fail": "failed"}[step]), None
