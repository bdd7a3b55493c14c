"""Overruling a guard: the force is written down, and then what it was for is done, or neither."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from engine.contracts.bulk_progress import Contract, guard
from engine.contracts.contract_store import Held
from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError
from engine.model.records import Status, TaskRecord

Act = Callable[[], TaskRecord]


class Force(NamedTuple):
    """Somebody's word against a guard; see `force_of`, which checks it."""

    reason: str
    by: str


def enforced(held: Held, force: Force, ledger: Ledger, task_id: str, act: Act) -> TaskRecord:
    """Write down the force, then `act`; if that is refused, nobody has forced anything.

    But for one case: who ended the task at this very moment found the force and passed by it.
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
    """`finish`, with the mark of a force in the task itself: lists show it, for ever."""

    def mark(raw: dict[str, Any]) -> None:
        changes.engine_of(raw)["forced_at"] = now_ms

    def take_off(raw: dict[str, Any]) -> None:
        changes.engine_of(raw).pop("forced_at", None)

    ledger.mutate(task_id, mark)
    try:
        return finish()
    except BaseException:
        with suppress(EngineError):  # ended by somebody else meanwhile: it stays as it ended
            ledger.mutate(task_id, take_off)
        raise


def _is_completed(ledger: Ledger, task_id: str) -> bool:
    try:
        return ledger.read_raw(task_id).get("status") == Status.COMPLETED
    except EngineError:
        return False


def written(contract: Contract) -> dict[str, Any]:
    """The force of a contract as it stands in events and in task runs."""
    found: dict[str, Any] = msgspec.to_builtins(contract.forced)
    return found
