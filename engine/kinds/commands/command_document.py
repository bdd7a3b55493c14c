"""A command task with its commands in the format of seed 002, and its `commands.json`.

The field names are the seed's, camel case mixed with snake case, because clients depend on them.
Every change of state is checked against the tables of `lifecycle`. The answer of seed 002 for a
task merges the document with the stored results.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType, field

from engine.ledger import meta
from engine.ledger.files import Unusable
from engine.ledger.reader import LedgerReader
from engine.model.errors import TaskUnreadable
from engine.model.lifecycle import COMMAND, COMMAND_TASK
from engine.model.records import COMMANDS_NAME, META_NAME, Status, TaskRecord, Unreadable
from engine.model.status import moment

TaskStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
CommandStatus = Literal["pending", "running", "success", "error", "skipped"]

STATUS_OF: Final[Mapping[str, TaskStatus]] = {
    Status.PENDING: "queued",
    Status.RUNNING: "running",
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
# Two processes may accept a task in the same millisecond: equal counters would give equal ids.
_counter = itertools.count(secrets.randbelow(36**6))


class CommandError(msgspec.Struct, frozen=True):
    """The error of a command: a code of the seed and a one-line message."""

    code: str
    message: str


class TaskError(msgspec.Struct, frozen=True, omit_defaults=True):
    """The error of a task, with the command that caused it."""

    code: str
    message: str
    command_id: str | None = field(default=None, name="commandId")


class TaskCommand(msgspec.Struct):
    """One command. `args` and `result` hold the storable form, never typed text."""

    id: str
    tool_name: str
    intention: str
    args: Mapping[str, Any]
    status: CommandStatus
    started_at: int | UnsetType = field(default=UNSET, name="startedAt")
    completed_at: int | UnsetType = field(default=UNSET, name="completedAt")
    result: Any = UNSET
    warning: str | UnsetType = UNSET  # of the result; repeated here for readers without results
    error: CommandError | UnsetType = UNSET
    failure: Mapping[str, str] | UnsetType = UNSET  # what the page showed, see failure_evidence

    def move(self, status: CommandStatus, now_ms: int) -> None:
        """Change the state along the seed's diagram. Raises TransitionError."""
        COMMAND.check(f"command {self.id}", self.status, status)
        self.status = status
        if status == "running":
            self.started_at = now_ms
        elif self.started_at is not UNSET:  # a command that never started has no end time
            self.completed_at = max(now_ms, self.started_at)

    @property
    def is_over(self) -> bool:
        return COMMAND.is_terminal(self.status)


class Task(msgspec.Struct):
    """A command task in the format of the seed; times are ms since 1970."""

    id: str
    instance_id: str = field(name="instanceId")
    name: str
    intention: str
    commands: list[TaskCommand]
    status: TaskStatus
    current_command_index: int = field(name="currentCommandIndex")
    created_at: int = field(name="createdAt")
    started_at: int | UnsetType = field(default=UNSET, name="startedAt")
    completed_at: int | UnsetType = field(default=UNSET, name="completedAt")
    error: TaskError | UnsetType = UNSET
    metadata: Any = UNSET

    def move(self, status: TaskStatus, now_ms: int) -> None:
        """Change the state along the seed's diagram. Raises TransitionError."""
        COMMAND_TASK.check(f"task {self.id}", self.status, status)
        self.status = status
        if status == "running":
            self.started_at = now_ms
        else:
            self.completed_at = max(now_ms, self.created_at)

    def skip_rest(self, now_ms: int) -> list[TaskCommand]:
        """Mark all unfinished commands as skipped; return those that changed."""
        left = [command for command in self.commands if not command.is_over]
        for command in left:
            command.move("skipped", now_ms)
        return left


def new_task_id(now_ms: int, number: int | None = None) -> str:
    """Return `task_{ms}_{counter in base 36}`; the counter is unique within the process."""
    return f"task_{now_ms}_{base36(next(_counter) if number is None else number)}"


def command_id(task_id: str, index: int) -> str:
    return f"{task_id}_cmd_{index}"


def base36(number: int) -> str:
    """Format a non-negative integer with the digits 0-9 and a-z."""
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
        if not number:
            return digits


def finished(commands: Iterable[TaskCommand]) -> int:
    """Return the number of commands with the status success or error."""
    return sum(command.status in ("success", "error") for command in commands)


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
    if "failure" in found:
        told = found.pop("failure")
        told = told if isinstance(told, dict) else {}
        found["failure"] = {name: one for name, one in told.items() if isinstance(one, str)}
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
