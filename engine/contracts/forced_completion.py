"""Override of a guard: record the force, then act; undo the record if the act fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from engine.contracts.bulk_progress import Contract, guard
from engine.contracts.contract_store import LockedContract
from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError
from engine.model.records import Status, TaskRecord

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
