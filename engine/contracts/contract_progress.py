"""Operations on contracts: start, update, get, list. Synchronous.

Replies contain the counts always, and items on request. Where a contract belongs to a task run,
the run's lock is acquired first and the contract's inside it, always in this order, so that the
judged counts cannot change before the run ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TypeVar

import msgspec

from engine.contracts import contract_requests, task_run_folders
from engine.contracts.bulk_progress import Contract, Guard, Hint, guard
from engine.contracts.contract_requests import Start, Update
from engine.contracts.contract_store import Contracts, LockedContract
from engine.contracts.task_run_folders import LockedRun, RunFolders
from engine.ledger.meta import without_surrogates
from engine.ledger.record_store import HEX16, RecordUnreadable
from engine.model.errors import InvalidArguments, Problem
from engine.model.records import TaskEvent, Unreadable
from engine.model.status import moment

_NAMES: Final = ("completed", "failed", "skipped")
_RUN_NAMES: Final = ("completed_items", "failed_items")


class ContractView(msgspec.Struct, frozen=True):
    """Contract with its guard; `items` and `missing` on request.

    `missing` holds the first 100 named items without a state.
    """

    contract: Contract
    guard: Guard
    items: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class RunView(msgspec.Struct, frozen=True):
    """Task run as stored (`raw`, every field), with its contract if it has one."""

    raw: dict[str, Any]
    progress: ContractView | None = None
    events: tuple[TaskEvent, ...] = ()
    checkpoint: dict[str, Any] | None = None
    hint: Hint | None = None

    @property
    def run_id(self) -> str:
        return str(self.raw["run_id"])

    @property
    def status(self) -> str:
        return str(self.raw.get("status", ""))


View = TypeVar("View", ContractView, RunView)


def newest_first(views: Iterable[View | Unreadable]) -> list[View | Unreadable]:
    """Sort by creation time, newest first; unreadable entries go last."""
    return sorted(views, key=made_at, reverse=True)


def made_at(view: ContractView | RunView | Unreadable) -> float:
    """Return the creation time (ms since 1970); 0 where it is unknown."""
    if isinstance(view, ContractView):
        return view.contract.created_at
    if isinstance(view, RunView):
        return moment(view.raw.get("created_at")) or 0
    return 0


def contract_data(view: ContractView, *, include_items: bool = False) -> dict[str, Any]:
    """Encode a contract for other programs; source: seed 001 ("keep output compact")."""
    contract = {
        name: value
        for name, value in msgspec.to_builtins(view.contract).items()
        if value is not None and (include_items or name not in _NAMES)
    }
    if include_items and view.items:
        contract["items"] = list(view.items)
    answer = {
        "bulk_progress_contract": contract,
        "completion_guard": msgspec.to_builtins(view.guard),
    }
    if view.missing:
        answer["missing_items"] = list(view.missing)
    return answer


def run_data(view: RunView, *, include_items: bool = False) -> dict[str, Any]:
    """Encode a task run for other programs."""
    raw = without_surrogates(view.raw)
    run = {name: raw[name] for name in raw if include_items or name not in _RUN_NAMES}
    answer: dict[str, Any] = {"task_run": {**run, **task_run_folders.counts(raw)}}
    if view.progress is not None:
        answer.update(contract_data(view.progress, include_items=include_items))
    if view.checkpoint is not None:
        answer["checkpoint"] = view.checkpoint
    if view.hint is not None:
        answer["hint"] = msgspec.to_builtins(view.hint)
    if view.events:
        answer["events"] = msgspec.to_builtins(view.events)
    return answer


LINK: Final = "bulk_contract_id"  # OpenChrome's name for it in a task run


class ContractOperations:
    """Contract operations; see the module.

    Raises InvalidArguments with every mistake, before anything is written, and the errors of
    `Contracts` and `RunFolders`.
    """

    def __init__(self, contracts: Contracts, runs: RunFolders) -> None:
        self._contracts = contracts
        self._runs = runs

    def start(self, given: Mapping[str, Any], task_id: str | None = None) -> ContractView:
        """Create a contract; with `run_id` it is linked to that task run and adopts its items.

        Raises:
            InvalidRunStep: the task run has ended.
        """
        start = contract_requests.start_of(given)
        run_id = start.fields.get("run_id")
        if run_id is None:
            return _view(self._contracts.start(start, task_id=task_id))
        with self._runs.hold(run_id) as run:
            task_run_folders.check_open(run.raw, run_id)
            if run.raw.get(LINK):
                said = f"task run {run_id} has the contract {run.raw[LINK]} already"
                raise InvalidArguments((Problem("run_id", "has_contract", said),))
            return _view(self._adopted(start, run))

    def update(self, contract_id: str, given: Mapping[str, Any]) -> ContractView:
        """Apply item states, cursor and stop condition; concurrent updates all count.

        Raises:
            InvalidRunStep: the contract's task run has ended.
        """
        update = contract_requests.update_of(given)
        with self._held(contract_id) as (run, held):
            contract_requests.check_not_weaker(held.contract, update)
            if update.notes and "expected_total" not in update.fields:
                contract_requests.check_named(self._contracts.names(contract_id), update.notes)
            contract = held.apply(update)
            if run is not None:
                mirror_into_run(run, contract)
        return _view(contract)

    def get(self, contract_id: str, *, include_items: bool = False) -> ContractView:
        """Return a contract and its current guard; writes nothing."""
        contract = self._contracts.read(contract_id)
        if not include_items:
            return _view(contract)
        items, missing = self._contracts.items(contract_id)
        return ContractView(contract, guard(contract), tuple(items), tuple(missing))

    def list(self) -> list[ContractView | Unreadable]:
        """List all contracts, newest first; unreadable ones carry their error."""
        return newest_first(map(self._read_for_list, self._contracts.ids()))

    def _read_for_list(self, contract_id: str) -> ContractView | Unreadable:
        try:
            return self.get(contract_id)
        except RecordUnreadable as error:
            return Unreadable(contract_id, str(error), str(error.fields["path"]))

    def _adopted(self, start: Start, run: LockedRun) -> Contract:
        contract = self._contracts.start(start)
        try:
            if notes := task_run_folders.listed_items(run.raw):
                with self._contracts.hold(contract.contract_id) as held:
                    contract = held.apply(Update(notes, {}))
            run.raw[LINK] = contract.contract_id
            mirror_into_run(run, contract)
        except BaseException:
            self._contracts.forget(contract.contract_id)
            raise
        return contract

    @contextmanager
    def _held(self, contract_id: str) -> Iterator[tuple[LockedRun | None, LockedContract]]:
        run_id = self._contracts.read(contract_id).run_id
        # A contract without a task run folder is updated on its own.
        linked = run_id is not None and HEX16.fullmatch(run_id) and self._runs.has(run_id)
        with self._runs.hold(str(run_id)) if linked else nullcontext() as run:
            if run is not None:
                task_run_folders.check_open(run.raw, str(run_id))
            with self._contracts.hold(contract_id) as held:
                yield run, held


def mirror_into_run(run: LockedRun, contract: Contract) -> None:
    """Copy the contract's counts into its task run."""
    task_run_folders.mirror(run.raw, contract)
    run.save()
    run.event("updated", {"status": run.raw.get("status"), **task_run_folders.counts(run.raw)})


def _view(contract: Contract) -> ContractView:
    return ContractView(contract, guard(contract))
