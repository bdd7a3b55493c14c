"""Errors of the lifecycle of runs. Source: seed 003."""

from __future__ import annotations

from engine.model.errors import EngineError


class LifecycleTransitionError(EngineError):
    """The state table forbids this transition of a run; nothing was written."""

    code = "lifecycle_transition"
    title = "The run cannot take that step"
    sentence = "Invalid lifecycle transition for run {runId}: {from} → {to}"
    advice_text = "Look at the run's state first; a run that has ended stays as it is."

    name = "LifecycleTransitionError"  # the seed's name, which programs match

    def __init__(self, run_id: str, source: str, target: str) -> None:
        self.run_id, self.source, self.target = run_id, source, target
        super().__init__(**{"name": self.name, "runId": run_id, "from": source, "to": target})


class RunNotRunning(EngineError):
    """Only a running run can be updated; nothing was written."""

    code = "run_not_running"
    title = "The run is not running"
    sentence = "Run {run_id} is {status}: only a running one can be updated."
    advice_text = "Start it first; a run that has ended stays as it is."


class RunOfTask(EngineError):
    """A run that follows a task cannot be ended directly; nothing was written."""

    code = "run_of_task"
    title = "The run follows a task"
    sentence = "Run {run_id} follows task {task_id} and ends with it."
    advice_text = "Cancel or finish the task; its run ends in the same way."
