"""Contracts, task runs and `complete` as typed: words with a way out, and the exit codes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from engine.cli.octask import octask as octask_command
from tests.support.octask import FAST, SLOW, Octask, only_task, until
from tests.support.task_folders import write_meta

GUARD_REFUSED = 5
REASON = "the site was switched off"


def answer(octask: Octask, *words: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(octask(*words, "--json", code=code))
    return found


@pytest.mark.case("R87", "R88")
def test_a_goal_from_its_start_to_a_forced_end(octask: Octask) -> None:
    contract = json.dumps({"expected_total": 3, "item_key": "url"})
    began = answer(octask, "task-run", "start", "--goal", "three pages", "--contract", contract)
    run_id = began["task_run"]["run_id"]
    contract_id = began["bulk_progress_contract"]["contract_id"]
    octask("task-run", "update", run_id, "--completed-items", "a", "--current-cursor", "b")
    said = octask("complete", run_id, code=GUARD_REFUSED)
    assert "Bulk progress incomplete: 1/3 url items observed." in said
    assert "Continue processing url items from cursor b." in said
    refused = answer(octask, "complete", run_id, code=GUARD_REFUSED)["error"]
    assert refused["code"] == "bulk_completion_guard_failed"
    assert refused["completion_guard"]["missing_count"] == 2
    assert refused["hint"]["severity"] == "warning"
    assert refused["hint"]["fire_count"] == 2
    octask("contract", "update", contract_id, "--failed", "b", "--reason", "HTTP 404")
    assert "2/3" in octask("contract", "check", contract_id, code=GUARD_REFUSED)
    assert "reason: " in octask("complete", run_id, "--force", "--reason", "why not", code=2)
    said = octask("complete", run_id, "--force", "--reason", REASON, "--by", "ann")
    assert "COMPLETED" in said
    assert "Forced by ann " in said
    assert REASON in said
    assert said.count("cursor: b") == 1
    shown = octask("task-run", "get", run_id, "--include-items", "--events")
    assert "✓ a" in shown
    assert "✗ b: HTTP 404" in shown
    assert "terminal" in octask("complete", run_id, code=1)
    assert octask("task-run", "list").startswith(run_id)
    assert octask("contract", "list").startswith(contract_id)
    assert "COMPLETED (forced)" in octask("task-run", "list")


def test_a_goal_may_stand_without_its_name_but_not_twice(octask: Octask) -> None:
    assert "three pages" in octask("task-run", "start", "three pages")
    refused = octask("task-run", "start", "three pages", "--goal", "two pages", code=2)
    assert "given twice" in refused


def test_a_contract_on_its_own(octask: Octask) -> None:
    made = answer(octask, "contract", "start", "--items", "a", "--items", "b")
    contract_id = made["bulk_progress_contract"]["contract_id"]
    octask("contract", "update", contract_id, "--completed", "a", "--cursor", "b")
    shown = octask("contract", "show", contract_id, "--include-items")
    assert "1/2 item: 1 completed, 0 failed, 0 skipped" in shown
    assert "… b" in shown
    octask("contract", "update", contract_id, "--skipped", "b", "--reason", "a duplicate")
    assert "2/2 item items observed" in octask("contract", "check", contract_id)


def test_a_refused_completion_names_its_items_when_asked(octask: Octask) -> None:
    made = answer(octask, "task-run", "start", "g", "--contract", '{"items": ["a", "b"]}')
    run_id = made["task_run"]["run_id"]
    octask("task-run", "update", run_id, "--completed-items", "a")
    said = octask("complete", run_id, "--include-items", code=GUARD_REFUSED)
    assert "✓ a" in said
    assert "… b" in said
    assert "… b" not in octask("complete", run_id, code=GUARD_REFUSED)
    told = octask("complete", run_id, "--include-items", "--json", code=GUARD_REFUSED)
    assert json.loads(told)["error"]["missing_items"] == ["b"]


def test_refusals_name_commands_and_no_tools_of_programs(octask: Octask) -> None:
    run_id = answer(octask, "task-run", "start", "g")["task_run"]["run_id"]
    for status, command in (("NEEDS_HELP", "task-run needs-help"), ("COMPLETED", "complete")):
        said = octask("task-run", "update", run_id, "--status", status, code=1)
        assert f"Use `octask {command}`" in said
    assert "Look at `octask contract list`" in octask("contract", "show", "0" * 16, code=4)


def test_a_refused_step_names_the_state_that_was_asked_for(octask: Octask) -> None:
    task = write_meta(octask.home / "tasks", 1, "COMPLETED").name
    assert "COMPLETED -> FAILED is not" in octask("complete", task, "--status", "failed", code=1)


def test_errors_for_programs_have_the_fields_of_the_sentence(octask: Octask) -> None:
    run_id = json.loads(octask("runs", "start", "thread", "--deferred", "--json"))["runId"]
    error = json.loads(octask("runs", "complete", run_id, "--json", code=1))["error"]
    wanted = {"runId": run_id, "from": "pending", "to": "completed"}
    assert error["fields"] == {"name": "LifecycleTransitionError", **wanted}


def test_runs_that_cannot_be_written_are_reported(octask: Octask) -> None:
    octask.home.mkdir(exist_ok=True)
    (octask.home / "comet-runs").write_text("a file in the place of the folder")
    assert "Run records are kept in memory only" in octask("runs", "start", "thread")
    ran = CliRunner().invoke(
        octask_command, ["runs", "start", "other", "--json", "--home", str(octask.home)]
    )
    assert "kept in memory only" in json.loads(ran.stdout)["notice"]
    report = json.loads(CliRunner().invoke(octask_command, doctor_of(octask.home)).output)
    assert [one["state"] for one in report["findings"] if one["subject"] == "runs"] == ["warning"]


def doctor_of(home: Path) -> list[str]:
    return ["doctor", "--json", "--home", str(home)]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("contract", "show", "0" * 16), 4, "There is no contract"),
        (("contract", "show", "nonsense"), 2, "not the id of a contract"),
        (("contract", "start"), 2, "stop_condition: "),
        (("contract", "start", "--contract", "{"), 2, "contract: is not valid JSON"),
        (("contract", "update", "0" * 16), 2, "nothing to change"),
        (("contract", "update", "0" * 16, "--failed", "x"), 2, "give it with --reason"),
        (("task-run", "update", "0" * 16, "--skipped-items", "x"), 2, "give it with --reason"),
        (("contract", "start", "--contract", '{"expected_total": 1e308}'), 2, "between 0 and 9,0"),
        (("task-run", "start"), 2, "goal: "),
        (("task-run", "get", "0" * 16), 4, "There is no task run"),
        (("complete", "0" * 16), 4, "There is no task"),
        (("complete", "nonsense"), 2, "not the id"),
        (("complete", "0" * 16, "--force"), 2, "reason: "),
        (("complete", "0" * 16, "--reason", REASON), 2, "goes with force alone"),
        (("complete", "0" * 16, "--status", "paused"), 2, "status: "),
    ],
)
def test_mistakes_have_a_code(home: Path, words: tuple[str, ...], code: int, says: str) -> None:
    ran = CliRunner().invoke(octask_command, [*words, "--home", str(home)])
    assert (ran.exit_code, says in ran.output) == (code, True), ran.output
    assert os.listdir(home) == []


def test_a_crawl_with_a_contract_ends_by_its_guard(octask: Octask, site: Any) -> None:
    crawl = ("start", "crawl", site.url, *FAST, "--max-pages", "3")
    assert "COMPLETED" in octask(*crawl, "--contract", '{"expected_total": 3}')
    said = octask(*crawl, "--contract", '{"expected_total": 5}', code=1)
    assert "3/5 url items observed" in said
    said = octask(*crawl, "--contract", '{"expected_total": "many"}', code=2)
    assert "contract.expected_total: " in said


def test_a_detached_crawl_is_forced_from_another_process(octask: Octask, site: Any) -> None:
    terms = ("--contract", '{"expected_total": 9000}', "--detach")
    octask("start", "crawl", site.url, *SLOW, "--delay-ms", "1500", *terms)
    task_id = only_task(octask)
    until(lambda: octask.pages(task_id))
    assert "url items observed" in octask("complete", task_id, code=GUARD_REFUSED)
    said = octask("complete", task_id, "--force", "--reason", REASON)
    assert "will be COMPLETED at its next page" in said
    octask("wait", task_id)
    assert octask.tasks()[0]["status"] == "COMPLETED"
    assert REASON in octask("contract", "list", "--json")
