"""Validation of envelope requests: every mistake is reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine import budgets
from engine.model.errors import InvalidArguments, Problem
from engine.model.records import Status

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
