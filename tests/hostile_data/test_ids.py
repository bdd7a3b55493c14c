"""A malformed id is refused before a path is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.listing import is_task_id
from engine.model.errors import NotATaskId
from fixtures.hostile_ledger import HOSTILE_TEXTS
from tests.hostile_data.sweep import tree
from tests.support.loaded_octask import CAN_FORK, Loaded

NEARLY = (
    *("0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0", "0123456789abcdef\n"),
    *("\n0123456789abcdef", " 0123456789abcdef", "0123456789abcdeg", "0x23456789abcdef"),
    *(
        "\u0660123456789abcdef",
        "\uff10123456789abcdef",
        "0123456789abcde\u0301",
        "0123456789abcde\0",
    ),
    *("..", ".", "", "/", "../0123456789abcdef", "0123456789abcdef/", "0123456789abcdef/.."),
    *("./0123456789abcde", ".runners", "..\\..\\windows", "C:\\windows", "\\\\host\\share"),
    *("0123456789abcde\udc80", "~root", "-rf", "0123456789abcdef.json", "0123456789abcdef.."),
)
ANY_TEXT = st.text(st.characters(codec=None)) | st.sampled_from([*NEARLY, *HOSTILE_TEXTS.values()])
DIGITS = st.text("0123456789abcdefABCDEFg\u0660\uff10\n./\\", min_size=14, max_size=18)


@pytest.mark.case("R41")
@given(ANY_TEXT | DIGITS)
def test_an_id_is_16_lower_case_hex_digits_of_ascii_and_nothing_else(text: str) -> None:
    wanted = len(text) == 16 and set(text) <= set("0123456789abcdef")
    assert is_task_id(text) == wanted


@pytest.mark.case("R41")
@pytest.mark.parametrize("given_id", NEARLY, ids=ascii)
def test_nothing_of_a_ledger_is_touched_for_what_is_no_id(tmp_path: Path, given_id: str) -> None:
    root = tmp_path / "tasks"
    lease = Lease.acquire(root)
    ledger = Ledger(root, lease=lease)
    before = tree(tmp_path)
    for ask in (
        *(ledger.read, ledger.read_raw, ledger.read_events, ledger.tail_units, ledger.has_result),
        *(ledger.open_result, ledger.request_cancel, ledger.claim, ledger.stamp),
        lambda text: list(ledger.read_pages(text)),
        lambda text: ledger.append_event(text, "log"),
        lambda text: ledger.append_page(text, {}),
        lambda text: ledger.mutate(text, lambda raw: None),
        lambda text: ledger.read_artifact(text, "x.png"),
        lambda text: ledger.read_document(text, "commands.json"),
    ):
        with pytest.raises(NotATaskId, match="is not a task id"):
            ask(given_id)
    assert tree(tmp_path) == before
    lease.release()


VERBS: tuple[tuple[str, ...], ...] = (
    *(("get",), ("wait",), ("cancel",), ("rerun",), ("stop",), ("update", "--note", "x")),
    *(("export", "--format", "csv"), ("finish", "--outcome", "completed")),
)


@pytest.mark.skipif(not CAN_FORK, reason="this system has no fork")
@pytest.mark.case("R41")
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_invalid_ids_exit_with_2(tmp_path: Path, octask: Loaded, verb: tuple[str, ...]) -> None:
    for given_id in ("0123456789ABCDEF", "0123456789abcdef\n", "../../etc/passwd", "\u0660" * 16):
        answer = octask(verb[0], given_id, *verb[1:], "--json", "--home", str(tmp_path / "home"))
        assert answer.code == 2, answer.said
        told = json.loads(answer.out)
        error = told["error"] if "error" in told else told["refused"][0]
        assert error["code"] in ("not_a_task_id", "bad_usage", "invalid_arguments"), error
        assert not list(tmp_path.rglob("*.json*"))
