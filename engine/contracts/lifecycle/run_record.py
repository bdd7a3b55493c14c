"""Record of one run: the seed's thirteen fields, under its names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypedDict

import msgspec

from engine.model import redact
from engine.model.errors import InvalidArguments, Problem
from engine.model.lifecycle import RUN

# Safe as a file name on every system; device names of Windows (`con`) are not.
RUN_ID: Final = re.compile(
    r"(?!(?i:con|prn|aux|nul|com\d|lpt\d)\Z)[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII
)
ROUTES: Final = ("mcp", "cli", "http")
TEXT_CHARACTERS: Final = 500
METADATA_BYTES: Final = 64 * 1024


class Run(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A run's record; times are ISO 8601 in UTC. Source: seed 003, lifecycle envelope."""

    task_thread_id: str
    run_id: str
    status: str
    started_at: str
    route: str | None = None
    fallback_used: bool = False
    agent_id: str | None = None
    tab_group_id: str | None = None
    audit_session_id: str | None = None
    workflow_id: str | None = None
    completed_at: str | None = None
    failure_reason: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def is_terminal(self) -> bool:
        return RUN.is_terminal(self.status)


class RunUpdate(TypedDict, total=False):
    """Facts that may be added to a running run."""

    audit_session_id: str | None
    tab_group_id: str | None
    workflow_id: str | None
    metadata: Mapping[str, Any] | None


class RunFacts(RunUpdate, total=False):
    """Facts that may be given at a run's start."""

    route: str | None
    fallback_used: bool
    agent_id: str | None


def envelope(run: Run) -> dict[str, Any]:
    """Encode the record under the seed's names, without None fields."""
    found: dict[str, Any] = msgspec.to_builtins(run)
    return {name: value for name, value in found.items() if value is not None}


def decoded(raw: Mapping[str, Any]) -> Run:
    """Decode a record. Raises ValueError with the reason."""
    try:
        run = msgspec.convert(dict(raw), Run)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    if run.status not in RUN.steps:
        raise ValueError(f"its status is '{run.status[:40]}'")
    return run


def iso(moment_ms: float) -> str:
    """Format `2026-11-22T04:10:00.123Z`; times outside the calendar become 1970."""
    try:
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clean(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Validate, redact and bound `facts` for storage; None values are dropped.

    Raises:
        InvalidArguments: with every mistake.
    """
    found = problems(facts)
    if found:
        raise InvalidArguments(tuple(found))
    return {
        name: redact.text(value) if isinstance(value, str) else redact.value(value)
        for name, value in facts.items()
        if value is not None
    }


def problems(facts: Mapping[str, Any]) -> list[Problem]:
    """Return every mistake in the facts of a run; None values are ignored."""
    return [problem for name, value in facts.items() if (problem := _problem(name, value))]


def _problem(name: str, value: object) -> Problem | None:
    if value is None:
        return None
    if name == "fallback_used":
        right = isinstance(value, bool)
        return None if right else Problem(name, "wrong_type", "must be true or false")
    if name == "metadata":
        return _metadata_problem(value)
    if not isinstance(value, str) or not value or len(value) > TEXT_CHARACTERS:
        return Problem(name, "wrong_value", f"must be a text of 1 to {TEXT_CHARACTERS} characters")
    if name == "route" and value not in ROUTES:
        return Problem(name, "wrong_value", f"must be one of {', '.join(ROUTES)}")
    if name == "audit_session_id" and not RUN_ID.fullmatch(value):
        return Problem(name, "wrong_value", "must be letters, digits, - and _")
    return None


def _metadata_problem(value: object) -> Problem | None:
    if not isinstance(value, Mapping):
        return Problem("metadata", "wrong_type", "must be an object")
    try:
        size = len(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return Problem("metadata", "not_json", "must be plain JSON values")
    if size > METADATA_BYTES:
        return Problem("metadata", "too_large", f"must be under 64 KiB, this is {size:,} bytes")
    return None
