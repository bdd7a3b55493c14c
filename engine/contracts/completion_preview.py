"""What calling a task or a task run complete would meet. Looking only; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.contracts.bulk_progress import guard
from engine.contracts.completing import contract_link
from engine.contracts.contract_store import Contracts
from engine.contracts.forcing import Bar, Chance, Prospect
from engine.contracts.task_runs import RunDesk, contract_of
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError, TaskUnreadable
from engine.model.lifecycle import TASK_RUN
from engine.model.records import ENVELOPE, TERMINAL, Status


def of_run(runs: RunDesk, contracts: Contracts, run_id: str, *, named: bool) -> Prospect:
    """A task run's; `named` also looks up what is missing.

    Raises:
        NotAnId, TaskRunNotFound, RecordUnreadable.
    """
    raw = runs.get(run_id).raw
    status = raw.get("status")
    if isinstance(status, str) and TASK_RUN.is_terminal(status):
        return _never(run_id, Bar.ENDED)
    link = contract_of(raw)
    if link is None:
        return Prospect(subject=run_id, chance=Chance.ALLOWED)
    # A run whose contract is damaged can still be ended, by somebody who answers for it.
    return _judged(run_id, contracts, link, named) or Prospect(subject=run_id, chance=Chance.FORCE)


def of_task(ledger: Ledger, contracts: Contracts, task_id: str, *, named: bool) -> Prospect:
    """A task's: of an envelope, or of a running crawl with a contract.

    Raises:
        NotATaskId, TaskNotFound.
    """
    try:
        raw = ledger.read_raw(task_id)
    except TaskUnreadable:
        return _never(task_id, Bar.UNREADABLE)
    link = contract_link(raw)
    bar = _bar(raw, link)
    if bar is not None:
        return _never(task_id, bar)
    if link is None:
        return Prospect(subject=task_id, chance=Chance.ALLOWED)
    found = _judged(task_id, contracts, link, named)
    if found is None:
        return _never(task_id, Bar.UNREADABLE)
    if raw.get("kind") != ENVELOPE:  # one that runs goes on, whatever its contract says
        return Prospect(
            subject=task_id, chance=Chance.FORCE, guard=found.guard, missing=found.missing
        )
    return found


def _bar(raw: Mapping[str, Any], link: str | None) -> Bar | None:
    status, led = raw.get("status"), raw.get("kind") == ENVELOPE
    if status in TERMINAL:
        return Bar.ENDED
    if led:
        return None
    if link is None:
        return Bar.ALONE
    if status != Status.RUNNING:
        return Bar.WAITING
    return Bar.STOPPING if raw.get("cancel_requested_at") is not None else None


def _judged(subject: str, contracts: Contracts, link: str, named: bool) -> Prospect | None:
    """By its contract; None where that cannot be read."""
    try:
        contract = contracts.read(link)
        missing = tuple(contracts.missing(link)) if named else ()
    except EngineError:
        return None
    said = guard(contract)
    chance = Chance.ALLOWED if said.allowed else Chance.FORCE
    return Prospect(subject=subject, chance=chance, guard=said, missing=missing)


def _never(subject: str, bar: Bar) -> Prospect:
    return Prospect(subject=subject, chance=Chance.NEVER, bar=bar)
