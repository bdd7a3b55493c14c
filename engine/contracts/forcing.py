"""Check before a forced completion: missing items and reasons against it.

User, time and reason of a force are kept permanently, so the user sees the missing items first.
Source: seed 001, its guard and its force.
"""

from __future__ import annotations

import getpass
import platform
from enum import StrEnum

import msgspec

from engine.contracts.bulk_progress import Guard
from engine.model.records import ENVELOPE, TASK_RUN, TERMINAL, TaskRecord, TaskView
from engine.model.status import Standing, standing

__all__ = [
    "CompletionCheck",
    "CompletionObstacle",
    "CompletionVerdict",
    "Guard",
    "may_be_completed",
    "whoami",
]


class CompletionVerdict(StrEnum):
    """Requirement for completing a task or run."""

    FORCE = "force"  # a reason is required: the guard refuses, or the crawl still runs
    ALLOWED = "allowed"  # no contract blocks it
    NEVER = "never"


class CompletionObstacle(StrEnum):
    """Reason why a user cannot complete a task or run."""

    ENDED = "ended"
    WAITING = "waiting"  # it has not started
    STOPPING = "stopping"  # a cancel was requested; it ends as CANCELLED
    ALONE = "alone"  # without a contract it completes by itself
    UNREADABLE = "unreadable"  # its contract or its own record


class CompletionCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the completion check of one task or task run; nothing was written.

    `obstacle` holds the reason where `verdict` is NEVER. `guard` has the counts and the next
    action, where there is a contract; `missing` lists named items without a state.
    """

    subject: str
    verdict: CompletionVerdict
    obstacle: CompletionObstacle | None = None
    guard: Guard | None = None
    missing: tuple[str, ...] = ()


def may_be_completed(view: TaskView) -> bool:
    """Return whether a completion check is worthwhile, from the record alone, for long lists."""
    entry = view.entry
    if not isinstance(entry, TaskRecord) or entry.status in TERMINAL:
        return False
    if entry.kind in (ENVELOPE, TASK_RUN):
        return True
    linked = entry.engine is not None and entry.engine.contract_id is not None
    return linked and standing(view) is Standing.RUNNING


def whoami() -> str:
    """Return the current user for permanent records: `name@machine`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user id without a name
        user = "unknown"
    return f"{user}@{platform.node()}"
