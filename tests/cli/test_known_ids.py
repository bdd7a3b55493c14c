"""Ids by unique prefix, and completion in the shell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.octask import Octask, run_as_text
from tests.support.task_folders import write_meta

ONE, TWO, OTHER = "be15000000000001", "be15000000000002", "ff00000000000001"


def write_task(home: Path, task_id: str, status: str = "COMPLETED") -> None:
    write_meta(home / "tasks", int(task_id, 16), status)


def test_a_unique_prefix_of_an_id_names_its_task(octask: Octask) -> None:
    write_task(octask.home, ONE)
    assert octask("get", "be15").startswith(ONE)


@pytest.mark.parametrize("command", [["get"], ["cancel"], ["export"], ["rerun"], ["complete"]])
def test_an_ambiguous_prefix_is_refused_with_its_candidates(
    octask: Octask, command: list[str]
) -> None:
    write_task(octask.home, ONE, status="RUNNING")
    write_task(octask.home, TWO, status="RUNNING")
    said = octask(*command, "be15", code=2)
    assert f"2 ids begin with be15: {ONE}, {TWO}" in said
    assert "cancel_requested" not in (octask.home / f"tasks/{ONE}/meta.json").read_text()


def test_a_prefix_without_a_task_is_no_such_task(octask: Octask) -> None:
    write_task(octask.home, ONE)
    assert "There is no task ffff" in octask("get", "ffff", code=4)


def test_fewer_than_four_digits_are_no_id(octask: Octask) -> None:
    write_task(octask.home, ONE)
    assert "'be1' is too short for the first digits of an id" in octask("get", "be1", code=2)
    assert "'xyz' is not a task id" in octask("get", "xyz", code=2)


def test_contracts_task_runs_and_runs_are_found_by_prefix(octask: Octask) -> None:
    contract = json.dumps({"expected_total": 1, "item_key": "u", "stop_condition": "x"})
    made = json.loads(octask("task-run", "start", "g", "--contract", contract, "--json"))
    contract_id = made["bulk_progress_contract"]["contract_id"]
    run_id = made["task_run"]["run_id"]
    assert octask("contract", "show", contract_id[:6]).startswith(contract_id)
    assert octask("task-run", "get", run_id[:6]).startswith(run_id)
    lifecycle = json.loads(octask("runs", "start", "thread", "--json"))["runId"]
    assert lifecycle in octask("runs", "show", lifecycle[:8])


def test_a_whole_id_of_a_run_wins_over_longer_ones(octask: Octask) -> None:
    octask("runs", "start", "thread", "--run-id", "beef")
    octask("runs", "start", "thread", "--run-id", "beef1")
    assert "runId: beef\n" in octask("runs", "show", "beef")


def completed(octask: Octask, words: Sequence[str], shell: str = "bash") -> list[str]:
    """Return the lines that the shell gets for the last of `words`."""
    typed = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    asked = {**octask.environment(), **typed, "_OCTASK_COMPLETE": f"{shell}_complete"}
    done = run_as_text(environment=asked)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_shell_completes_ids_with_state_and_kind(octask: Octask) -> None:
    write_task(octask.home, ONE)
    write_task(octask.home, OTHER)
    words = ["octask", "--home", str(octask.home), "get", "be"]
    assert completed(octask, words, "zsh") == ["plain", ONE, "COMPLETED", "crawl"]
    assert completed(octask, words) == ["plain,be15000000000001"]


def test_cancel_completes_live_tasks_and_resume_ended_ones(octask: Octask) -> None:
    write_task(octask.home, ONE, status="RUNNING")
    write_task(octask.home, TWO)
    words = ["octask", "--home", str(octask.home)]
    assert completed(octask, [*words, "cancel", "be"]) == [f"plain,{ONE}"]
    assert completed(octask, [*words, "resume", "be"]) == [f"plain,{TWO}"]


@pytest.mark.parametrize(
    ("words", "offer"),
    [
        (["export", "--format", "xl"], "xlsx"),
        (["start", "crawl_"], "crawl_sitemap"),
        (["list", "--status", "fa"], "failed"),
        (["list", "--kind", "rec"], "recording"),
        (["list", "--kind", "ev"], "evidence"),
        (["list", "--kind", "oc_e"], "oc_evidence_bundle"),
        (["list", "--query", "hos"], "host:"),
        (["cancel", "--all-matching", "stat"], "status:"),
    ],
)
def test_the_shell_completes_kinds_states_and_fields(
    octask: Octask, words: list[str], offer: str
) -> None:
    assert f"plain,{offer}" in completed(octask, ["octask", *words])


def test_a_completion_makes_no_folder(octask: Octask, tmp_path: Path) -> None:
    place = tmp_path / "none"
    assert completed(octask, ["octask", "--home", str(place), "get", "a"]) == []
    assert not place.exists()
