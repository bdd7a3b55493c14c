"""Calling something complete that may not be yet: what stands against it, before anybody does.

The words of a force (who, when and why) are kept for ever; so who forces has to see first
what is missing. Source: seed 001, its guard and its force.
"""

from __future__ import annotations

import getpass
import platform
from enum import StrEnum

import msgspec

from engine.contracts.bulk_progress import Guard
from engine.model.records import ENVELOPE, TASK_RUN, TERMINAL, TaskRecord, TaskView
from engine.model.status import Standing, standing

__all__ = ["Bar", "Chance", "Guard", "Prospect", "may_be_completed", "whoami"]


class Chance(StrEnum):
    """What completing it would take."""

    FORCE = "force"  # a reason: it is not what its contract asks for, or it still runs
    ALLOWED = "allowed"  # nothing: no contract stands against it
    NEVER = "never"


class Bar(StrEnum):
    """Why something can never be completed by a person, or not now."""

    ENDED = "ended"
    WAITING = "waiting"  # it has not begun
    STOPPING = "stopping"  # it was asked to stop, and ends as CANCELLED
    ALONE = "alone"  # without a contract it completes by itself
    UNREADABLE = "unreadable"  # its contract, or it itself


class Prospect(msgspec.Struct, frozen=True, kw_only=True):
    """How one task or task run stands to being called complete; nothing was written.

    `bar` says why not where it is NEVER. `guard` has the counts and the next action, where
    there is a contract; `missing` names what nobody has said a word on, as far as it is known.
    """

    subject: str
    chance: Chance
    bar: Bar | None = None
    guard: Guard | None = None
    missing: tuple[str, ...] = ()


def may_be_completed(view: TaskView) -> bool:
    """Is it worth asking for a prospect? Judged by the record alone, for long lists."""
    entry = view.entry
    if not isinstance(entry, TaskRecord) or entry.status in TERMINAL:
        return False
    if entry.kind in (ENVELOPE, TASK_RUN):
        return True
    linked = entry.engine is not None and entry.engine.contract_id is not None
    return linked and standing(view) is Standing.RUNNING


def whoami() -> str:
    """Who sits here, for what is kept for ever: `name@machine`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user id without a name
        user = "unknown"
    return f"{user}@{platform.node()}"
