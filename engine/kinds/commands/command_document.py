"""`commands.json`: a command task with its command states, merged with stored results.

The merged form is the answer of seed 002 for a task.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, get_args

import msgspec

from engine.kinds.commands.command_task import STATUS_OF, CommandStatus, Task, TaskCommand
from engine.ledger import meta
from engine.ledger.files import Unusable
from engine.ledger.reader import LedgerReader
from engine.model.errors import TaskUnreadable
from engine.model.records import COMMANDS_NAME, META_NAME, TaskRecord, Unreadable
from engine.model.status import moment

# Validation of a stored commands.json, so that the result has the seed's shapes.
# The file is editable by other programs, and a page line replaces a command: a field of another
# shape is omitted, or empty where it is required.

Found = dict[str, Any]

_TEXTS: Final = ("id", "instanceId", "name", "intention")
_COMMAND_TEXTS: Final = ("id", "tool_name", "intention")
_TIMES: Final = ("createdAt", "startedAt", "completedAt")
_STATUSES: Final = frozenset(get_args(CommandStatus))


def task_in(data: bytes) -> Found:
    """Parse commands.json, and keep the valid fields of the task.

    Raises:
        Unusable: it is not a JSON object, or its commands are not a list of objects.
    """
    raw = meta.without_surrogates(meta.decode_lenient(data))
    commands = raw.pop("commands", [])
    if not isinstance(commands, list) or not all(isinstance(each, dict) for each in commands):
        raise Unusable("its commands are no list of objects")
    texts = {name: raw.pop(name) for name in _TEXTS if name in raw}
    found = _timed(raw)
    found |= {name: text for name, text in texts.items() if isinstance(text, str)}
    if type(found.get("currentCommandIndex")) is not int:
        found.pop("currentCommandIndex", None)
    return {**found, "commands": [command_in(each) for each in commands]}


def command_in(raw: Mapping[str, Any]) -> Found:
    """Validate a stored command, and add missing required fields."""
    found = _timed(raw)
    for name in _COMMAND_TEXTS:
        found[name] = found[name] if isinstance(found.get(name), str) else ""
    known = isinstance(found.get("status"), str) and found["status"] in _STATUSES
    found["status"] = found["status"] if known else "pending"
    if not isinstance(found.get("warning", ""), str):
        del found["warning"]
    found["args"] = found["args"] if isinstance(found.get("args"), dict) else {}
    return found


def _timed(raw: Mapping[str, Any]) -> Found:
    """Return `raw` with valid times and a complete error."""
    found = {
        name: value
        for name, value in raw.items()
        if name not in _TIMES or moment(value) is not None
    }
    error = found.pop("error", None)
    if isinstance(error, Mapping):
        texts = {name: str(error.get(name) or "") for name in ("code", "message")}
        found["error"] = {**error, **texts}
    return found


_encode: Final = msgspec.json.encode
_OVER: Final = ("success", "error", "skipped")


class Document:
    """Incremental encoder of one task's `commands.json`.

    Results are omitted, because pages.jsonl has them and each update would write them again.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._commands = [_light(command) for command in task.commands]

    def encoded(self, number: int | None = None) -> bytes:
        """Return the file's bytes; `number` is the only changed command, None means any."""
        if number is None:
            self._commands = [_light(command) for command in self._task.commands]
        else:
            self._commands[number] = _light(self._task.commands[number])
        whole = {
            field.encode_name: value
            for field in msgspec.structs.fields(self._task)
            if (value := getattr(self._task, field.name)) is not msgspec.UNSET
        }
        return _encode({**whole, "commands": self._commands}) + b"\n"


def _light(command: TaskCommand) -> msgspec.Raw:
    return msgspec.Raw(_encode(msgspec.structs.replace(command, result=msgspec.UNSET)))


def command_task(
    ledger: LedgerReader, task_id: str, *, results: bool = True
) -> dict[str, Any] | None:
    """Return a command task in the format of seed 002; None for other kinds.

    meta.json has the state of the task; a command that was interrupted by the task's end (its
    process was killed) becomes an error, and a command that never started is skipped.

    Raises:
        NotATaskId, TaskNotFound, TaskUnreadable.
    """
    record = ledger.read(task_id)
    if isinstance(record, Unreadable) or record.kind != "commands":
        return None
    task = _kept(ledger, task_id)
    pages = ledger.read_pages(task_id) if results else ()
    found = {str(page.get("id")): command_in(page) for page in pages}
    task = {**_skeleton(record), **task, **_standing(record, task)}
    task["commands"] = [
        _overtaken(record, found.get(each["id"], each)) for each in task["commands"]
    ]
    return task


def _kept(ledger: LedgerReader, task_id: str) -> dict[str, Any]:
    """Read commands.json; empty if it is missing. Raises TaskUnreadable."""
    data = ledger.read_document(task_id, COMMANDS_NAME)
    if not data:
        return {}
    try:
        return task_in(data)
    except Unusable as error:
        path = os.path.join(ledger.root, task_id, COMMANDS_NAME)
        reason = str(error).replace(META_NAME, COMMANDS_NAME)
        raise TaskUnreadable(task_id=task_id, reason=reason, path=path) from error


def _skeleton(record: TaskRecord) -> dict[str, Any]:
    """Build a task from meta.json alone, if commands.json is missing."""
    ours, args = record.engine, record.args_summary
    return {
        "id": (ours.command_task_id if ours else None) or record.task_id,
        "instanceId": _text(args, "instanceId"),
        "name": _text(args, "task_name"),
        "intention": _text(args, "task_intention"),
        "commands": [],
        "status": "queued",
        "currentCommandIndex": 0,
        "createdAt": record.created_at if moment(record.created_at) else 0,
    }


def _text(args: Mapping[str, Any], name: str) -> str:
    given = args.get(name)
    return given if isinstance(given, str) else ""


def _standing(record: TaskRecord, task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of the task from meta.json."""
    status = STATUS_OF.get(record.status, "queued")
    told: dict[str, Any] = {"status": status}
    ended = task.get("completedAt", record.ended_at)
    if record.is_terminal and moment(ended) is not None:
        told["completedAt"] = ended
    if status == "failed" and record.error is not None and "error" not in task:
        told["error"] = {
            "code": record.error.code or "EXECUTION_ERROR",
            "message": record.error.message,
        }
    return told


def _overtaken(record: TaskRecord, command: Mapping[str, Any]) -> dict[str, Any]:
    """Return the final state of a command after the end of its task."""
    kept = dict(command)
    if not record.is_terminal or command.get("status") in _OVER:
        return kept
    broke_off = command.get("status") == "running" and record.status == "FAILED"
    kept["status"] = "error" if broke_off else "skipped"
    if broke_off and record.error is not None:
        code = record.error.code or "EXECUTION_ERROR"
        kept["error"] = {"code": code, "message": record.error.message}
    return kept
