"""Contracts, task runs and their completion in one home, as offered by the service."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.contracts.bulk_progress import Guard, guard
from engine.contracts.completing import (
    Completing,
    CompletionCheck,
    CompletionObstacle,
    CompletionVerdict,
    contract_link,
)
from engine.contracts.contract_progress import ContractOperations
from engine.contracts.contract_requests import Update
from engine.contracts.contract_store import Contracts
from engine.contracts.crawl_contract import ContractCompanion, start_for
from engine.contracts.task_run_folders import RunFolders
from engine.contracts.task_runs import TaskRuns, contract_of
from engine.ledger.ledger import Ledger
from engine.ledger.machine import wall_ms
from engine.model.errors import EngineError, TaskUnreadable
from engine.model.lifecycle import TASK_RUN
from engine.model.records import (
    CONTRACTS_FOLDER,
    ENVELOPE,
    TASK_RUNS_FOLDER,
    TERMINAL,
    Status,
    TaskRecord,
)

log = logging.getLogger(__name__)

# Completion checks of tasks and task runs; they only read.


def of_run(runs: TaskRuns, contracts: Contracts, run_id: str, *, named: bool) -> CompletionCheck:
    """Check whether a task run may be completed; `named` also lists the missing items.

    Raises:
        NotAnId, TaskRunNotFound, RecordUnreadable.
    """
    raw = runs.get(run_id).raw
    status = raw.get("status")
    if isinstance(status, str) and TASK_RUN.is_terminal(status):
        return _never(run_id, CompletionObstacle.ENDED)
    link = contract_of(raw)
    if link is None:
        return CompletionCheck(subject=run_id, verdict=CompletionVerdict.ALLOWED)
    # A run with an unreadable contract can still be ended by force.
    return _check_contract(run_id, contracts, link, named) or CompletionCheck(
        subject=run_id, verdict=CompletionVerdict.FORCE
    )


def of_task(ledger: Ledger, contracts: Contracts, task_id: str, *, named: bool) -> CompletionCheck:
    """Check whether a task may be completed: an envelope, or a running crawl with a contract.

    Raises:
        NotATaskId, TaskNotFound.
    """
    try:
        raw = ledger.read_raw(task_id)
    except TaskUnreadable:
        return _never(task_id, CompletionObstacle.UNREADABLE)
    link = contract_link(raw)
    obstacle = _obstacle(raw, link)
    if obstacle is not None:
        return _never(task_id, obstacle)
    if link is None:
        return CompletionCheck(subject=task_id, verdict=CompletionVerdict.ALLOWED)
    found = _check_contract(task_id, contracts, link, named)
    if found is None:
        return _never(task_id, CompletionObstacle.UNREADABLE)
    if raw.get("kind") != ENVELOPE:  # a running crawl ends early only by force
        return CompletionCheck(
            subject=task_id,
            verdict=CompletionVerdict.FORCE,
            guard=found.guard,
            missing=found.missing,
        )
    return found


def _obstacle(raw: Mapping[str, Any], link: str | None) -> CompletionObstacle | None:
    status, led = raw.get("status"), raw.get("kind") == ENVELOPE
    if status in TERMINAL:
        return CompletionObstacle.ENDED
    if led:
        return None
    if link is None:
        return CompletionObstacle.ALONE
    if status != Status.RUNNING:
        return CompletionObstacle.WAITING
    return CompletionObstacle.STOPPING if raw.get("cancel_requested_at") is not None else None


def _check_contract(
    subject: str, contracts: Contracts, link: str, named: bool
) -> CompletionCheck | None:
    """Check against the contract; None where it cannot be read."""
    try:
        contract = contracts.read(link)
        missing = tuple(contracts.missing(link)) if named else ()
    except EngineError:
        return None
    said = guard(contract)
    verdict = CompletionVerdict.ALLOWED if said.allowed else CompletionVerdict.FORCE
    return CompletionCheck(subject=subject, verdict=verdict, guard=said, missing=missing)


def _never(subject: str, obstacle: CompletionObstacle) -> CompletionCheck:
    return CompletionCheck(subject=subject, verdict=CompletionVerdict.NEVER, obstacle=obstacle)


TERMS = ("expected_total", "min_completed", "stop_condition", "item_key", "failed_policy")


class Goals:
    """Contracts and task runs of one home. Synchronous: calls may wait for a lock or the disk.

    `contracts` and `runs` start, change and read; `completing` ends. `ledger` is called each time,
    because opening the engine replaces it. `folders` are the storage folders.
    """

    def __init__(self, home: Path, ledger: Callable[[], Ledger]) -> None:
        self.folders = (home / CONTRACTS_FOLDER, home / TASK_RUNS_FOLDER)
        self._ledger = ledger
        self._counted: dict[str, tuple[tuple[int, ...], Guard]] = {}
        self._contract_store = Contracts(home, wall_ms)
        folders = RunFolders(home, wall_ms)
        self.contracts = ContractOperations(self._contract_store, folders)
        self.runs = TaskRuns(self._contract_store, folders)
        self.completing = Completing(self._contract_store, folders, self.runs, ledger)

    def accept(
        self,
        kind: str,
        contract: Mapping[str, Any] | None,
        task_run_id: str | None,
        create: Callable[[str | None], TaskRecord],
    ) -> TaskRecord:
        """Create a task by `create` that is linked to a new contract and to a task run.

        Without either this is `create` alone. The contract is removed if its task is refused.

        Raises:
            TaskRunNotFound, InvalidRunStep: the task run does not exist, or has ended.
        """
        if task_run_id is not None:
            self.runs.check_open(task_run_id)
        record = create(None) if contract is None else self._bound(kind, contract, create)
        if task_run_id is not None:
            try:
                self.runs.link_task(task_run_id, record.task_id)
            except EngineError as error:  # not fatal: the task itself names its run
                log.warning("task %s: its task run does not name it: %s", record.task_id, error)
        return record

    def terms_of(self, contract_id: str) -> dict[str, Any]:
        """Return the terms of a contract without its progress, to start an equal one.

        Raises:
            ContractNotFound, ContractUnreadable.
        """
        contract = self._contract_store.read(contract_id)
        named, _ = self._contract_store.items(contract_id)
        whole = len(named) == contract.expected_total  # else some names were not kept
        given = {name: getattr(contract, name) for name in TERMS}
        if named and whole:
            given |= {"items": named, "expected_total": None}
        return {name: value for name, value in given.items() if value not in (None, "")}

    def prospect(self, subject: str, *, named: bool = False) -> CompletionCheck:
        """Check whether this task or task run may be completed; writes nothing."""
        if self.runs.has(subject):
            return of_run(self.runs, self._contract_store, subject, named=named)
        return of_task(self._ledger(), self._contract_store, subject, named=named)

    def counts(self, contract_ids: Iterable[str]) -> dict[str, Guard]:
        """Return the guards of the contracts; unreadable ones are omitted.

        A contract is read again only after its files have changed.
        """
        found = {}
        for one in contract_ids:
            try:
                stamp = self._contract_store.stamp(one)
                known = self._counted.get(one)
                if known is None or known[0] != stamp:
                    known = self._counted[one] = (stamp, guard(self._contract_store.read(one)))
            except (EngineError, OSError):
                continue
            found[one] = known[1]
        return found

    def companion(self, contract_id: str, task_id: str) -> ContractCompanion:
        """Create the observer that records a crawl's pages in its contract."""
        return ContractCompanion(self._contract_store, self.completing, contract_id, task_id)

    def _bound(
        self, kind: str, given: Mapping[str, Any], create: Callable[[str | None], TaskRecord]
    ) -> TaskRecord:
        contract_id = self._contract_store.start(start_for(kind, given)).contract_id
        try:
            record = create(contract_id)
        except BaseException:
            self._contract_store.forget(contract_id)
            raise
        try:
            with self._contract_store.hold(contract_id) as held:
                held.apply(Update((), {"task_id": record.task_id}))
        except EngineError as error:  # not fatal: the task itself names its contract
            log.warning("contract %s does not name its task: %s", contract_id, error)
        return record
