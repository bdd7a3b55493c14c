"""Validation of envelope requests: every mistake is reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from engine import budgets
from engine.model.errors import InvalidArguments, Problem
from engine.model.records import ENVELOPE, Status


class EnvelopeState(msgspec.Struct, frozen=True):
    """Counters and budgets of one task, at one moment.

    `budget_status` is ok, warning or exceeded, and is evaluated now: time also passes without
    calls. `gauges` has one entry for each budget of the task.
    """

    task_id: str
    kind: str
    status: str
    objective: str
    phase: str
    policy: dict[str, Any]
    counters: dict[str, Any]
    budget_status: str
    budget_exceeded: tuple[str, ...]
    budget_warning: tuple[str, ...]
    recommended_next: str | None
    recent_events: tuple[dict[str, Any], ...]
    gauges: tuple[budgets.Gauge, ...]


def state_of(meta: Mapping[str, Any], now_ms: float) -> EnvelopeState:
    """Read the state from a whole meta.json; values of an invalid shape count as missing."""
    standing = budgets.at(meta, now_ms)
    policy = meta.get("policy")
    return EnvelopeState(
        task_id=_text(meta, "task_id"),
        kind=_text(meta, "kind"),
        status=_text(meta, "status"),
        objective=_text(meta, "objective"),
        phase=_text(meta, "phase"),
        policy=dict(policy) if isinstance(policy, dict) else {},
        counters=budgets.counters_of(meta),
        budget_status=standing.status,
        budget_exceeded=standing.exceeded,
        budget_warning=standing.warning,
        recommended_next=standing.recommended_next,
        recent_events=_events(meta.get("recent_events"))[-budgets.RECENT :],
        gauges=standing.gauges,
    )


def has_budget(meta: Mapping[str, Any]) -> bool:
    """Return whether it is an envelope, or a task with its own policy."""
    return meta.get("kind") == ENVELOPE or bool(meta.get("policy"))


def _text(meta: Mapping[str, Any], name: str) -> str:
    given = meta.get(name)
    return given if isinstance(given, str) else ""


def _events(given: object) -> tuple[dict[str, Any], ...]:
    found = given if isinstance(given, list) else []
    return tuple(event for event in found if isinstance(event, dict))


PHASES: Final = ("explore", "act", "verify", "recover", "done")
ARGUMENTS: Final = ("objective", "phase", "policy")
ECHOES: Final = ("last_note", "final_note")  # fields added to an earlier envelope's arguments
OUTCOMES: Final[Mapping[str, Status]] = {
    "completed": Status.COMPLETED,
    "failed": Status.FAILED,
    "cancelled": Status.CANCELLED,
}
OBJECTIVE_CHARACTERS: Final = 4_096
NOTE_CHARACTERS: Final = 500  # as OpenChrome cuts them
_NO_OBJECT: Final = Problem("args", "wrong_type", "must be an object of named arguments")


def start_problems(objective: object, phase: object, policy: object) -> list[Problem]:
    """Collect the mistakes in a request for a new envelope."""
    found: list[Problem] = []
    if not isinstance(objective, str) or not objective.strip():
        found.append(Problem("objective", "required", "must say what is to be reached"))
    elif len(objective) > OBJECTIVE_CHARACTERS:
        limit = f"must be at most {OBJECTIVE_CHARACTERS:,} characters"
        found.append(Problem("objective", "too_long", limit))
    if phase is not None:
        found.extend(_one_of("phase", phase, PHASES))
    return [*found, *budgets.problems(policy)]


@dataclass(frozen=True, slots=True)
class EnvelopeRequest:
    """Valid request for a new envelope."""

    objective: str
    phase: str | None = None
    policy: Mapping[str, Any] | None = None


def envelope_request(args: object, terms: Mapping[str, Any]) -> EnvelopeRequest:
    """Build a request from a start's arguments; its terms override them.

    Raises:
        InvalidArguments: with every mistake.
    """
    given = args if isinstance(args, Mapping) else {}
    found = [] if isinstance(args, Mapping) else [_NO_OBJECT]
    found += [
        Problem(str(name), "unknown_argument", f"is no argument (known: {', '.join(ARGUMENTS)})")
        for name in given
        if name not in (*ARGUMENTS, *ECHOES)
    ]
    asked: dict[str, Any] = {
        name: terms[name] if terms.get(name) is not None else given.get(name) for name in ARGUMENTS
    }
    found += start_problems(**asked)
    if found:
        raise InvalidArguments(tuple(found))
    return EnvelopeRequest(**asked)


def checked_update(phase: object, note: object) -> None:
    """Raises InvalidArguments."""
    found = [] if phase is None else _one_of("phase", phase, PHASES)
    found += _note_problems(note)
    if phase is None and note is None:
        found.append(Problem("phase", "required", "give a phase, a note, or both"))
    if found:
        raise InvalidArguments(tuple(found))


def checked_outcome(outcome: object, note: object) -> Status:
    """Map an outcome to its status. Raises InvalidArguments."""
    found = [*_one_of("outcome", outcome, tuple(OUTCOMES)), *_note_problems(note)]
    if found:
        raise InvalidArguments(tuple(found))
    return OUTCOMES[str(outcome)]


def _one_of(path: str, given: object, known: tuple[str, ...]) -> list[Problem]:
    if isinstance(given, str) and given in known:
        return []
    return [Problem(path, "wrong_value", f"must be one of {', '.join(known)}")]


def _note_problems(note: object) -> list[Problem]:
    if note is None or isinstance(note, str):
        return []
    return [Problem("note", "wrong_type", "must be a text")]
