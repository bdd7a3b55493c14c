"""Ids, states, files and stored fields of command tasks: rules without a browser."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kinds.commands.command_check import check
from engine.kinds.commands.command_document import base36, new_task_id
from engine.kinds.commands.command_file import MAX_BYTES, read_document
from engine.ledger.reader import is_command_task_id
from engine.model.errors import InvalidArguments, TransitionError
from engine.model.lifecycle import COMMAND, COMMAND_TASK, Machine
from engine.secrets.given_secrets import Scrub
from tests.commands.conftest import do, task


def test_a_task_id_is_a_time_and_a_counter_in_base_36() -> None:
    assert new_task_id(1234567890456, 82) == "task_1234567890456_2a"
    assert new_task_id(1234567890123, 1) == "task_1234567890123_1"
    first, second = new_task_id(5), new_task_id(5)
    assert int(second.rpartition("_")[2], 36) == int(first.rpartition("_")[2], 36) + 1
    assert is_command_task_id(first)


def test_two_processes_do_not_begin_to_count_at_the_same_number() -> None:
    source = "from engine.kinds.commands.command_document import new_task_id; print(new_task_id(5))"
    ids = {
        subprocess.run([sys.executable, "-c", source], capture_output=True, check=True).stdout
        for _ in range(3)
    }
    assert len(ids) == 3


@given(st.integers(0, 10**30))
def test_base_36_is_read_back_as_the_same_number(number: int) -> None:
    assert int(base36(number), 36) == number


@pytest.mark.parametrize(
    "given", ["task_1_", "task_x_1", "Task_1_1", "task_1_1/..", "task_1_A", "0123456789abcdef", ""]
)
def test_other_texts_are_no_command_task_ids(given: str) -> None:
    assert not is_command_task_id(given)


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("http://LOCALHOST.:8000/x", "localhost:8000"),
        ("http://127.1/", "127.0.0.1:80"),
        ("https://stra\u00dfe.example", "xn--strae-oqa.example:443"),
    ],
)
def test_the_place_of_an_address_is_the_one_that_is_judged(typed: str, place: str) -> None:
    assert check(task(do("goto", url=typed))).places == (place,)


def test_a_task_has_the_fields_of_the_seed_and_no_others() -> None:
    plan = check(task(do("screenshot"), metadata={"a": [1.5, {"token": "x"}]}))
    made = json.loads(
        msgspec.json.encode(msgspec.structs.replace(plan, task_id="task_1_1").task(7))
    )
    assert made == {
        "id": "task_1_1",
        "instanceId": "",
        "name": "A try",
        "intention": "To see whether it works",
        "commands": [
            {
                "id": "task_1_1_cmd_0",
                "tool_name": "browser_content",
                "intention": "to screenshot",
                "args": {"action": "screenshot"},
                "status": "pending",
            }
        ],
        "status": "queued",
        "currentCommandIndex": 0,
        "createdAt": 7,
        "metadata": {"a": [1.5, {"token": "x"}]},
    }


@given(st.lists(st.sampled_from(sorted({*COMMAND.steps, *COMMAND_TASK.steps})), max_size=6))
def test_no_state_is_reached_but_by_the_diagrams(wishes: list[str]) -> None:
    whole = check(task(do("screenshot"))).task(0)
    pairs: list[tuple[Any, Machine]] = [(whole, COMMAND_TASK), (whole.commands[0], COMMAND)]
    for subject, machine in pairs:
        for wish in wishes:
            before = subject.status
            try:
                subject.move(wish, 5)
            except TransitionError:
                assert subject.status == before
                assert not machine.allows(before, wish)
            else:
                assert machine.allows(before, wish)


def test_what_was_never_begun_has_no_times() -> None:
    command = check(task(do("screenshot"))).task(0).commands[0]
    command.move("skipped", 9)
    assert "startedAt" not in (told := msgspec.to_builtins(command))
    assert "completedAt" not in told


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b"{", "not_json"),
        (b"\xff{}", "not_utf8"),
        (b'{"a": 1, "a": 2}', "not_json"),
        (b'{"a": NaN}', "not_json"),
        (b'{"a": 1e999}', "not_json"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "not_json"),
        (b"[" * 41 + b"]" * 41, "too_deep"),
        (b" " * (MAX_BYTES + 1), "too_large"),
    ],
)
def test_a_file_that_two_programs_could_read_differently_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        read_document(data, "task.json")
    assert [problem.code for problem in caught.value.problems] == [code]
    assert str(caught.value).startswith("task.json: ")


def test_a_byte_order_mark_in_front_is_passed_over() -> None:
    assert read_document(b'\xef\xbb\xbf{"a": "[[[["}', "x") == {"a": "[[[["}


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:0e1 \\u', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_in_a_sentence(data: bytes) -> None:
    said = "read"
    try:
        read_document(data, "x")
    except InvalidArguments as error:
        said = str(error)
    assert said


def test_of_typed_text_only_its_length_is_kept_unless_the_command_says_so() -> None:
    plan = check(
        task(
            do("type", selector="#a", text="swordfish {{n}}"),
            do("type", selector="#a", text="swordfish", keep_text=True),
            do("type", selector="#a", text="{{n}}"),
            do("type", selector="#a", text={"secret": "env:PW"}),
            do("keyboard", key="s"),
            do("keyboard", key="Enter"),
            variables={"n": "12345"},
        ),
        environ={"PW": "hunter2"},
    )
    kept = [dict(step.stored) for step in plan.steps]
    assert kept[0]["text"] == "[redacted]"
    assert kept[0]["text_length"] == len("swordfish 12345")
    assert kept[1]["text"] == "swordfish"
    assert kept[2]["text"] == "{{n}}"
    assert kept[3]["text"] == {"secret": "env:PW"}
    assert kept[4] == {"action": "keyboard", "key": "[redacted]", "key_length": 1}
    assert kept[5]["key"] == "Enter"
    assert "12345" not in json.dumps(plan.stored)
    assert "hunter2" not in repr(plan) + repr(plan.steps)


SECRET = st.text(st.characters(codec="utf-8"), min_size=6, max_size=30).filter(
    lambda text: len(re.sub(r"\W", "", text)) >= 5 and text == text.strip()
)


@given(SECRET, st.text(max_size=20), st.text(max_size=20))
def test_a_hidden_value_gets_through_in_no_spelling(secret: str, before: str, after: str) -> None:
    scrub = Scrub([(secret, "{{x}}")])
    for spelt in (
        secret,
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        html.escape(secret),
        json.dumps(secret)[1:-1],
    ):
        said = scrub.published({"a": [f"{before}{spelt}{after}"], f"k {spelt}": 1})
        assert spelt not in json.dumps(said, ensure_ascii=False).replace("{{x}}", "")


def test_a_short_value_is_hidden_as_a_word_and_does_not_eat_the_rest() -> None:
    scrub = Scrub([("12", "{{n}}"), ("  ", "x"), ("", "y")])
    assert scrub.text("12 of 3121, 12.") == "{{n}} of 3121, {{n}}."


def test_of_two_values_the_longer_is_hidden_whole() -> None:
    scrub = Scrub([("pass", "A"), ("passphrase", "B")])
    assert scrub.text("passphrase pass") == "B A"
