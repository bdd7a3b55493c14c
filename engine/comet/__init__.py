"""The lifecycle of runs (seed 003): thirteen fields, five states, six operations.

Every task that this engine executes has one run, which follows it; a host may also keep
runs of its own. Records lie in `<home>/comet-runs/`, transitions in `<home>/audit/`.
"""

from engine.comet.errors import LifecycleTransitionError, RunNotRunning, RunOfTask
from engine.comet.linked import LinkedRuns
from engine.comet.record import Run, RunFacts, RunUpdate, envelope, problems
from engine.comet.runs import Runs

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
