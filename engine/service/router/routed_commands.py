"""Acting on a task, in whichever of the ledgers side by side it is: written only there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.contracts.contract_views import RunView
from engine.contracts.forced_completion import Force
from engine.model.ledger_ids import ledger_label
from engine.model.records import Status, TaskRecord
from engine.service.admission import NO_TERMS, Terms
from engine.service.engine import Engine
from engine.service.router.dispatch import as_it_is
from engine.service.router.errors import OnlyInItsOwnWindow
from engine.service.router.id_qualifier import Marks
from engine.service.router.routed_queries import LooksBeside


class SteersBeside(LooksBeside):
    """The verbs that write. All but `start`, `rerun`, `retry` and `force_stop` raise
    LedgerWatchOnly for a ledger that is only to be watched; reaping is for the program that
    works in a ledger."""

    async def start(
        self,
        kind: str,
        args: Mapping[str, Any],
        *,
        name: str | None = None,
        parent: str | None = None,
        terms: Terms = NO_TERMS,
    ) -> TaskRecord:
        """In the own ledger, whatever `parent`; of another ledger nobody could find it there."""
        parent = None if parent and ledger_label(parent) else parent
        return await super().start(kind, args, name=name, parent=parent, terms=terms)

    async def rerun(self, task_id: str, variables: Mapping[str, Any] | None = None) -> TaskRecord:
        """Start the same request in the own ledger; the task names its parent if that is there."""
        if not ledger_label(task_id):
            return await super().rerun(task_id, variables)
        one = await self.asked(task_id, variables)
        return await self.start(one.kind, one.args, name=one.name, terms=one.terms)

    async def retry(self, task_id: str, variables: Mapping[str, Any] | None = None) -> TaskRecord:
        """As `rerun`, of what failed in the task."""
        if not ledger_label(task_id):
            return await super().retry(task_id, variables)
        request = (await self.remainder(task_id, variables)).whole
        return await self.start(request.kind, request.args, name=request.name, terms=request.terms)

    async def update(
        self, task_id: str, *, phase: str | None = None, note: str | None = None
    ) -> TaskRecord:
        return await self._door.write(Engine.update, Marks.record, task_id, phase=phase, note=note)

    async def finish(self, task_id: str, outcome: str, *, note: str | None = None) -> TaskRecord:
        return await self._door.write(Engine.finish, Marks.record, task_id, outcome, note=note)

    async def cancel(self, task_id: str, reason: str | None = None) -> TaskRecord:
        return await self._door.write(Engine.cancel, Marks.record, task_id, reason)

    async def stop(self, task_id: str) -> TaskRecord:
        return await self._door.write(Engine.stop, Marks.record, task_id)

    async def force_stop(self, task_id: str) -> TaskRecord:
        """Raises OnlyInItsOwnWindow for a task of another ledger; see `Engine.force_stop`."""
        there = self._neighbours.of(task_id)
        if there is not None:
            raise OnlyInItsOwnWindow(label=there.beside.label, path=str(there.beside.path))
        return await super().force_stop(task_id)

    async def complete(
        self, subject: str, *, status: Status = Status.COMPLETED, force: Force | None = None
    ) -> RunView | TaskRecord:
        return await self._door.write(
            Engine.complete, Marks.ended, subject, status=status, force=force
        )

    async def discard(self, task_id: str, *, delete: bool = False) -> None:
        await self._door.write(Engine.discard, as_it_is, task_id, delete=delete)

    async def resume(self, run_id: str, reason: str) -> TaskRecord:
        return await self._door.write(Engine.resume, Marks.record, run_id, reason)

    async def give_up(self, run_id: str, reason: str | None = None) -> TaskRecord:
        return await self._door.write(Engine.give_up, Marks.record, run_id, reason)
