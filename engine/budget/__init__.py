"""The budgets of a task (seed 004): what may be asked for, how calls count, how it stands."""

from engine.budget.fold import (
    OBSERVING,
    RECENT,
    Gauge,
    Level,
    Standing,
    ToolCall,
    at,
    before,
    counters_of,
    fold,
    no_calls,
    rises,
    verdict,
)
from engine.budget.lasting import lasted_ms, runs_out_at
from engine.budget.policy import BUDGETS, allows, defaulted, problems

__all__ = [
    "BUDGETS",
    "OBSERVING",
    "RECENT",
    "Gauge",
    "Level",
    "Standing",
    "ToolCall",
    "allows",
    "at",
    "before",
    "counters_of",
    "defaulted",
    "fold",
    "lasted_ms",
    "no_calls",
    "problems",
    "rises",
    "runs_out_at",
    "verdict",
]
