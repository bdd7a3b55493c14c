"""State machines of tasks, commands and runs: tables of allowed transitions.

Sources: seed 000 (ledger), seed 002 (command tasks and commands), seed 003 (runs); a task run (seed
001) has one more state, in which it waits for a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.model.errors import TransitionError
from engine.model.records import Status


@dataclass(frozen=True, slots=True)
class Machine:
    """Table of allowed transitions; a state without transitions is terminal."""

    name: str
    steps: Mapping[str, frozenset[str]]

    def is_terminal(self, state: str) -> bool:
        """Return whether `state` is known and terminal."""
        return state in self.steps and not self.steps[state]

    def allows(self, source: str, target: str) -> bool:
        return target in self.steps.get(source, frozenset())

    def check(self, subject: str, source: str, target: str) -> None:
        """Raise `TransitionError` unless `source` -> `target` is in the table."""
        if not self.allows(source, target):
            raise TransitionError(subject=subject, source=source, target=target)


LEDGER = Machine(
    "ledger",
    {
        Status.PENDING: frozenset({Status.RUNNING, Status.CANCELLED, Status.FAILED}),
        Status.RUNNING: frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED}),
        Status.COMPLETED: frozenset(),
        Status.FAILED: frozenset(),
        Status.CANCELLED: frozenset(),
    },
)

COMMAND_TASK = Machine(
    "command task",
    {
        "queued": frozenset({"running", "failed", "cancelled"}),
        "running": frozenset({"completed", "failed", "cancelled"}),
        "completed": frozenset(),
        "failed": frozenset(),
        "cancelled": frozenset(),
    },
)

COMMAND = Machine(
    "command",
    {
        "pending": frozenset({"running", "skipped"}),
        "running": frozenset({"success", "error", "skipped"}),
        "success": frozenset(),
        "error": frozenset(),
        "skipped": frozenset(),
    },
)

RUN = Machine(
    "run",
    {
        "pending": frozenset({"running", "aborted", "failed"}),
        "running": frozenset({"completed", "aborted", "failed"}),
        "completed": frozenset(),
        "aborted": frozenset(),
        "failed": frozenset(),
    },
)

TASK_RUN = Machine(
    "task run",
    {
        "PENDING": frozenset({"RUNNING", "NEEDS_HELP", "COMPLETED", "FAILED", "CANCELLED"}),
        "RUNNING": frozenset({"RUNNING", "NEEDS_HELP", "COMPLETED", "FAILED", "CANCELLED"}),
        "NEEDS_HELP": frozenset({"RUNNING", "NEEDS_HELP", "COMPLETED", "FAILED", "CANCELLED"}),
        "COMPLETED": frozenset(),
        "FAILED": frozenset(),
        "CANCELLED": frozenset(),
    },
)
