"""Task runs: their steps and sentences, OpenChrome's folders, and one end whatever happens."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.bulk_progress import (
    BulkCompletionRefused,
    ContractNotFound,
    InvalidRunStep,
    TaskRunNotFound,
)
from engine.contracts.completing import force_of
from engine.contracts.contract_progress import RunView
from engine.contracts.contract_service import Goals
from engine.ledger.ledger import Ledger
from engine.ledger.record_store import NotAnId, RecordUnreadable
from engine.model.errors import InvalidArguments, LedgerReadOnly
from engine.model.records import Unreadable
from tests.goals.task_runs import again
from tests.support.faults import disk_full
from tests.support.lock_retries import patiently

REPO = Path(__file__).resolve().parents[2]
REASON = "the site was switched off for good"


@pytest.fixture
def goals(home: Path) -> Goals:
    return Goals(home, lambda: Ledger(home / "tasks"))


def started(goals: Goals, **terms: Any) -> RunView:
    return goals.runs.start({"goal": "Visit three URLs"}, terms or None)


def link(view: RunView) -> str:
    assert view.progress is not None
    return view.progress.contract.contract_id


def kinds(goals: Goals, run_id: str) -> list[str]:
    return [event.kind for event in goals.runs.get(run_id, events=True).events]


def meta(home: Path, run_id: str) -> bytes:
    return (home / "task-runs" / run_id / "meta.json").read_bytes()


def test_a_run_without_a_contract_ends_as_it_always_did(home: Path, goals: Goals) -> None:
    run = started(goals)
    goals.runs.update(run.run_id, {"completed_items": ["a"], "progress_summary": "begun"})
    ended = goals.completing.run(run.run_id, {"progress_summary": "done"})
    assert (ended.status, ended.progress) == ("COMPLETED", None)
    assert ended.raw["progress_summary"] == "done"
    assert kinds(goals, run.run_id) == ["started", "updated", "completed"]
    assert not (home / "progress-contracts").exists()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "goal"),
        ({"goal": " "}, "goal"),
        ({"goal": 5}, "goal"),
        ({"goal": "x" * 4_097}, "goal"),
        ({"goal": "g", "success_criteria": ["x"] * 51}, "success_criteria"),
        ({"goal": "g", "ledger_task_ids": "abc"}, "ledger_task_ids"),
        ({"goal": "g", "status": "RUNNING"}, "status"),
        ([], ""),
    ],
)
def test_bad_starts_name_the_field(home: Path, goals: Goals, given: Any, field: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        goals.runs.start(given, {"expected_total": -1})
    paths = [problem.path for problem in refused.value.problems]
    assert field in paths
    assert "contract.expected_total" in paths
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"completed_items": [{}]}, "completed_items"),
        ({"failed_items": [{"item": "a"}]}, "failed_items"),
        ({"last_evidence": [{"kind": "rumour", "ref": "x"}]}, "last_evidence"),
        ({"last_evidence": [{"kind": "url"}]}, "last_evidence"),
        ({"progress_summary": ""}, "progress_summary"),
        ({"goal": "another"}, "goal"),
    ],
)
def test_bad_updates_change_nothing(home: Path, goals: Goals, given: Any, field: str) -> None:
    run = started(goals)
    before = meta(home, run.run_id)
    with pytest.raises(InvalidArguments) as refused:
        goals.runs.update(run.run_id, given)
    assert field in [problem.path for problem in refused.value.problems]
    assert meta(home, run.run_id) == before


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("COMPLETED", "Use oc_task_run_complete to enter a terminal state"),
        ("FAILED", "Use oc_task_run_complete to enter a terminal state"),
        ("PENDING", "TaskRun cannot transition back to PENDING"),
        ("NEEDS_HELP", "Use oc_task_run_needs_help to enter NEEDS_HELP"),
        ("PAUSED", "Unknown TaskRun status: PAUSED"),
    ],
)
def test_updates_enter_running_only(home: Path, goals: Goals, status: str, sentence: str) -> None:
    run = started(goals)
    before = meta(home, run.run_id)
    with pytest.raises(InvalidRunStep, match=sentence):
        goals.runs.update(run.run_id, {"status": status})
    assert meta(home, run.run_id) == before


def test_a_run_that_asked_for_help_goes_on_when_it_is_told_why(goals: Goals) -> None:
    run_id = started(goals).run_id
    asked = goals.runs.needs_help(run_id, {"reason": "2FA", "resume_hint": "log in"})
    assert asked.status == "NEEDS_HELP"
    assert asked.raw["needs_help"]["reason"] == "2FA"
    assert goals.runs.update(run_id, {"progress_summary": "waiting"}).status == "NEEDS_HELP"
    with pytest.raises(InvalidRunStep, match="resume_reason"):
        goals.runs.update(run_id, {"status": "RUNNING"})
    went_on = goals.runs.update(run_id, {"status": "RUNNING", "resume_reason": "logged in"})
    assert went_on.status == "RUNNING"
    assert "needs_help" not in went_on.raw
    goals.runs.needs_help(run_id, {"reason": "again"})
    assert "needs_help" not in goals.completing.run(run_id, {"status": "FAILED"}).raw


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED", "CANCELLED"])
def test_what_has_ended_is_never_written_again(home: Path, goals: Goals, end: str) -> None:
    run_id = started(goals).run_id
    goals.completing.run(run_id, {"status": end})
    before = meta(home, run_id)
    steps: list[Callable[[], object]] = [
        lambda: goals.runs.update(run_id, {"current_cursor": "x"}),
        lambda: goals.runs.checkpoint(run_id, {"summary": "x"}),
        lambda: goals.runs.needs_help(run_id, {"reason": "x"}),
        lambda: goals.completing.run(run_id, {}),
        lambda: goals.completing.run(run_id, {}, force_of(REASON, "me")),
        lambda: goals.contracts.start({"expected_total": 1, "run_id": run_id}),
    ]
    for step in steps:
        with pytest.raises(InvalidRunStep, match=rf"is terminal \({end}\) and cannot be modified"):
            step()
    assert meta(home, run_id) == before
    assert kinds(goals, run_id) == ["started", end.lower()]


def test_a_contract_of_a_run_that_has_ended_takes_nothing_more(home: Path, goals: Goals) -> None:
    run = started(goals, expected_total=1)
    goals.completing.run(run.run_id, {"completed_items": ["a"]})
    with pytest.raises(InvalidRunStep, match="terminal"):
        goals.contracts.update(link(run), {"failed": [{"item": "a", "reason": "r"}]})
    assert again(home).contracts.get(link(run)).contract.completed == ("a",)


def test_a_checkpoint_is_a_file_of_its_own_and_the_runs_summary(home: Path, goals: Goals) -> None:
    run_id = started(goals, expected_total=3).run_id
    goals.runs.update(run_id, {"completed_items": ["a"]})
    given = {"summary": "half way", "current_cursor": "b"}
    found = goals.runs.checkpoint(run_id, given | {"evidence": [{"kind": "url", "ref": "x"}]})
    assert found.checkpoint is not None
    name = f"{found.checkpoint['checkpoint_id']}.json"
    stored = json.loads((home / "task-runs" / run_id / "checkpoints" / name).read_text())
    assert (stored["summary"], stored["completed_count"]) == ("half way", 1)
    assert found.raw["progress_summary"] == "half way"
    assert found.raw["last_evidence"] == [{"kind": "url", "ref": "x"}]
    assert again(home).runs.get(run_id).raw["current_cursor"] == "b"
    assert goals.contracts.get(link(found)).contract.cursor == "b"


@pytest.mark.case("R87")
def test_a_refusal_changes_nothing_but_an_event_and_leaves_a_hint(home: Path, goals: Goals) -> None:
    run = started(goals, expected_total=3, item_key="url")
    goals.runs.update(run.run_id, {"completed_items": ["a"], "current_cursor": "b"})
    contract = (home / "progress-contracts" / f"{link(run)}.json").read_bytes()
    before = meta(home, run.run_id)
    for fires in (1, 2):
        with pytest.raises(BulkCompletionRefused) as refused:
            goals.completing.run(run.run_id, {"completed_items": ["b"]})
        said = refused.value.data()
        assert said["completion_guard"]["missing_count"] == 1  # with the item of the request
        assert said["hint"]["severity"] == "warning"
        assert said["hint"]["rule"] == "bulk-progress-premature-completion"
        assert said["hint"]["fire_count"] == fires
        assert said["hint"]["suggestion"]["tool"] == "oc_bulk_progress_update"
    assert meta(home, run.run_id) == before
    assert (home / "progress-contracts" / f"{link(run)}.json").read_bytes() == contract
    assert kinds(goals, run.run_id) == ["started", "updated", "guard", "guard"]


@pytest.mark.parametrize("status", ["FAILED", "CANCELLED"])
@pytest.mark.case("R87")
def test_the_guard_stands_before_completed_alone(goals: Goals, status: str) -> None:
    run = started(goals, expected_total=3)
    assert goals.completing.run(run.run_id, {"status": status}).status == status


@pytest.mark.parametrize("reason", [None, "", "   ", "too short", "  nine sig "])
@pytest.mark.case("R88")
def test_force_needs_a_reason_of_ten_characters(reason: str | None) -> None:
    with pytest.raises(InvalidArguments) as refused:
        force_of(reason, "me")
    assert [problem.path for problem in refused.value.problems] == ["reason"]


def test_a_force_is_kept_in_contract_run_and_events(home: Path, goals: Goals) -> None:
    run = started(goals, expected_total=3)
    ended = goals.completing.run(run.run_id, {}, force_of(REASON, "ann@host"))
    assert ended.status == "COMPLETED"
    forced = again(home).contracts.get(link(run)).contract.forced
    assert forced is not None
    assert (forced.reason, forced.by, forced.at > 0) == (REASON, "ann@host", True)
    found = again(home).runs.get(run.run_id, events=True)
    expected = {"reason": REASON, "by": "ann@host", "at": forced.at}
    assert found.raw["forced"] == expected
    told = [event.data["forced"] for event in found.events if event.data and "forced" in event.data]
    assert told == [expected, expected]
    assert [event.kind for event in found.events] == ["started", "guard", "completed"]


def test_a_force_that_was_not_needed_is_no_force(goals: Goals) -> None:
    run = started(goals, expected_total=1)
    ended = goals.completing.run(run.run_id, {"completed_items": ["a"]}, force_of(REASON, "me"))
    assert "forced" not in ended.raw
    assert goals.contracts.get(link(run)).contract.forced is None


def test_a_failed_force_is_rolled_back(goals: Goals, monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(goals, expected_total=3)

    with monkeypatch.context() as patch:
        patch.setattr("engine.contracts.task_run_folders.stage", disk_full)
        with pytest.raises(Exception, match="No space left"):
            goals.completing.run(run.run_id, {}, force_of(REASON, "me"))
    assert goals.runs.get(run.run_id).status == "RUNNING"
    assert goals.contracts.get(link(run)).contract.forced is None


def test_a_lost_contract_prevents_completion(home: Path, goals: Goals) -> None:
    run = started(goals, expected_total=3)
    (home / "progress-contracts" / f"{link(run)}.json").unlink()
    with pytest.raises(ContractNotFound):
        goals.completing.run(run.run_id, {})
    ended = goals.completing.run(run.run_id, {}, force_of(REASON, "me"))
    assert ended.raw["forced"]["reason"] == REASON


def test_a_second_contract_cannot_take_the_place_of_the_first(goals: Goals) -> None:
    run = started(goals, expected_total=3)
    with pytest.raises(InvalidArguments, match="already"):
        goals.contracts.start({"expected_total": 0, "run_id": run.run_id})


def test_a_late_contract_takes_over_what_the_run_has_done(goals: Goals) -> None:
    run_id = started(goals).run_id
    goals.runs.update(run_id, {"completed_items": ["a", "b"]})
    late = goals.contracts.start({"expected_total": 3, "run_id": run_id})
    assert late.guard.missing_count == 1
    assert goals.runs.get(run_id).raw["bulk_contract_id"] == late.contract.contract_id


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": 1, "a": 2}', None])
def test_a_damaged_run_is_read_only(home: Path, goals: Goals, content: bytes | None) -> None:
    run_id = started(goals).run_id
    path = home / "task-runs" / run_id / "meta.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert [type(one) for one in goals.runs.list()] == [Unreadable]
    with pytest.raises(RecordUnreadable):
        goals.runs.update(run_id, {"current_cursor": "x"})
    assert content is None or path.read_bytes() == content


def test_what_is_no_run_is_said(goals: Goals) -> None:
    with pytest.raises(TaskRunNotFound):
        goals.runs.get("0" * 16)
    with pytest.raises(NotAnId):
        goals.runs.get("../tasks")


def test_read_only_is_refused(home: Path, goals: Goals, read_only: Callable[[Path], None]) -> None:
    run = started(goals, expected_total=1)
    read_only(home)
    with pytest.raises(LedgerReadOnly):
        goals.runs.update(run.run_id, {"completed_items": ["a"]})
    with pytest.raises(LedgerReadOnly):
        goals.runs.start({"goal": "another"}, {"expected_total": 1})
    assert goals.runs.get(run.run_id).status == "RUNNING"


COUNT = """
import sys
from pathlib import Path
from engine.contracts.contract_service import Goals
from engine.ledger.ledger import Ledger
from tests.support.lock_retries import patiently
home = Path(sys.argv[1])
goals = Goals(home, lambda: Ledger(home / "tasks"))
for number in range(int(sys.argv[3]), int(sys.argv[4])):
    patiently(lambda: goals.runs.update(sys.argv[2], {"completed_items": [f"row {number}"]}))
"""


def test_updates_of_many_processes_are_all_counted(home: Path, goals: Goals) -> None:
    run_id = started(goals).run_id
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", COUNT, str(home), run_id, str(at), str(at + 30)], cwd=REPO
        )
        for at in range(0, 120, 30)
    ]
    assert [program.wait(240) for program in programs] == [0] * 4
    items = again(home).runs.get(run_id).raw["completed_items"]
    assert sorted(items) == sorted(f"row {number}" for number in range(120))


ROUNDS = 500


def test_of_two_completions_at_once_one_ends_the_run(home: Path) -> None:
    """500 rounds: COMPLETED against CANCELLED, by two that share nothing but the disk."""
    run_ids = [started(again(home)).run_id for _ in range(ROUNDS)]
    barrier = threading.Barrier(2)
    won: list[tuple[str, str]] = []
    lost: list[str] = []

    def end(status: str) -> None:
        goals = again(home)
        for run_id in run_ids:
            barrier.wait(100)
            try:
                patiently(partial(goals.completing.run, run_id, {"status": status}))
                won.append((run_id, status))
            except InvalidRunStep:
                lost.append(run_id)

    threads = [
        threading.Thread(target=end, args=(status,)) for status in ("COMPLETED", "CANCELLED")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (ROUNDS, ROUNDS)
    look = again(home)
    for run_id, status in won:
        found = look.runs.get(run_id, events=True)
        assert found.status == status
        assert [event.kind for event in found.events] == ["started", status.lower()]
