"""commands.json of any content is read as a task, or refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.progress import CommandLines, ending
from engine.cli.run import report
from engine.kinds.commands.command_document import Task, TaskCommand, task_in
from engine.ledger.files import Unusable

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMES = {"id", "name", "intention", "instanceId", "status", "error", "metadata", "args", "result"}
NAMES |= {"tool_name", "createdAt", "startedAt", "completedAt", "currentCommandIndex"}
MEMBERS = st.dictionaries(st.sampled_from(sorted(NAMES)), ANYTHING)


@given(MEMBERS, st.lists(MEMBERS, max_size=3) | ANYTHING)
def test_any_command_document_is_shown_or_refused(task: dict[str, Any], commands: Any) -> None:
    data = json.dumps({**task, "commands": commands}).encode()
    try:
        found = task_in(data)
    except Unusable:
        return
    whole = {"id": "t", "name": "", "status": "failed", "createdAt": 0, **found}
    whole["status"] = "failed"  # by meta.json, see `command_task`
    lines = CommandLines(several=True)
    for number, command in enumerate(found["commands"]):
        lines.line(whole, number, {**command, "status": "error"}).encode()
    ending(whole, "0" * 16).encode()
    report([(whole, Path("folder"))])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[]", "not a JSON object"),
        (b"{", "cut short"),
        (b'{"commands": 7}', "no list of objects"),
        (b'{"commands": [null]}', "no list of objects"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "nested deeper"),
    ],
)
def test_a_command_document_that_is_none_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(Unusable, match=reason):
        task_in(data)


def test_a_whole_command_document_comes_back_as_it_was() -> None:
    command = TaskCommand("c", "browser_navigate", "go", {"url": "x"}, "success", 5, 7)
    task = Task("t", "i", "name", "why", [command], "completed", 1, 4, 5, 7)
    assert task_in(msgspec.json.encode(task)) == {
        **msgspec.to_builtins(task),
        "status": "completed",
    }
