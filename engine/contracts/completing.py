"""Completion of tasks and task runs: the guard, its refusal and the override by force.

The guard applies to COMPLETED only; FAILED and CANCELLED always pass. A refusal writes an event and
changes nothing else. A force needs a reason; reason, user and time are kept in the contract, in the
task run and in the events. The force is recorded before the change, and the record is undone if the
change fails. A terminal task or run is never forced. Source: seed 001.
"""

from __future__ import annotations

import getpass
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from engine.contracts import contract_requests, task_run_folders
from engine.contracts.bulk_progress import (
    BulkCompletionRefused,
    CannotComplete,
    Contract,
    Guard,
    guard,
    premature,
)
from engine.contracts.contract_progress import RunView
from engine.contracts.contract_requests import Update, force_reason
from engine.contracts.contract_store import Contracts, LockedContract
from engine.contracts.task_run_folders import LockedRun, RunFolders, is_refusal
from engine.contracts.task_runs import TaskRuns, contract_of
from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError
from engine.model.lifecycle import LEDGER
from engine.model.records import ENVELOPE, TASK_RUN, TERMINAL, Status, TaskRecord, TaskView
from engine.model.status import Standing, standing

__all__ = [
    "CompletionCheck",
    "CompletionObstacle",
    "CompletionVerdict",
    "Guard",
    "may_be_completed",
    "whoami",
]


class CompletionVerdict(StrEnum):
    """Requirement for completing a task or run."""

    FORCE = "force"  # a reason is required: the guard refuses, or the crawl still runs
    ALLOWED = "allowed"  # no contract blocks it
    NEVER = "never"


class CompletionObstacle(StrEnum):
    """Reason why a user cannot complete a task or run."""

    ENDED = "ended"
    WAITING = "waiting"  # it has not started
    STOPPING = "stopping"  # a cancel was requested; it ends as CANCELLED
    ALONE = "alone"  # without a contract it completes by itself
    UNREADABLE = "unreadable"  # its contract or its own record


class CompletionCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the completion check of one task or task run; nothing was written.

    `obstacle` holds the reason where `verdict` is NEVER. `guard` has the counts and the next
    action, where there is a contract; `missing` lists named items without a state.
    """

    subject: str
    verdict: CompletionVerdict
    obstacle: CompletionObstacle | None = None
    guard: Guard | None = None
    missing: tuple[str, ...] = ()


def may_be_completed(view: TaskView) -> bool:
    """Return whether a completion check is worthwhile, from the record alone, for long lists."""
    entry = view.entry
    if not isinstance(entry, TaskRecord) or entry.status in TERMINAL:
        return False
    if entry.kind in (ENVELOPE, TASK_RUN):
        return True
    linked = entry.engine is not None and entry.engine.contract_id is not None
    return linked and standing(view) is Standing.RUNNING


def whoami() -> str:
    """Return the current user for permanent records: `name@machine`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user id without a name
        user = "unknown"
    return f"{user}@{platform.node()}"


Event = tuple[str, dict[str, Any]]
Act = Callable[[Event], TaskRecord]  # writes the event of the force with its change
Finish = Callable[..., TaskRecord]  # ends an envelope; its arguments are events before the last one


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
    said = {**msgspec.to_builtins(guard(before)), "forced": written(forced)}
    event: Event = ("guard", said)
    try:
        return act(event)
    except BaseException:
        if not guard(before).allowed and _is_completed(ledger, task_id):
            ledger.note(task_id, [event], durable=True)
        else:
            held.restore(before)
        raise


def marked(
    ledger: Ledger, task_id: str, now_ms: int, finish: Callable[[], TaskRecord]
) -> TaskRecord:
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


ENDINGS: Final = {"COMPLETED": "completed", "FAILED": "failed", "CANCELLED": "cancelled"}


def force_of(reason: str | None, by: str) -> Force:
    """Validate a force reason of at least 10 characters.

    Raises:
        InvalidArguments: the reason is blank or too short.
    """
    return Force(force_reason(reason), by)


class Completing:
    """Complete task runs, and check and force tasks of the ledger."""

    def __init__(
        self,
        contracts: Contracts,
        runs: RunFolders,
        desk: TaskRuns,
        ledger: Callable[[], Ledger],
    ) -> None:
        self._ledger = ledger  # called each time: opening the engine replaces the ledger
        self._contracts = contracts
        self._runs = runs
        self._task_runs = desk

    def run(
        self,
        run_id: str,
        given: Mapping[str, Any],
        force: Force | None = None,
        *,
        reason: str | None = None,
    ) -> RunView:
        """End a task run: COMPLETED unless `status` says FAILED or CANCELLED.

        `reason` explains why the run ends and is kept in its event.

        Raises:
            BulkCompletionRefused: the contract's guard blocks COMPLETED and no force is given;
                only an event was written.
            InvalidRunStep: the run has ended already.
        """
        fields = contract_requests.run_request(
            given, contract_requests.RUN_COMPLETE, "a completion"
        )
        status = fields.pop("status", "COMPLETED")
        with self._runs.hold(run_id) as run:
            task_run_folders.check_open(run.raw, run_id)
            link = contract_of(run.raw)
            passes = status != Status.COMPLETED or force is not None
            if reason:
                run.event("cancel_requested", {"reason": reason})
            if link is None or (passes and not self._is_usable(link)):
                task_run_folders.record_items(run.raw, task_run_folders.notes_of(fields))
                _end(run, fields, status, _forced(force, run.now_ms) if link else None)
            else:
                with self._contracts.hold(link) as held:
                    self._end_bound(run, held, (fields, status), force)
            return self._task_runs.view(run.raw)

    def guards(self, meta: Mapping[str, Any]) -> EngineError | None:
        """Return the error that blocks COMPLETED for the task with this meta.json, or None.

        A refusal writes an event to the task.
        """
        link = contract_link(meta)
        if link is None:
            return None
        try:
            contract = self._contracts.read(link)
        except EngineError as error:
            return error
        said = guard(contract)
        if said.allowed or contract.forced is not None:
            return None
        return _refusal_of_task(self._ledger(), str(meta.get("task_id")), said)

    def task(self, task_id: str, status: Status, force: Force | None, finish: Finish) -> TaskRecord:
        """End an envelope by `finish`, or request COMPLETED for a RUNNING crawl with a contract.

        Raises:
            BulkCompletionRefused: the guard refuses and no force is given.
            CannotComplete: a user may not complete this task, or not now.
            TransitionError: the task is not RUNNING.
            Any error of `finish`.
        """
        # The folder name is the id; the file may hold another one.
        raw = {**self._ledger().read_raw(task_id), "task_id": task_id}
        if raw.get("kind") == ENVELOPE:
            overruled = force if status is Status.COMPLETED else None
            return self._envelope(raw, overruled, finish) if overruled else finish()
        _check_running(raw, task_id, status)
        if status is not Status.COMPLETED:
            raise _cannot(task_id, f"{status} is for its runner to say", "Cancel it instead.")
        return self._crawl(raw, task_id, force)

    def _envelope(self, raw: Mapping[str, Any], force: Force, finish: Finish) -> TaskRecord:
        """Override the guard if it refuses, then finish."""
        link = contract_link(raw)
        if link is None:
            return finish()
        with self._contracts.hold(link) as held:
            if guard(held.contract).allowed or raw.get("status") in TERMINAL:
                return finish()
            ledger, task_id = self._ledger(), str(raw["task_id"])
            now_ms = held.now_ms()

            def end(event: Event) -> TaskRecord:
                return marked(ledger, task_id, now_ms, lambda: finish(event))

            return enforced(held, force, ledger, task_id, end)

    def _crawl(self, raw: Mapping[str, Any], task_id: str, force: Force | None) -> TaskRecord:
        """Request that the crawl's runner commits COMPLETED after its next unit."""
        link = contract_link(raw)
        if link is None:
            raise _cannot(task_id, "it has no contract", "It completes by itself; or cancel it.")
        if force is None:
            way_out = "Wait for it, or force it with a reason to end it now."
            refused = self.guards(raw)
            raise refused or _cannot(task_id, "it completes by itself at its end", way_out)
        ledger = self._ledger()
        with self._contracts.hold(link) as held:
            now_ms = held.now_ms()

            def ask(event: Event) -> TaskRecord:
                record = ledger.mutate(
                    task_id, lambda raw: _request_completion(raw, task_id, now_ms), durable=True
                )
                ledger.note(task_id, [event], durable=True)
                return record

            return enforced(held, force, ledger, task_id, ask)

    def _end_bound(
        self,
        run: LockedRun,
        held: LockedContract,
        end: tuple[dict[str, Any], str],
        force: Force | None,
    ) -> None:
        """End a run that has a contract; items of the request count for the guard."""
        fields, status = end
        moved = {"cursor": fields["current_cursor"]} if "current_cursor" in fields else {}
        update = Update(task_run_folders.notes_of(fields), moved)
        said = guard(held.preview(update))
        refused = status == Status.COMPLETED and not said.allowed
        if refused and force is None:
            fires = run.refusals() + 1
            run.event("guard", {**msgspec.to_builtins(said), "fire_count": fires})
            raise BulkCompletionRefused(said, premature(said, fires))
        if update.notes or update.fields:
            held.apply(update)
        before = held.contract
        if refused and force is not None:
            held.force(force.reason, force.by)
        task_run_folders.mirror(run.raw, held.contract)
        try:
            forced = written(held.contract) if refused else None
            _end(run, fields, status, forced, msgspec.to_builtins(said))
        except BaseException:
            if refused:
                held.restore(before)
            raise

    def _is_usable(self, link: str) -> bool:
        try:
            self._contracts.read(link)
        except EngineError:
            return False
        return True


def contract_link(meta: Mapping[str, Any]) -> str | None:
    """Return the contract id of a ledger task, or None."""
    ours = meta.get("engine")
    link = ours.get("contract_id") if isinstance(ours, Mapping) else None
    return link if isinstance(link, str) else None


def _end(
    run: LockedRun,
    fields: Mapping[str, Any],
    status: str,
    forced: Mapping[str, Any] | None,
    said: Mapping[str, Any] | None = None,
) -> None:
    task_run_folders.update(run.raw, fields)
    task_run_folders.complete(run.raw, status, run.now_ms, forced)
    run.save(durable=True)
    if forced:
        run.event("guard", {"allowed": False, **(said or {}), "forced": forced})
    told = {"status": status, **task_run_folders.counts(run.raw)}
    run.event(ENDINGS[status], {**told, "forced": forced} if forced else told, durable=True)


def _refusal_of_task(ledger: Ledger, task_id: str, said: Guard) -> BulkCompletionRefused:
    fires = _refusals(ledger, task_id) + 1
    ledger.note(task_id, [("guard", {**msgspec.to_builtins(said), "fire_count": fires})])
    return BulkCompletionRefused(said, premature(said, fires))


def _refusals(ledger: Ledger, task_id: str) -> int:
    count, offset = 0, -1
    part = ledger.read_events(task_id)
    while part.next_offset != offset:
        count += sum(map(is_refusal, part.events))
        offset = part.next_offset
        part = ledger.read_events(task_id, offset)
    return count


def _check_running(raw: Mapping[str, Any], task_id: str, target: Status = Status.COMPLETED) -> None:
    if raw.get("status") != Status.RUNNING:
        LEDGER.check(f"task {task_id}", str(raw.get("status")), target)


def _request_completion(raw: dict[str, Any], task_id: str, now_ms: int) -> None:
    """Request COMPLETED from the crawl's runner; the time of the first request is kept."""
    _check_running(raw, task_id)
    if raw.get("cancel_requested_at") is not None:
        raise _cannot(task_id, "it was asked to stop", "It ends as CANCELLED.")
    changes.engine_of(raw).setdefault("forced_at", now_ms)


def _cannot(task_id: str, reason: str, way_out: str) -> CannotComplete:
    return CannotComplete(subject=f"Task {task_id}", reason=reason, way_out=way_out)


def _forced(force: Force | None, now_ms: int) -> dict[str, Any] | None:
    return {"reason": force.reason, "by": force.by, "at": now_ms} if force else None
