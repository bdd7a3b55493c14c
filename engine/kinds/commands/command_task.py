"""A command task and its commands, in the words and shapes of seed 002, with both their ids.

The field names are the seed's own, camel case beside snake case: clients read them as they
stand. Every change of state goes through the tables of `lifecycle`.
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
# Two processes may accept a task in the same millisecond: they must not begin at the same number.
_counter = itertools.count(secrets.randbelow(36**6))


class CommandError(msgspec.Struct, frozen=True):
    """Why a command went wrong: one of the seed's codes, and a sentence of one line."""

    code: str
    message: str


class TaskError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a task failed, and which command did it."""

    code: str
    message: str
    command_id: str | None = field(default=None, name="commandId")


class TaskCommand(msgspec.Struct):
    """One command. `args` and `result` hold what may be stored, never what was typed."""

    id: str
    tool_name: str
    intention: str
    args: Mapping[str, Any]
    status: CommandStatus
    started_at: int | UnsetType = field(default=UNSET, name="startedAt")
    completed_at: int | UnsetType = field(default=UNSET, name="completedAt")
    result: Any = UNSET
    warning: str | UnsetType = UNSET  # of the result; stands here for readers without results
    error: CommandError | UnsetType = UNSET

    def move(self, status: CommandStatus, now_ms: int) -> None:
        """Go one step of the seed's diagram. Raises TransitionError."""
        COMMAND.check(f"command {self.id}", self.status, status)
        self.status = status
        if status == "running":
            self.started_at = now_ms
        elif self.started_at is not UNSET:  # what never began has no end either
            self.completed_at = max(now_ms, self.started_at)

    @property
    def is_over(self) -> bool:
        return COMMAND.is_terminal(self.status)


class Task(msgspec.Struct):
    """A command task as the seed shows it; times are ms since 1970."""

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
        """Go one step of the seed's diagram. Raises TransitionError."""
        COMMAND_TASK.check(f"task {self.id}", self.status, status)
        self.status = status
        if status == "running":
            self.started_at = now_ms
        else:
            self.completed_at = max(now_ms, self.created_at)

    def skip_rest(self, now_ms: int) -> list[TaskCommand]:
        """Mark everything that has not run to its end as skipped; the ones that were."""
        left = [command for command in self.commands if not command.is_over]
        for command in left:
            command.move("skipped", now_ms)
        return left


def new_task_id(now_ms: int, number: int | None = None) -> str:
    """`task_{ms}_{counter in base 36}`; the counter runs on for the life of the process."""
    return f"task_{now_ms}_{base36(next(_counter) if number is None else number)}"


def command_id(task_id: str, index: int) -> str:
    return f"{task_id}_cmd_{index}"


def base36(number: int) -> str:
    """A whole number from 0 on, in the digits 0-9 and a-z."""
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
        if not number:
            return digits


def finished(commands: Iterable[TaskCommand]) -> int:
    """How many ran to an end of their own."""
    return sum(command.status in ("success", "error") for command in commands)
