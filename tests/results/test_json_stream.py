"""JSON in pieces reads as in one piece; damage is reported at any cut."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ledger.json_stream import MAX_CHARS, MAX_DEPTH, Damaged, JsonText, decoded
from engine.results.findings import is_json

TEXTS = st.text(alphabet=st.sampled_from('ab"\\/\n\t{}[],: é😀\u2028'), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def cut(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def walked(text: JsonText) -> Any:
    """The value, read by the smallest steps there are."""
    match text.peek():
        case "{":
            return {name: walked(text) for name in text.members()}
        case "[":
            return [walked(text) for _ in text.items()]
        case '"':
            return "".join(text.string())
    return text.value()


@given(VALUES, st.integers(1, 9), st.booleans(), st.sampled_from([None, 2]))
def test_a_value_is_the_same_in_pieces_of_any_size(value, size, ascii_only, indent) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    for read in (walked, JsonText.value):
        cursor = JsonText(cut(text, size))
        assert read(cursor) == json.loads(text)
        cursor.end()


@given(VALUES, st.integers(1, 9))
def test_a_value_can_be_passed_over_in_pieces(value, size) -> None:
    cursor = JsonText(cut(json.dumps(value) + "  [1]", size))
    cursor.skip()
    assert cursor.value() == [1]


@given(st.dictionaries(TEXTS, VALUES, min_size=1) | st.lists(VALUES, min_size=1), st.data())
def test_a_text_that_breaks_off_is_damaged_wherever_it_does(value, data) -> None:
    text = json.dumps(value)
    broken = text[: data.draw(st.integers(0, len(text) - 1))]
    for read in (walked, JsonText.value, JsonText.skip):
        with pytest.raises(Damaged):
            read(JsonText(cut(broken, 5)))


@pytest.mark.parametrize("bad", ['"\\q"', '"\\uZZZZ"', "[1,]", '{"a"}', "{1:2}", "[1 2]", "NaN"])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_what_is_no_json_is_damaged(bad: str, size: int) -> None:
    with pytest.raises(Damaged):
        walked(JsonText(cut(bad, size)))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_half_of_a_surrogate_pair_costs_one_letter(size: int) -> None:
    assert "".join(JsonText(cut('"a\\ud83db"', size)).string()) == "a\ufffdb"


def test_brackets_without_end_do_not_exhaust_the_stack() -> None:
    with pytest.raises(Damaged, match="nested"):
        JsonText(iter(["[" * (MAX_DEPTH + 2)])).skip()


def test_a_member_larger_than_may_be_held_is_refused_and_not_read() -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        yield '"'
        while True:
            taken += 1
            yield "x" * 1024 * 1024

    with pytest.raises(Damaged):
        JsonText(endless()).value()
    assert taken * 1024 * 1024 <= 4 * MAX_CHARS


def test_a_string_longer_than_may_be_held_passes_in_pieces() -> None:
    pieces = ['"', *["x" * 1024 * 1024] * 12, '"']
    assert sum(map(len, JsonText(iter(pieces)).string())) == 12 * 1024 * 1024


def test_letters_cut_between_two_blocks_stay_whole() -> None:
    data = "é😀".encode()
    assert "".join(decoded(bytes([byte]) for byte in data)) == "é😀"


@pytest.mark.parametrize("data", [b"", b"{", b'{"a":1}x', b'"\xff"', b"[NaN]", b'{"a":1}{"a":1}'])
def test_a_broken_file_is_not_called_json(data: bytes) -> None:
    assert not is_json(io.BytesIO(data))


def test_a_whole_file_is_called_json() -> None:
    assert is_json(io.BytesIO(b' {"pages": [1, {"a": "\\u00e9"}]} \n'))
