"""What can be wrong with a contract, a task run, or an attempt to call one complete."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.contracts.bulk_progress import Guard
from engine.contracts.completion_hints import Hint
from engine.model.errors import EngineError


class ContractNotFound(EngineError):
    """There is no contract with this id."""

    code = "bulk_progress_not_found"
    title = "No such contract"
    sentence = "There is no contract {id} in {path}."
    advice_text = "Look at `octask contract list`, or point --home at another folder."


class TaskRunNotFound(EngineError):
    """There is no task run with this id."""

    code = "task_run_not_found"
    title = "No such task run"
    sentence = "There is no task run {id} in {path}."
    advice_text = "Look at `octask task-run list`, or point --home at another folder."


class InvalidRunStep(EngineError):
    """A task run cannot take this step from where it stands; nothing was written."""

    code = "invalid_task_run_transition"
    title = "That step is not allowed now"
    sentence = "{message}"
    advice_text = "Look at the task run's state first."


class CannotComplete(EngineError):
    """What was to be called complete is nothing that a person may complete now."""

    code = "cannot_complete"
    title = "That cannot be completed"
    sentence = "{subject} cannot be completed: {reason}"
    advice_text = "{way_out}"


class BulkCompletionRefused(EngineError):
    """The guard of a contract stands against COMPLETED; nothing changed but an event.

    `guard` has the counts and the next action, `hint` the warning for whoever drives the task.
    """

    code = "bulk_completion_guard_failed"
    title = "Not complete yet"
    sentence = "{reason}"
    advice_text = "{suggested_next_action}"

    def __init__(self, guard: Guard, hint: Hint) -> None:
        self.guard = guard
        self.hint = hint
        super().__init__(reason=guard.reason, suggested_next_action=guard.suggested_next_action)

    def data(self) -> dict[str, Any]:
        """What a program needs to go on."""
        return {
            "completion_guard": msgspec.to_builtins(self.guard),
            "hint": msgspec.to_builtins(self.hint),
        }
