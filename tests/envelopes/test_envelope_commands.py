"""Envelopes and runs from a shell: `start browser_task`, `update`, `finish`, `get`, `runs`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from engine.budgets import ToolCall
from engine.budgets.envelopes import Envelopes
from engine.cli.octask import octask as commands
from engine.ledger.ledger import Ledger


def octask(home: Path, *words: str, **environ: str) -> Result:
    """The command in this very process; what it would print, and its exit code."""
    return CliRunner(env=environ).invoke(commands, [*words, "--home", str(home)])


def data(home: Path, *words: str) -> Any:
    done = octask(home, *words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_an_envelope_is_started_updated_and_finished_from_a_shell(home: Path) -> None:
    asked = json.dumps({"objective": "buy a ticket", "policy": {"maxToolCalls": 4}})
    command = [sys.executable, "-m", "engine.cli", "start", "browser_task", "--home", str(home)]
    started = subprocess.run(
        [*command, "--args", asked, "--phase", "act"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=90,
        check=True,
    )
    task_id = started.stdout.strip()
    meta = json.loads((home / "tasks" / task_id / "meta.json").read_bytes())
    assert meta["pid"] == os.getpid()  # the program that called, not the command
    envelopes = Envelopes(Ledger(home / "tasks"))
    for _ in range(4):
        envelopes.record(task_id, ToolCall("navigate", {"url": "http://a.test/"}))
    shown = octask(home, "get", task_id).stdout
    assert "objective: buy a ticket" in shown
    assert "maxToolCalls: 4 / 4 warning" in shown
    assert "maxSameUrlNavigations: 4 / 3 exceeded" in shown
    assert "next:      change_strategy_or_verify" in shown
    updated = octask(home, "update", task_id, "--phase", "verify", "--note", "seat chosen")
    assert "verify" in updated.stdout
    state = data(home, "get", task_id)["envelope"]
    assert state["phase"] == "verify"
    assert state["counters"]["toolCalls"] == 4
    assert state["budget_exceeded"] == ["maxSameUrlNavigations"]
    assert len(state["recent_events"]) == 4
    finished = data(home, "finish", task_id, "--outcome", "completed", "--note", "bought")
    assert (finished["status"], finished["phase"]) == ("COMPLETED", "done")


def test_an_envelope_that_cannot_be_is_refused_with_every_mistake(home: Path) -> None:
    refused = octask(home, "start", "browser_task", "--policy", '{"maxToolCalls": 0}')
    assert refused.exit_code == 2
    assert "objective" in refused.stderr
    assert "policy.maxToolCalls" in refused.stderr


def test_refusals_say_why_and_have_their_exit_codes(home: Path) -> None:
    task_id = octask(home, "start", "browser_task", "--objective", "x").stdout.strip()
    assert octask(home, "finish", task_id, "--outcome", "won").exit_code == 2
    assert octask(home, "update", task_id).exit_code == 2
    assert octask(home, "update", "0123456789abcdef", "--note", "x").exit_code == 4
    assert octask(home, "cancel", task_id).exit_code == 0
    again = octask(home, "finish", task_id, "--outcome", "completed")
    assert again.exit_code == 1
    assert "CANCELLED already" in again.stderr


def test_the_agent_of_a_run_comes_from_the_environment_or_the_option(home: Path) -> None:
    start = ("start", "browser_task", "--objective", "x")
    octask(home, *start, COMET_AGENT_ID="from-environment")
    octask(home, *start, "--agent-id", "from-option", COMET_AGENT_ID="from-environment")
    found = data(home, "runs")["runs"]
    assert [run["agentId"] for run in found] == ["from-option", "from-environment"]
    assert {run["route"] for run in found} == {"cli"}


def test_runs_are_listed_without_a_word_and_shown_by_their_id(home: Path) -> None:
    octask(home, "start", "browser_task", "--objective", "x")
    (run,) = data(home, "runs")["runs"]
    assert data(home, "runs", "list", "--status", "running")["count"] == 1
    assert data(home, "runs", "list", "--status", "failed")["count"] == 0
    assert data(home, "runs", "show", run["runId"]) == run
    assert run["runId"] in octask(home, "runs").stdout
    assert octask(home, "runs", "show", "nobody").exit_code == 4
    assert octask(home, "runs", "show", "../nobody").exit_code == 2
    assert "list" in CliRunner().invoke(commands, ["runs", "--help"]).output


def test_a_host_keeps_runs_of_its_own_by_the_six_operations(home: Path) -> None:
    started = data(home, "runs", "start", "thread-1", "--run-id", "mine", "--deferred")
    assert (started["status"], started["taskThreadId"]) == ("pending", "thread-1")
    assert octask(home, "runs", "complete", "mine").exit_code == 1
    assert data(home, "runs", "start", "thread-1", "--run-id", "mine")["status"] == "running"
    updated = data(home, "runs", "update", "mine", "--metadata", '{"a": 1}', "--workflow-id", "w")
    assert (updated["metadata"], updated["workflowId"]) == ({"a": 1}, "w")
    assert data(home, "runs", "complete", "mine")["status"] == "completed"
    assert data(home, "runs", "abort", "mine")["status"] == "completed"
    refused = octask(home, "runs", "start", "thread-1", "--run-id", "mine")
    assert refused.exit_code == 1
    assert "Invalid lifecycle transition for run mine: completed → running" in refused.stderr


def test_the_run_of_a_task_is_not_ended_by_hand(home: Path) -> None:
    task_id = octask(home, "start", "browser_task", "--objective", "x").stdout.strip()
    (run,) = data(home, "runs")["runs"]
    refused = octask(home, "runs", "abort", run["runId"])
    assert refused.exit_code == 1
    assert task_id in refused.stderr
    octask(home, "cancel", task_id, "--reason", "changed plans")
    ended = data(home, "runs", "show", run["runId"])
    assert (ended["status"], ended["failureReason"]) == ("aborted", "changed plans")
