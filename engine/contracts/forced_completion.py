"""Forced completion: the check before it, and the override of the guard.

User, time and reason of a force are kept permanently, so the user sees the missing items first. The
force is recorded before the change, and the record is undone if the change fails.
Source: seed 001, its guard and its force.
"""

from __future__ import annotations

import getpass
import platform
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from engine.contracts.bulk_progress import Contract, Guard, guard
from engine.contracts.contract_store import LockedContract
from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError
from engine.model.records import ENVELOPE, TASK_RUN, TERMINAL, Status, TaskRecord, TaskView
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


Act = Callable[[], TaskRecord]


class Force(NamedTuple):
    """Override of a guard with its reason and user; validated by `force_of`."""

    reason: str
    by: str


def enforced(
    held: LockedContract, force: Force, ledger: Ledger, task_id: str, act: Act
) -> TaskRecord:
    """Record the force, then call `act`; remove the record if `act` is refused.

    The record stays if another process completed the task in between by means of this force.
    """
    before = held.contract
    forced = held.force(force.reason, force.by)
    counts = True
    try:
        return act()
    except BaseException:
        counts = not guard(before).allowed and _is_completed(ledger, task_id)
        if not counts:
            held.restore(before)
        raise
    finally:
        if counts:
            said = {**msgspec.to_builtins(guard(before)), "forced": written(forced)}
            ledger.note(task_id, [("guard", said)], durable=True)


def marked(ledger: Ledger, task_id: str, now_ms: int, finish: Act) -> TaskRecord:
    """Call `finish` with the force marked in the task itself, which lists show permanently."""

    def mark(raw: dict[str, Any]) -> None:
        changes.engine_of(raw)["forced_at"] = now_ms

    def unmark(raw: dict[str, Any]) -> None:
        changes.engine_of(raw).pop("forced_at", None)

    ledger.mutate(task_id, mark)
    try:
        return finish()
    except BaseException:
        with suppress(EngineError):  # another process has ended it: its state stays
            ledger.mutate(task_id, unmark)
        raise


def _is_completed(ledger: Ledger, task_id: str) -> bool:
    try:
        return ledger.read_raw(task_id).get("status") == Status.COMPLETED
    except EngineError:
        return False


def written(contract: Contract) -> dict[str, Any]:
    """Encode the force of a contract for events and task runs."""
    found: dict[str, Any] = msgspec.to_builtins(contract.forced)
    return found
