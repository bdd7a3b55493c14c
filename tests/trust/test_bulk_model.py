"""Bulk progress at 200,000 items, held against a model that keeps every word."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

import pytest

from engine.contracts.bulk_progress import Contract, Note, Word, guard, recorded

ITEMS: Final = 200_000
KEPT: Final = 500
WORDS: Final[tuple[Word, ...]] = ("completed", "failed", "skipped")


def told(words: dict[str, Word], word: Word) -> list[str]:
    """The items of which this word was the latest, in the order of their being said."""
    return [item for item, said in words.items() if said == word]


@pytest.mark.case("R89")
def test_counts_stay_exact_at_200_000_items_and_the_guard_goes_by_them() -> None:
    chance = random.Random(89)
    everything = [f"http://site.test/{number}" for number in range(ITEMS)]
    contract = Contract(contract_id="0" * 16, expected_total=ITEMS, min_completed=100)
    words: dict[str, Word] = {}
    for at in range(0, ITEMS, 50_000):
        some = everything[at : at + 50_000]
        again = chance.choices(everything[: at + 50_000], k=5_000)  # also failed after completed
        notes = [Note(chance.choice(WORDS), item, "why") for item in (*some, *again)]
        contract = recorded(contract, notes, words.get)
        for note in notes:
            words.pop(note.item, None)
            words[note.item] = note.word
        count = Counter(words.values())
        totals = (contract.completed_total, contract.failed_total, contract.skipped_total)
        assert totals == tuple(count[word] for word in WORDS)
        assert guard(contract).allowed is (len(words) == ITEMS)
        assert guard(contract).missing_count == (ITEMS - len(words) or None)
    assert len(contract.completed) == len(contract.failed) == KEPT
    assert list(contract.completed) == told(words, "completed")[-KEPT:]
    assert [one.item for one in contract.failed] == told(words, "failed")[-KEPT:]
    assert contract.completed_truncated == contract.completed_total - KEPT
    assert contract.failed_truncated == contract.failed_total - KEPT
