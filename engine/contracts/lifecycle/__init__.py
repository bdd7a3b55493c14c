"""Lifecycle of runs (seed 003): thirteen fields, five states, six operations.

Every task that this engine executes has one run, which follows it; a host may also have runs of its
own. Records are in `<home>/comet-runs/`, transitions in `<home>/audit/`.
"""

from engine.contracts.lifecycle.errors import LifecycleTransitionError, RunNotRunning, RunOfTask
from engine.contracts.lifecycle.linked_runs import LinkedRuns
from engine.contracts.lifecycle.run_operations import Runs
from engine.contracts.lifecycle.run_store import Run, RunFacts, RunUpdate, envelope, problems

__all__ = [
    "LifecycleTransitionError",
    "LinkedRuns",
    "Run",
    "RunFacts",
    "RunNotRunning",
    "RunOfTask",
    "RunUpdate",
    "Runs",
    "envelope",
    "problems",
]
