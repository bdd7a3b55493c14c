"""Warning for a premature completion: the missing items and the next action."""

from __future__ import annotations

import msgspec

from engine.contracts.bulk_progress import Guard

RULE = "bulk-progress-premature-completion"
TOOL = "oc_bulk_progress_update"


class Suggestion(msgspec.Struct, frozen=True):
    """Suggested tool and the reason for it."""

    tool: str
    reason: str


class Hint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Completion hint; `fire_count` counts its occurrences for this task or run.

    Source: seed 001 (a warning-level hint with the missing count and the next action).
    """

    severity: str = "warning"
    rule: str = RULE
    fire_count: int = 1
    missing_count: int | None = None
    suggestion: Suggestion


def premature(guard: Guard, fire_count: int) -> Hint:
    """Build the hint for a refused completion."""
    return Hint(
        fire_count=fire_count,
        missing_count=guard.missing_count,
        suggestion=Suggestion(TOOL, guard.suggested_next_action),
    )
