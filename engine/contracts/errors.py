"""Errors of contracts, task runs and their completion."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.contracts.bulk_progress import Guard, Hint
from engine.model.errors import EngineError


class ContractNotFound(EngineError):
    """No contract has this id."""

    code = "bulk_progress_not_found"
    title = "No such contract"
    sentence = "There is no contract {id} in {path}."
    advice_text = "Look at `octask contract list`, or point --home at another folder."


class TaskRunNotFound(EngineError):
    """No task run has this id."""

    code = "task_run_not_found"
    title = "No such task run"
    sentence = "There is no task run {id} in {path}."
    advice_text = "Look at `octask task-run list`, or point --home at another folder."


class InvalidRunStep(EngineError):
    """The state of the task run does not allow this step; nothing was written."""

    code = "invalid_task_run_transition"
    title = "That step is not allowed now"
    sentence = "{message}"
    advice_text = "Look at the task run's state first."


class CannotComplete(EngineError):
    """This task or task run cannot be completed by a user now."""

    code = "cannot_complete"
    title = "That cannot be completed"
    sentence = "{subject} cannot be completed: {reason}"
    advice_text = "{way_out}"


class BulkCompletionRefused(EngineError):
    """The guard of a contract blocks COMPLETED; only an event was written.

    `guard` has the counts and the next action, `hint` the warning for the agent.
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
        """Return the guard and the hint for other programs."""
        return {
            "completion_guard": msgspec.to_builtins(self.guard),
            "hint": msgspec.to_builtins(self.hint),
        }
