"""Looking at a task, in whichever of the ledgers side by side it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from engine.contracts.contract_views import ContractView
from engine.contracts.forcing import Guard, Prospect
from engine.kinds.context import Clock
from engine.ledger.machine import wall_ms
from engine.model.config import Settings
from engine.model.ledger_ids import SIGN, ledger_label, plain_id
from engine.model.records import EventSlice, History, TaskEvent, TaskId, TaskRecord, TaskView
from engine.query import Filter
from engine.service.engine import Engine
from engine.service.rerun import Asked
from engine.service.router.dispatch import Door, Neighbours, as_it_is
from engine.service.router.id_qualifier import Marks
from engine.service.router.routed_results import ExportsOfAll, PastOfAll, ReadingOfAll

T = TypeVar("T")
Views = list[TaskView]  # named, because inside the class `list` is the verb


class LooksBeside(Engine):
    """The verbs that write nothing. An id without a label is asked of the own ledger, as ever."""

    def __init__(self, settings: Settings, *, accepts: bool, clock: Clock | None = None) -> None:
        super().__init__(settings, accepts=accepts, clock=clock)
        self._neighbours = near = Neighbours(settings.root)
        self._door: Door[Engine] = Door(near, self, _itself)
        self.exports = ExportsOfAll(settings.root, near)
        self.reading = ReadingOfAll(settings.root, near)
        self.past = PastOfAll(settings.root, near)

    async def ledger_id(self, given: str) -> TaskId:
        return await self._door.ask(Engine.ledger_id, Marks.id, given)

    async def get(self, task_id: str) -> TaskView:
        return await self._door.ask(Engine.get, Marks.view, task_id)

    async def list(
        self,
        *,
        status: Collection[str] = (),
        kind: Collection[str] = (),
        since: int | None = None,
        query: str = "",
        limit: int | None = 50,
    ) -> Views:
        """Tasks of all ledgers that are open, newest first; see `Engine.list`."""
        near = [each for each in self._neighbours.by_label.values() if each.is_open]
        wanted = Filter.of(query)
        if not near:
            return await super().list(
                status=status, kind=kind, since=since, query=query, limit=limit
            )
        most = None if wanted.text else limit
        found = await super().list(status=status, kind=kind, since=since, limit=most)
        for each in near:
            listed = each.engine.list(status=status, kind=kind, since=since, limit=most)
            found += map(each.marks.view, await each.ask(listed))
        return await asyncio.to_thread(_newest, found, wanted, limit)

    async def meta(self, task_id: str) -> dict[str, Any]:
        return await self._door.ask(Engine.meta, as_it_is, task_id)

    async def command_task(self, task_id: str, *, results: bool = True) -> dict[str, Any] | None:
        return await self._door.ask(Engine.command_task, as_it_is, task_id, results=results)

    async def head(self, task_id: str) -> dict[str, Any]:
        return await self._door.ask(Engine.head, as_it_is, task_id)

    async def result(self, task_id: str) -> BinaryIO | None:
        return await self._door.ask(Engine.result, as_it_is, task_id)

    async def events(self, task_id: str, offset: int = 0) -> EventSlice:
        return await self._door.ask(Engine.events, as_it_is, task_id, offset)

    async def history(
        self,
        task_id: str,
        make: Callable[[TaskEvent, int], T],
        *,
        before: int | None = None,
        since: int | None = None,
    ) -> History[T]:
        return await self._door.ask(
            Engine.history, as_it_is, task_id, make, before=before, since=since
        )

    async def budgets(self, task_id: str) -> Any:
        return await self._door.ask(Engine.budgets, as_it_is, task_id)

    async def wait(self, task_id: str, timeout_ms: int = 60_000) -> TaskRecord:
        return await self._door.ask(Engine.wait, Marks.record, task_id, timeout_ms)

    async def asked(self, task_id: str, variables: Mapping[str, Any] | None = None) -> Asked:
        return await self._door.ask(Engine.asked, as_it_is, task_id, variables)

    async def prospect(self, subject: str, *, named: bool = False) -> Prospect:
        return await self._door.ask(Engine.prospect, Marks.prospect, subject, named=named)

    async def contract(self, contract_id: str, *, items: bool = True) -> ContractView:
        there = self._neighbours.of(contract_id)
        if there is not None:
            there.check_contracts()
        return await self._door.ask(Engine.contract, Marks.contract, contract_id, items=items)

    async def contract_counts(self, contract_ids: Collection[str]) -> dict[str, Guard]:
        """Of all ledgers whose contracts are known; see `Engine.contract_counts`."""
        found = await super().contract_counts([one for one in contract_ids if SIGN not in one])
        for label, each in tuple(self._neighbours.by_label.items()):
            wanted = [plain_id(one) for one in contract_ids if ledger_label(one) == label]
            if wanted and each.is_open and each.engine.has_runs:
                told = await each.ask(each.engine.contract_counts(wanted))
                found |= {each.marks.id(one): guard for one, guard in told.items()}
        return found

    async def by_hand(self, run_id: str) -> None:
        await self._door.ask(Engine.by_hand, as_it_is, run_id)

    async def join(self, task_id: str) -> None:
        """Nothing of another ledger is this process' own."""
        if SIGN not in task_id:
            await super().join(task_id)

    def is_run(self, subject: str) -> bool:
        """Of another ledger from memory: nobody need wait for its disk."""
        there = self._neighbours.of(subject)
        return super().is_run(subject) if there is None else subject in there.runs

    def folder_of(self, task_id: str) -> Path:
        there = self._neighbours.of(task_id)
        if there is None:
            return super().folder_of(task_id)
        return there.folder_of(plain_id(task_id), is_run=task_id in there.runs)


def _itself(engine: Engine) -> Engine:
    return engine


def _newest(found: Views, wanted: Filter, limit: int | None) -> Views:
    now_ms = wall_ms()
    found = [view for view in found if not wanted.text or wanted.shows(view, now_ms)]
    found.sort(key=lambda view: view.entry.created_at, reverse=True)
    return [*islice(found, limit)]
