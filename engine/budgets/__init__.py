"""Budgets of a task (seed 004): the policy, the counting of calls, and the status."""

from engine.budgets.budget_policy import (
    BUDGETS,
    allows,
    defaulted,
    lasted_ms,
    problems,
    runs_out_at,
)
from engine.budgets.call_counting import (
    OBSERVING,
    RECENT,
    BudgetStatus,
    Gauge,
    Level,
    ToolCall,
    at,
    before,
    counters_of,
    fold,
    no_calls,
    rises,
    verdict,
)

__all__ = [
    "BUDGETS",
    "OBSERVING",
    "RECENT",
    "BudgetStatus",
    "Gauge",
    "Level",
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
