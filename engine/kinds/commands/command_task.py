"""A command task and its commands in the format of seed 002, with both ids.

The field names are the seed's, camel case mixed with snake case, because clients depend on them.
Every change of state is checked against the tables of `lifecycle`.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType, field

from engine.model.lifecycle import COMMAND, COMMAND_TASK
from engine.model.records import Status

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
