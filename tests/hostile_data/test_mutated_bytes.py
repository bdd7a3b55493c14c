"""Good bytes with a few changes: every reader takes them or refuses them in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile_data.mutating import many
from tests.hostile_data.readers import READERS, REFUSALS, Reader, shelves

EACH = 40  # the rig `bad_input` takes thousands


def check_mutations(reader: Reader, count: int) -> None:
    """Read `count` changed copies: each is a value, or is refused in a text that can be encoded."""
    reader.read(reader.good)
    for data in many(reader.good, count, reader.name):
        try:
            reader.read(data)
        except REFUSALS as error:
            refusal = str(error)
            assert refusal.encode()


@pytest.mark.case("R42", "R34", "R35")
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_changed_bytes_are_a_value_or_a_typed_refusal(reader) -> None:
    check_mutations(reader, EACH)


@pytest.mark.case("R42")
def test_changed_records_beside_the_tasks_are_a_value_or_a_typed_refusal(tmp_path: Path) -> None:
    for reader in shelves(tmp_path):
        check_mutations(reader, EACH // 2)


@pytest.mark.case("R42")
@pytest.mark.parametrize("reader", READERS[:2], ids=lambda reader: reader.name)
def test_a_record_cut_at_any_byte_is_refused_in_words(reader) -> None:
    for at in range(len(reader.good)):
        with pytest.raises(REFUSALS):
            reader.read(reader.good[:at])
