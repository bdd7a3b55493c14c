"""Contracts on disk survive deaths and concurrent writers, and mistakes are refused."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.bulk_progress import Contract, ContractNotFound, guard
from engine.contracts.contract_progress import contract_data
from engine.contracts.contract_service import Goals
from engine.contracts.contract_store import SLACK, Contracts
from engine.ledger.ledger import Ledger
from engine.ledger.record_store import NotAnId, RecordUnreadable
from engine.model.errors import InvalidArguments, LedgerReadOnly, LedgerWriteFailed
from engine.model.records import Unreadable
from tests.goals.task_runs import again
from tests.support.faults import disk_full

CORPUS = Path(__file__).resolve().parents[2] / "fixtures" / "openchrome"
INDEX = json.loads((CORPUS / "INDEX.json").read_text("utf-8"))


@pytest.fixture
def goals(home: Path) -> Goals:
    return Goals(home, lambda: Ledger(home / "tasks"))


def files(home: Path) -> dict[str, bytes]:
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file()
    }


def counts(contract: Contract) -> tuple[int, int, int]:
    return contract.completed_total, contract.failed_total, contract.skipped_total


def test_everything_that_was_recorded_is_there_after_a_restart(home: Path, goals: Goals) -> None:
    made = goals.contracts.start({"expected_total": 4, "item_key": "url", "scope": "batch"})
    given = {
        "completed": ["a", "b"],
        "failed": [{"item": "c", "reason": "HTTP 500", "retryable": True}],
        "skipped": [{"item": "d", "reason": "a duplicate"}],
        "cursor": "page 2",
    }
    goals.contracts.update(made.contract.contract_id, given)
    found = again(home).contracts.get(made.contract.contract_id, include_items=True)
    data = contract_data(found, include_items=True)["bulk_progress_contract"]
    assert list(data["completed"]) == ["a", "b"]
    assert list(data["failed"]) == [{"item": "c", "reason": "HTTP 500", "retryable": True}]
    assert list(data["skipped"]) == [{"item": "d", "reason": "a duplicate"}]
    assert data["cursor"] == "page 2"
    assert found.guard.allowed


def test_an_answer_names_items_only_when_it_is_asked_to(goals: Goals) -> None:
    made = goals.contracts.start({"items": ["a-secret-name", "b"]})
    goals.contracts.update(made.contract.contract_id, {"completed": ["a-secret-name"]})
    plain = contract_data(goals.contracts.get(made.contract.contract_id))
    assert "a-secret-name" not in json.dumps(plain)
    named = goals.contracts.get(made.contract.contract_id, include_items=True)
    data = contract_data(named, include_items=True)
    assert data["bulk_progress_contract"]["items"] == ["a-secret-name", "b"]
    assert data["missing_items"] == ["b"]


def test_items_say_the_total_and_the_first_ten_thousand_are_kept(home: Path, goals: Goals) -> None:
    items = [f"row {number}" for number in range(10_005)]
    made = goals.contracts.start({"items": [*items, "row 7"]}).contract
    assert made.expected_total == 10_005
    assert again(home).contracts.get(made.contract_id, include_items=True).items == tuple(
        items[:10_000]
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([], ""),
        ("text", ""),
        ({}, "stop_condition"),
        ({"expected_total": -1}, "expected_total"),
        ({"expected_total": 2.5}, "expected_total"),
        ({"expected_total": True}, "expected_total"),
        ({"expected_total": "3"}, "expected_total"),
        ({"expected_total": 2**60}, "expected_total"),
        ({"expected_total": 3, "min_completed": -1}, "min_completed"),
        ({"expected_total": 3, "min_completed": 4}, "min_completed"),
        ({"items": ["a"], "min_completed": 2}, "min_completed"),
        ({"expected_total": 3, "stop_condition": " "}, "stop_condition"),
        ({"stop_condition": "x" * 2_049}, "stop_condition"),
        ({"expected_total": 3, "scope": "galaxy"}, "scope"),
        ({"expected_total": 3, "item_key": ""}, "item_key"),
        ({"expected_total": 3, "item_key": 7}, "item_key"),
        ({"expected_total": 3, "failed_policy": "ignore"}, "failed_policy"),
        ({"expected_total": 3, "items": "a"}, "items"),
        ({"expected_total": 3, "items": ["a"]}, "expected_total"),
        ({"items": ["a", None]}, "items"),
        ({"items": ["a", "  "]}, "items"),
        ({"expected_total": 3, "stop_satisfied": "yes"}, "stop_satisfied"),
        ({"expected_total": 3, "cursor": ["x"]}, "cursor"),
        ({"expected_total": 3, "expected": 3}, "expected"),
        ({"expected_total": 3, "run_id": 5}, "run_id"),
    ],
)
def test_bad_contracts_name_their_field(home: Path, goals: Goals, given: Any, field: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        goals.contracts.start(given)
    assert field in [problem.path for problem in refused.value.problems]
    assert files(home) == {}
    assert not (home / "progress-contracts").exists()


def test_all_mistakes_of_a_contract_are_named_at_once(goals: Goals) -> None:
    with pytest.raises(InvalidArguments) as refused:
        goals.contracts.start({"expected_total": -1, "scope": "x", "items": [1], "huh": 2})
    found = {problem.path for problem in refused.value.problems}
    assert found == {"expected_total", "scope", "items", "huh"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, ""),
        (None, ""),
        ({"completed": "a"}, "completed"),
        ({"completed": [1]}, "completed"),
        ({"completed": [""]}, "completed"),
        ({"completed": ["x" * 2_049]}, "completed"),
        ({"failed": ["a"]}, "failed"),
        ({"failed": [{"item": "a"}]}, "failed"),
        ({"failed": [{"item": "a", "reason": "  "}]}, "failed"),
        ({"failed": [{"item": "a", "reason": "r", "retryable": "no"}]}, "failed"),
        ({"failed": [{"item": "a", "reason": "r", "why": "x"}]}, "failed"),
        ({"skipped": [{"item": "a"}]}, "skipped"),
        ({"skipped": [{"item": "a", "reason": "r", "retryable": True}]}, "skipped"),
        ({"completed": ["a"], "failed": [{"item": "a", "reason": "r"}]}, "failed"),
        ({"completed": ["a"], "item_key": "b"}, "item_key"),
        ({"expected_total": 2}, "expected_total"),
        ({"expected_total": None}, "expected_total"),
        ({"min_completed": 0}, "min_completed"),
        ({"min_completed": 4}, "min_completed"),
        ({"expected_total": 4, "min_completed": 5}, "min_completed"),
        ({"failed_policy": "allow"}, "failed_policy"),
    ],
)
def test_bad_updates_name_their_field(home: Path, goals: Goals, given: Any, field: str) -> None:
    start = {"expected_total": 3, "min_completed": 1, "failed_policy": "block"}
    made = goals.contracts.start(start).contract.contract_id
    before = {name: data for name, data in files(home).items() if ".lock" not in name}
    with pytest.raises(InvalidArguments) as refused:
        goals.contracts.update(made, given)
    assert field in [problem.path for problem in refused.value.problems]
    after = {name: data for name, data in files(home).items() if ".lock" not in name}
    assert after == before


def test_a_total_that_turns_out_larger_may_be_said(goals: Goals) -> None:
    made = goals.contracts.start({"stop_condition": "no next page"}).contract.contract_id
    assert goals.contracts.update(made, {"expected_total": 3}).guard.missing_count == 3
    assert goals.contracts.update(made, {"expected_total": 5}).guard.missing_count == 5


def test_a_new_contract_begins_all_its_times(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.contracts.contract_service.wall_ms", lambda: 5)
    made = Goals(home, lambda: Ledger(home / "tasks")).contracts.start({"expected_total": 1})
    read = again(home).contracts.get(made.contract.contract_id).contract
    assert (read.created_at, read.updated_at, read.last_progress_at) == (5, 5, 5)


def test_what_is_not_there_or_no_id_is_said(goals: Goals) -> None:
    for call in (goals.contracts.get, lambda one: goals.contracts.update(one, {"cursor": "x"})):
        with pytest.raises(ContractNotFound):
            call("0" * 16)
        with pytest.raises(NotAnId):
            call("../../etc/passwd")


def test_secrets_in_items_and_reasons_are_not_written(home: Path, goals: Goals) -> None:
    made = goals.contracts.start({"expected_total": 1}).contract.contract_id
    given = {
        "completed": ["https://site.test/?token=hunter2hunter2"],
        "failed": [{"item": "b", "reason": "password=hunter2hunter2"}],
        "cursor": "https://me:hunter2hunter2@site.test/",
    }
    goals.contracts.update(made, given)
    assert not [name for name, data in files(home).items() if b"hunter2" in data]


def summary(home: Path, contract_id: str) -> Path:
    return home / "progress-contracts" / f"{contract_id}.json"


def log(home: Path, contract_id: str) -> Path:
    return home / "progress-contracts" / f"{contract_id}.items.jsonl"


def test_a_death_between_the_log_and_its_summary_loses_no_count(home: Path, goals: Goals) -> None:
    made = goals.contracts.start({"expected_total": 3}).contract.contract_id
    goals.contracts.update(made, {"completed": ["a"]})
    old = summary(home, made).read_bytes()
    goals.contracts.update(made, {"failed": [{"item": "a", "reason": "r"}], "completed": ["b"]})
    summary(home, made).write_bytes(old)  # as if its replacing had not come about
    looked = again(home).contracts.get(made)
    assert counts(looked.contract) == (1, 1, 0)
    assert summary(home, made).read_bytes() == old  # looking wrote nothing
    assert counts(again(home).contracts.update(made, {"completed": ["c"]}).contract) == (2, 1, 0)
    assert goals.contracts.get(made).contract.completed == ("b", "c")


@pytest.mark.parametrize("torn", [b'{"word":"compl', b"\x00\x00\x00", b"[1]"])
def test_a_torn_last_line_costs_only_itself(home: Path, goals: Goals, torn: bytes) -> None:
    made = goals.contracts.start({"expected_total": 3}).contract.contract_id
    goals.contracts.update(made, {"completed": ["a"]})
    with log(home, made).open("ab") as file:
        file.write(torn)
    assert counts(again(home).contracts.get(made).contract) == (1, 0, 0)
    assert counts(goals.contracts.update(made, {"completed": ["b"]}).contract) == (2, 0, 0)
    assert counts(again(home).contracts.get(made).contract) == (2, 0, 0)


def test_a_log_of_superseded_words_is_rewritten_and_others_notice(home: Path, goals: Goals) -> None:
    made = goals.contracts.start({"items": ["a", "b"]}).contract.contract_id
    other = again(home)
    other.contracts.update(made, {"completed": ["b"]})
    longest = 0
    for number in range(SLACK + 20):
        word = "failed" if number % 2 else "skipped"
        goals.contracts.update(made, {word: [{"item": "a", "reason": "again"}]})
        longest = max(longest, log(home, made).stat().st_size)
    assert log(home, made).stat().st_size < longest / 10
    assert counts(other.contracts.update(made, {"cursor": "x"}).contract) == (1, 1, 0)
    assert other.contracts.get(made, include_items=True).items == ("a", "b")


def test_a_full_disk_and_a_retry(home: Path, goals: Goals, monkeypatch: pytest.MonkeyPatch) -> None:
    made = goals.contracts.start({"expected_total": 2}).contract.contract_id
    before = summary(home, made).read_bytes()

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", disk_full)
        with pytest.raises(LedgerWriteFailed, match="No space left"):
            goals.contracts.update(made, {"completed": ["a"]})
    assert summary(home, made).read_bytes() == before
    assert counts(goals.contracts.update(made, {"completed": ["a"]}).contract) == (1, 0, 0)


def test_a_read_only_folder(home: Path, goals: Goals, read_only: Callable[[Path], None]) -> None:
    made = goals.contracts.start({"expected_total": 2}).contract.contract_id
    goals.contracts.update(made, {"completed": ["a"]})
    read_only(home)
    with pytest.raises(LedgerReadOnly):
        goals.contracts.update(made, {"completed": ["b"]})
    with pytest.raises(LedgerReadOnly):
        goals.contracts.start({"expected_total": 2})
    assert counts(again(home).contracts.get(made).contract) == (1, 0, 0)


@pytest.fixture
def corpus(home: Path) -> Goals:
    shutil.copytree(CORPUS / "progress-contracts", home / "progress-contracts")
    return again(home)


@pytest.mark.parametrize("entry", INDEX["contracts"], ids=lambda entry: Path(entry["path"]).stem)
def test_foreign_contracts_agree(corpus: Goals, home: Path, entry: dict[str, Any]) -> None:
    contract_id = Path(entry["path"]).stem
    before = files(home)
    found = corpus.contracts.get(contract_id)
    truncated = entry["counts"]["completed_truncated"], entry["counts"]["failed_truncated"]
    if truncated == (0, 0):  # it counts the kept ones alone, and so can never end
        for name, value in entry["guard"].items():
            assert getattr(found.guard, name) == value, name
    assert found.contract.completed_total == entry["counts"]["completed"] + truncated[0]
    assert files(home) == before


def test_what_the_other_program_recorded_counts_on_with_ours(corpus: Goals, home: Path) -> None:
    made = "197532ff0e2e8227"  # 2 of 5, of OpenChrome's hand
    given = {"completed": ["r2", "r3"], "failed": [{"item": "r1", "reason": "gone"}]}
    assert counts(corpus.contracts.update(made, given).contract) == (2, 1, 0)
    raw = json.loads(summary(home, made).read_text("utf-8"))
    raw.update(completed=[*raw["completed"], "r9"], updated_at=raw["updated_at"] + 5, theirs=[1])
    summary(home, made).write_text(json.dumps(raw), "utf-8")  # it writes again, without a lock
    assert counts(again(home).contracts.get(made).contract) == (3, 1, 0)
    assert counts(corpus.contracts.update(made, {"completed": ["r4"]}).contract) == (4, 1, 0)
    assert json.loads(summary(home, made).read_text("utf-8"))["theirs"] == [1]


def test_an_unreadable_contract_is_listed_with_its_reason(corpus: Goals, home: Path) -> None:
    bad = "00000000000000bb"
    summary(home, bad).write_text('{"contract_id": "00000000000000bb", "completed": 7}')
    listed = corpus.contracts.list()
    assert len(listed) == len(INDEX["contracts"]) + 1
    last = listed[-1]
    assert isinstance(last, Unreadable)
    assert "completed" in last.reason
    with pytest.raises(RecordUnreadable):
        corpus.contracts.update(bad, {"completed": ["a"]})


RECORD = """
import sys
from pathlib import Path
from engine.contracts.contract_service import Goals
from engine.ledger.ledger import Ledger
from tests.support.lock_retries import patiently
home = Path(sys.argv[1])
goals = Goals(home, lambda: Ledger(home / "tasks"))
for number in range(int(sys.argv[3]), int(sys.argv[4])):
    rows = {"completed": [f"row {number}", "shared"]}
    patiently(lambda: goals.contracts.update(sys.argv[2], rows))
"""


@pytest.mark.parametrize("linked", [False, True], ids=["alone", "of a task run"])
def test_updates_of_many_processes_are_all_counted(home: Path, goals: Goals, linked: bool) -> None:
    terms: dict[str, Any] = {"expected_total": 161}
    if linked:
        terms["run_id"] = goals.runs.start({"goal": "rows"}).run_id
    made = goals.contracts.start(terms).contract
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", RECORD, str(home), made.contract_id, str(at), str(at + 40)],
            cwd=Path(__file__).resolve().parents[2],
        )
        for at in range(0, 160, 40)
    ]
    assert [program.wait(240) for program in programs] == [0] * 4
    found = again(home).contracts.get(made.contract_id)
    assert counts(found.contract) == (161, 0, 0)
    assert found.guard.allowed
    if linked:
        assert len(again(home).runs.get(terms["run_id"]).raw["completed_items"]) == 161


def test_guard_reads_what_the_store_keeps(home: Path) -> None:
    contracts = Contracts(home, lambda: 1)
    for read in (contracts.read, contracts.items, contracts.names, contracts.forget):
        with pytest.raises(ContractNotFound):
            read("0" * 16)
    assert contracts.ids() == []
    assert guard(Contract(contract_id="0" * 16)).allowed is False


def test_an_item_that_a_contract_does_not_name_does_not_count_for_those_it_names(
    goals: Goals,
) -> None:
    started = goals.contracts.start({"items": ["a", "b"], "item_key": "row"})
    contract_id = started.contract.contract_id
    for word, items in (("completed", ["a", "x"]), ("skipped", [{"item": "y", "reason": "no"}])):
        with pytest.raises(InvalidArguments, match="is no item of this contract") as wrong:
            goals.contracts.update(contract_id, {word: items})
        assert [problem.path for problem in wrong.value.problems] == [word]
    run = goals.runs.start({"goal": "both"}, {"items": ["a", "b"], "item_key": "row"})
    with pytest.raises(InvalidArguments, match="is no item of this contract"):
        goals.runs.update(str(run.raw["run_id"]), {"completed_items": ["a/"]})
    found = goals.contracts.get(contract_id, include_items=True)
    assert (found.guard.allowed, found.missing) == (False, ("a", "b"))


def test_further_items_count_once_the_total_is_raised(goals: Goals) -> None:
    started = goals.contracts.start({"items": ["a"], "item_key": "row"})
    contract_id = started.contract.contract_id
    goals.contracts.update(contract_id, {"expected_total": 2, "completed": ["a", "found later"]})
    assert goals.contracts.get(contract_id).guard.allowed
