"""Which state may follow which; terminal is final. One generic machine, tables as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import TransitionError
from engine.records import Status


@dataclass(frozen=True, slots=True)
class Machine:
    """A table of allowed steps; a state without steps is terminal."""

    name: str
    steps: Mapping[str, frozenset[str]]

    def is_terminal(self, state: str) -> bool:
        """Is this a known state that nothing follows?"""
        return state in self.steps and not self.steps[state]

    def allows(self, source: str, target: str) -> bool:
        return target in self.steps.get(source, frozenset())

    def check(self, subject: str, source: str, target: str) -> None:
        """Raise `TransitionError` unless `source` -> `target` is in the table."""
        if not self.allows(source, target):
            raise TransitionError(subject=subject, source=source, target=target)


LEDGER = Machine(
    "ledger",
    {
        Status.PENDING: frozenset({Status.RUNNING, Status.CANCELLED, Status.FAILED}),
        Status.RUNNING: frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED}),
        Status.COMPLETED: frozenset(),
        Status.FAILED: frozenset(),
        Status.CANCELLED: frozenset(),
    },
)
