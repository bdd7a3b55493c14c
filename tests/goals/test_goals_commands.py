"""Contracts, task runs and `complete` as typed: words with a way out, and the exit codes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from engine.cli.octask import octask as octask_command
from tests.support.octask import FAST, SLOW, Octask, only_task, until

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


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("contract", "show", "0" * 16), 4, "There is no contract"),
        (("contract", "show", "nonsense"), 2, "not the id of a contract"),
        (("contract", "start"), 2, "stop_condition: "),
        (("contract", "start", "--contract", "{"), 2, "contract: is not valid JSON"),
        (("contract", "update", "0" * 16), 2, "nothing to change"),
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
