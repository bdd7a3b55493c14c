"""A refused completion answers with the reason and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.contracts.bulk_progress import BulkCompletionRefused
from engine.contracts.completing import force_of
from engine.contracts.contract_service import Goals
from engine.ledger.ledger import Ledger
from engine.model.errors import InvalidArguments


def goals_in(home: Path) -> Goals:
    return Goals(home, lambda: Ledger(home / "tasks"))


@pytest.mark.case("R87")
def test_one_of_three_is_refused_with_its_numbers_and_the_run_goes_on(home: Path) -> None:
    goals = goals_in(home)
    run = goals.runs.start({"goal": "all three"}, {"expected_total": 3})
    goals.runs.update(run.run_id, {"completed_items": ["a"]})
    with pytest.raises(BulkCompletionRefused) as refused:
        goals.completing.run(run.run_id, {"status": "COMPLETED"})
    told = refused.value.data()["completion_guard"]
    assert (told["missing_count"], told["failed_count"], told["completed_count"]) == (2, 0, 1)
    assert told["suggested_next_action"]
    assert refused.value.code == "bulk_completion_guard_failed"
    assert goals_in(home).runs.get(run.run_id).raw["status"] == "RUNNING"


@pytest.mark.case("R88")
@pytest.mark.parametrize("reason", [None, "", " \t\n "])
def test_force_without_a_reason_is_refused_in_words_that_say_so(reason: str | None) -> None:
    with pytest.raises(InvalidArguments, match="force needs a reason"):
        force_of(reason, "me")
