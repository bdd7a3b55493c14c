"""The guard accepts if and only if the rule says so; the counts are exact, whatever was said."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine.contracts.bulk_progress import (
    KEPT,
    WORDS,
    Contract,
    Failed,
    Guard,
    Note,
    Word,
    guard,
    recorded,
)
from engine.contracts.contract_requests import Start, Update
from engine.contracts.contract_store import Contracts

NOTES = some.lists(
    some.builds(
        Note,
        some.sampled_from(WORDS),
        some.integers(0, 12).map(lambda number: f"item {number}"),
        some.just("a reason"),
    ),
    max_size=60,
)
CONTRACTS = some.builds(
    Contract,
    contract_id=some.just("0" * 16),
    expected_total=some.none() | some.integers(0, 14),
    min_completed=some.none() | some.integers(0, 14),
    stop_condition=some.sampled_from(["", "  ", "no next page"]),
    stop_satisfied=some.booleans(),
    failed_policy=some.sampled_from(["allow", "block"]),
)


def told(contract: Contract, notes: list[Note]) -> tuple[Contract, dict[str, Word]]:
    """The contract after `notes`, one at a time, and a model of it."""
    words: dict[str, Word] = {}
    for note in notes:
        contract = recorded(contract, [note], words.get)
        words.pop(note.item, None)
        words[note.item] = note.word
    return contract, words


@given(CONTRACTS, NOTES)
@pytest.mark.case("R87")
def test_the_completion_guard_follows_the_rule(contract: Contract, notes: list[Note]) -> None:
    contract, words = told(contract, notes)
    counts = Counter(words.values())
    expected = contract.expected_total
    allowed = (
        (expected is None or len(words) >= expected)
        and counts["completed"] >= (contract.min_completed or 0)
        and (expected is not None or (contract.stop_satisfied and contract.stop_condition.strip()))
        and not (contract.failed_policy == "block" and counts["failed"])
    )
    answer = guard(contract)
    assert answer.allowed == bool(allowed)
    assert (answer.completed_count, answer.failed_count, answer.skipped_count) == tuple(
        counts[word] for word in WORDS
    )
    assert answer.reason.endswith(".")
    assert answer.suggested_next_action


@given(NOTES)
@pytest.mark.case("R89")
def test_an_item_stands_in_one_list_and_the_latest_word_wins(notes: list[Note]) -> None:
    contract, words = told(Contract(contract_id="0" * 16), notes)
    listed = {
        "completed": list(contract.completed),
        "failed": [one.item for one in contract.failed],
        "skipped": [one.item for one in contract.skipped],
    }
    for word in WORDS:
        assert listed[word] == [item for item, last in words.items() if last == word]


@given(NOTES)
def test_many_words_at_once_are_what_one_after_another_are(notes: list[Note]) -> None:
    one_by_one, _ = told(Contract(contract_id="0" * 16), notes)
    assert recorded(Contract(contract_id="0" * 16), notes, lambda _: None) == one_by_one


def answer(**fields: Any) -> Guard:
    return guard(Contract(contract_id="0" * 16, **fields))


@pytest.mark.parametrize(
    ("fields", "reason", "missing", "action"),
    [
        (
            {"expected_total": 3, "completed_total": 1, "item_key": "url", "cursor": "u2"},
            "Bulk progress incomplete: 1/3 url items observed.",
            2,
            "Continue processing url items from cursor u2.",
        ),
        (
            {"expected_total": 5, "completed_total": 2, "item_key": "row_id"},
            "Bulk progress incomplete: 2/5 row_id items observed.",
            3,
            "Continue processing row_id items from cursor (none).",
        ),
        (
            {
                "expected_total": 3,
                "completed_total": 1,
                "failed_total": 2,
                "min_completed": 2,
                "item_key": "url",
            },
            "Bulk progress incomplete: min_completed 2 not met.",
            1,
            "Complete at least 1 more url item(s), "
            "or use force with a reason if the task must end early.",
        ),
        (
            {"completed_total": 1, "stop_condition": "no next page"},
            "Bulk progress incomplete: stop condition is not satisfied (no next page).",
            None,
            "Continue until stop condition is satisfied: no next page.",
        ),
        (
            {
                "expected_total": 2,
                "completed_total": 1,
                "failed_total": 1,
                "failed_policy": "block",
            },
            "Bulk progress incomplete: 1 item item(s) failed, and its policy is to block.",
            None,
            "Retry or skip the failed item item(s), "
            "or use force with a reason if the task must end early.",
        ),
    ],
)
@pytest.mark.case("R87")
def test_each_refusal_has_its_sentence_and_the_first_rule_speaks(
    fields: dict[str, Any], reason: str, missing: int | None, action: str
) -> None:
    found = answer(**fields)
    assert (found.allowed, found.reason) == (False, reason)
    assert (found.missing_count, found.suggested_next_action) == (missing, action)


@pytest.mark.parametrize(
    ("failed", "policy", "allowed"),
    [(0, "allow", True), (1, "allow", True), (0, "block", True), (1, "block", False)],
)
def test_the_policy_decides_about_failed_items(failed: int, policy: str, allowed: bool) -> None:
    found = answer(
        expected_total=3, completed_total=3 - failed, failed_total=failed, failed_policy=policy
    )
    assert found.allowed is allowed
    assert found.completed_count == 3 - failed


@pytest.mark.case("R89")
def test_lists_keep_the_newest_500_and_counts_go_on() -> None:
    notes = [Note("completed", f"row {number}") for number in range(1_200)]
    contract = recorded(Contract(contract_id="0" * 16), notes, lambda _: None)
    assert contract.completed == tuple(f"row {number}" for number in range(700, 1_200))
    assert (contract.completed_total, contract.completed_truncated) == (1_200, 700)


@pytest.mark.case("R89")
def test_counts_are_exact_at_100_000_items_with_duplicates_and_retries(home: Path) -> None:
    chance = random.Random(1041)
    contracts = Contracts(home, lambda: 1)
    made = contracts.start(Start({"expected_total": 100_000}, None)).contract_id
    words: dict[str, Word] = {}
    everything = [f"https://site.test/row/{number}" for number in range(100_000)]
    chance.shuffle(everything)
    for at in range(0, len(everything), 5_000):
        fresh = everything[at : at + 5_000]
        again = chance.choices(everything[: at + 5_000], k=1_500)  # most fell out of the 500
        notes = [
            Note(chance.choices(WORDS, (8, 2, 1))[0], item, "why") for item in (*fresh, *again)
        ]
        with contracts.hold(made) as held:
            contract = held.apply(Update(tuple(notes), {}))
        for note in notes:
            words.pop(note.item, None)
            words[note.item] = note.word
        totals = (contract.completed_total, contract.failed_total, contract.skipped_total)
        assert totals == tuple(Counter(words.values())[word] for word in WORDS)
    assert guard(contract).allowed
    newest = [item for item, word in words.items() if word == "failed"][-KEPT:]
    kept = [one.item for one in contract.failed]
    assert len(kept) > 100
    assert kept == newest[-len(kept) :]
    summary = Contracts(home, lambda: 2).read(made)  # a restart counts the same
    assert summary == contract


def test_a_contract_reads_back_as_it_was_written() -> None:
    contract = Contract(contract_id="0" * 16, failed=(Failed("a", "b", True),), expected_total=3)
    assert msgspec.convert(msgspec.to_builtins(contract), Contract) == contract
