"""Which ledger an id names, and how ledgers may be called."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.ledger_ids import (
    HERE,
    LONGEST,
    free_label,
    is_label,
    ledger_label,
    plain_id,
    qualified,
)

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PLAIN = st.integers(0, 2**64 - 1).map(lambda number: f"{number:016x}") | st.integers(0).map(
    lambda ms: f"task_{ms % 10**16}_0k3"
)
LABEL = (
    st.tuples(st.sampled_from(LETTERS), st.text(LETTERS + "-", max_size=LONGEST - 1))
    .map("".join)
    .filter(lambda one: one != HERE)
)
FEW = settings(max_examples=50)


@FEW
@given(PLAIN, LABEL)
def test_an_id_tells_its_ledger_and_what_it_is_called_there(plain: str, label: str) -> None:
    whole = qualified(plain, label)
    assert (plain_id(whole), ledger_label(whole)) == (plain, label)
    assert (plain_id(plain), ledger_label(plain)) == (plain, "")
    assert qualified(plain, "") == plain
    assert whole != plain


@FEW
@given(PLAIN, st.sets(LABEL, min_size=2, max_size=5))
def test_copies_of_one_task_never_have_one_id(plain: str, labels: set[str]) -> None:
    assert len({plain, *(qualified(plain, label) for label in labels)}) == len(labels) + 1


@FEW
@given(st.lists(st.text(max_size=40), max_size=4), st.sets(LABEL, max_size=9))
def test_a_label_that_is_made_is_one_and_is_free(names: list[str], taken: set[str]) -> None:
    made = free_label(names, taken)
    assert is_label(made)
    assert made not in taken


def test_a_folder_is_called_after_what_tells_it_from_others() -> None:
    assert free_label(["tasks", ".openchrome", "Büro NAS"], ()) == "buro-nas"
    assert free_label(["Nightly Crawls (old)"], ()) == "nightly-crawls-old"
    assert free_label(["nas"], {"nas", "nas-2"}) == "nas-3"
    assert free_label(["x" * 60], {"x" * LONGEST}) == "x" * (LONGEST - 2) + "-2"
    assert free_label(["", "任务"], ()) == "ledger"
    assert free_label(["here"], ()) == "ledger"


def test_some_names_are_no_labels() -> None:
    for text in ("", HERE, "Nas", "a b", "-a", "a@b", "ä", "x" * (LONGEST + 1), "a\n"):
        assert not is_label(text)
