"""Operations on task runs except their end: start, read, update, checkpoint, help.

Synchronous. With a contract, the run's items are the contract's items, and the run mirrors them as
OpenChrome does. Source: seed 001; the limits and sentences are OpenChrome's.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from engine.contracts import contract_requests, task_run_folders
from engine.contracts.bulk_progress import Contract, TaskRunNotFound, guard
from engine.contracts.contract_progress import LINK, ContractView, RunView, newest_first
from engine.contracts.contract_requests import Start, Update
from engine.contracts.contract_store import Contracts
from engine.contracts.task_run_folders import LockedRun, RunFolders
from engine.ledger.record_store import HEX16, RecordUnreadable
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.records import Unreadable
from engine.model.status import moment

MOST_RUNS: Final = 200
USUAL_RUNS: Final = 50


class TaskRuns:
    """Task run operations; see the module.

    Raises InvalidArguments with every mistake, before anything is written; InvalidRunStep for a
    step that is not allowed; else the errors of `Contracts` and `RunFolders`.
    """

    def __init__(self, contracts: Contracts, runs: RunFolders) -> None:
        self._contracts = contracts
        self._runs = runs

    def start(self, given: Mapping[str, Any], contract: Mapping[str, Any] | None = None) -> RunView:
        """Create a RUNNING task run, with a contract if `contract` is given."""
        fields, start = _request(given, contract)
        run_id = secrets.token_hex(8)
        raw = task_run_folders.new_run(fields)
        if start is None:
            self._runs.create(run_id, raw, {"status": "RUNNING"})
            return self.get(run_id)
        raw[LINK] = link = self._contracts.start(start, run_id=run_id).contract_id
        try:
            self._runs.create(run_id, raw, {"status": "RUNNING"})
        except BaseException:
            self._contracts.forget(link)
            raise
        return self.get(run_id)

    def get(self, run_id: str, *, include_items: bool = False, events: bool = False) -> RunView:
        """Read a run; writes nothing."""
        raw = self._runs.read(run_id)
        found = self._runs.events(run_id) if events else ()
        return RunView(raw, self._progress(raw, include_items), found)

    def view(self, raw: Mapping[str, Any]) -> RunView:
        """Build the view of a run that is already loaded, with its contract's guard."""
        return RunView(dict(raw), self._progress(raw))

    def list(
        self,
        status: Collection[str] = (),
        since: float | None = None,
        limit: int | None = USUAL_RUNS,
    ) -> list[RunView | Unreadable]:
        """List the newest `limit` runs (1 to 200; None: all); unreadable ones only without a
        filter.

        `since` is in ms since 1970, inclusive.
        """
        if limit is not None and not 1 <= limit <= MOST_RUNS:
            said = f"must be between 1 and {MOST_RUNS}"
            raise InvalidArguments((Problem("limit", "invalid_value", said),))
        looked = (self._read_for_list(run_id) for run_id in self._runs.ids())
        found = newest_first(one for one in looked if one is not None)
        kept = [one for one in found if _matches(one, status, since)]
        return kept[:limit]

    def update(self, run_id: str, given: Mapping[str, Any]) -> RunView:
        """Record progress; with a resume_reason also the return from NEEDS_HELP."""
        fields = contract_requests.run_request(
            given, contract_requests.RUN_UPDATE, "a task run's update"
        )

        def change(run: LockedRun) -> None:
            task_run_folders.check_target(run.raw, fields)
            task_run_folders.update(run.raw, fields)
            self.record_items(run, fields)
            run.save()
            said = {"status": run.raw.get("status"), **task_run_folders.counts(run.raw)}
            run.event("updated", {**said, **_some(fields, "current_cursor", "resume_reason")})

        return self._changed(run_id, change)

    def checkpoint(self, run_id: str, given: Mapping[str, Any]) -> RunView:
        """Write a checkpoint; its summary becomes the run's summary."""
        fields = contract_requests.run_request(
            given, contract_requests.RUN_CHECKPOINT, "a checkpoint", ("summary",)
        )
        made: dict[str, Any] = {}

        def change(run: LockedRun) -> None:
            task_run_folders.update(run.raw, task_run_folders.from_checkpoint(fields))
            self.record_items(run, fields)
            kept = {"created_at": run.now_ms, **task_run_folders.counts(run.raw)}
            made.update(run.checkpoint({**fields, **kept}))
            run.save(durable=True)
            run.event("checkpointed", {"checkpoint_id": made["checkpoint_id"]})

        view = self._changed(run_id, change)
        return RunView(view.raw, view.progress, checkpoint=made)

    def needs_help(self, run_id: str, given: Mapping[str, Any]) -> RunView:
        """Request help from a person; the run waits until an update sets RUNNING."""
        fields = contract_requests.run_request(
            given, contract_requests.RUN_HELP, "a call for help", ("reason",)
        )

        def change(run: LockedRun) -> None:
            asked = task_run_folders.request_help(run.raw, fields, run.now_ms)
            self.record_items(run, fields)
            run.save(durable=True)
            run.event("needs_help", asked)

        return self._changed(run_id, change)

    def has(self, run_id: str) -> bool:
        """Return whether a task run has this id."""
        return self._runs.has(run_id)

    def check_open(self, run_id: str) -> None:
        """Raise unless the run exists and can still be changed."""
        task_run_folders.check_open(self._runs.read(run_id), run_id)

    def link_task(self, run_id: str, task_id: str) -> None:
        """Record that a task of the ledger works for this run."""

        def change(run: LockedRun) -> None:
            task_run_folders.update(run.raw, {"ledger_task_ids": (task_id,)})
            run.save()
            run.event("updated", {"status": run.raw.get("status"), "ledger_task_id": task_id})

        self._changed(run_id, change)

    def record_items(self, run: LockedRun, fields: Mapping[str, Any]) -> None:
        """Apply items and cursor of a request to the contract, or to the run's own lists."""
        notes = task_run_folders.notes_of(fields)
        cursor = _some(fields, "current_cursor")
        link = contract_of(run.raw)
        if link is None:
            task_run_folders.record_items(run.raw, notes)
        elif notes or cursor:
            moved = {"cursor": fields["current_cursor"]} if cursor else {}
            contract_requests.check_named(self._contracts.names(link), notes, "_items")
            with self._contracts.hold(link) as held:
                task_run_folders.mirror(run.raw, held.apply(Update(notes, moved)))

    def _changed(self, run_id: str, change: Callable[[LockedRun], None]) -> RunView:
        with self._runs.hold(run_id) as run:
            task_run_folders.check_open(run.raw, run_id)
            change(run)
            return self.view(run.raw)

    def _progress(self, raw: Mapping[str, Any], include_items: bool = False) -> ContractView | None:
        link = contract_of(raw)
        if link is None:
            return None
        try:
            contract: Contract = self._contracts.read(link)
            named = self._contracts.items(link) if include_items else ((), ())
        except EngineError:  # the run is still shown; completing it reports the error
            return None
        return ContractView(contract, guard(contract), *map(tuple, named))

    def _read_for_list(self, run_id: str) -> RunView | Unreadable | None:
        """Read one run for a list; None for entries that are no folder, or were deleted."""
        try:
            return RunView(self._runs.read(run_id))
        except TaskRunNotFound:
            return None
        except RecordUnreadable as error:
            return Unreadable(run_id, str(error), str(error.fields["path"]))


def contract_of(raw: Mapping[str, Any]) -> str | None:
    """Return the id of a run's contract; None where there is no valid one."""
    link = raw.get(LINK)
    return link if isinstance(link, str) and HEX16.fullmatch(link) else None


def _request(
    given: Mapping[str, Any], contract: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Start | None]:
    """Validate both parts of a start, and raise the mistakes of both."""
    fields: dict[str, Any] = {}
    start: Start | None = None
    problems: list[Problem] = []
    try:
        fields = contract_requests.run_request(
            given, contract_requests.RUN_START, "a task run", ("goal",)
        )
    except InvalidArguments as error:
        problems += error.problems
    try:
        start = contract_requests.start_of(contract) if contract is not None else None
    except InvalidArguments as error:
        problems += contract_requests.below("contract", error.problems)
    contract_requests.refuse(problems)
    return fields, start


def _matches(
    view: RunView | ContractView | Unreadable, status: Collection[str], since: float | None
) -> bool:
    if not isinstance(view, RunView):
        return not status and since is None
    made = moment(view.raw.get("created_at")) or 0
    return (not status or view.status in status) and (since is None or made >= since)


def _some(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}
