"""Acting on a task, in whichever of the ledgers side by side it is: written only there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Concatenate, Generic, ParamSpec, TypeVar

from msgspec.structs import replace

from engine.contracts.contract_views import ContractView, RunView
from engine.contracts.forced_completion import Force
from engine.contracts.forcing import CompletionCheck, Guard
from engine.export.exporter import Exported, ExportProgress, Order
from engine.export.exports import Exports
from engine.export.output import check_outside
from engine.kinds.context import Clock
from engine.ledger.event_search import Found
from engine.ledger.machine import wall_ms
from engine.model.blocked_places import Refusals
from engine.model.config import Settings
from engine.model.ledger_ids import SIGN, ledger_label, plain_id
from engine.model.records import (
    EventSlice,
    History,
    Status,
    TaskEvent,
    TaskId,
    TaskRecord,
    TaskView,
    UnitTimes,
)
from engine.query import Filter
from engine.results.differences import Differences
from engine.results.file_parts import FileFacts, FilePart
from engine.results.file_reader import HitPart, OnProgress, TaskFileReader
from engine.results.json_tree import Node, Rest
from engine.results.unit_rows import UnitPart
from engine.results.units import Unit
from engine.service.admission import NO_TERMS, Terms
from engine.service.engine import Engine
from engine.service.rerun import Asked
from engine.service.router.connection import Neighbour
from engine.service.router.errors import NoSuchLedger, OnlyInItsOwnWindow
from engine.service.router.id_qualifier import Marks
from engine.service.task_history import Past, Told

# Whom an id means: what is asked goes to the engine of that ledger, and comes back marked.

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
Verb = Callable[Concatenate[R, str, P], Awaitable[T]]
Mark = Callable[[Marks, T], T]


def as_it_is(_: Marks, answer: T) -> T:
    """For an answer that holds no id."""
    return answer


class Neighbours:
    """The ledgers beside the own one at `root`, by label, in the order in which they came."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.by_label: dict[str, Neighbour] = {}

    def of(self, task_id: str) -> Neighbour | None:
        """The ledger that the id names; None for the own.

        Raises:
            NoSuchLedger: it names one that is not there.
        """
        if SIGN not in task_id:  # all that an id costs where there is one ledger
            return None
        label = ledger_label(task_id)
        found = self.by_label.get(label)
        if found is None:
            raise NoSuchLedger(label=label)
        return found

    async def check_outside(self, place: Path) -> None:
        """Raise ExportRefused for a place inside of any of the ledgers."""
        places = [each.place for each in self.by_label.values()]
        if places:  # else whoever writes asks about the own one
            own = self._root
            await asyncio.to_thread(lambda: check_outside(place, [os.path.realpath(own), *places]))


class Door(Generic[R]):
    """One room of the own engine, and the same room of those of the ledgers beside."""

    def __init__(self, near: Neighbours, own: R, room: Callable[[Engine], R]) -> None:
        self._near, self._own, self._room = near, own, room

    async def ask(
        self, verb: Verb[R, P, T], mark: Mark[T], task_id: str, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`verb`, asked of the room of the ledger that the id names."""
        there = self._near.of(task_id)
        if there is None:
            return await verb(self._own, task_id, *args, **kwargs)
        work = verb(self._room(there.engine), plain_id(task_id), *args, **kwargs)
        return mark(there.marks, await there.ask(work))

    async def write(
        self, verb: Verb[R, P, T], mark: Mark[T], task_id: str, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `ask`, for what changes something there.

        Raises:
            LedgerWatchOnly: nothing may be changed there.
        """
        there = self._near.of(task_id)
        if there is not None:
            there.check_writable()
        return await self.ask(verb, mark, task_id, *args, **kwargs)

    def each(
        self,
        verb: Callable[Concatenate[R, str, P], AsyncGenerator[T, Any]],
        task_id: str,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> AsyncGenerator[T, Any]:
        """As `ask`, for what is told in parts; these hold no id."""
        there = self._near.of(task_id)
        if there is None:
            return verb(self._own, task_id, *args, **kwargs)
        return there.lane.each(verb(self._room(there.engine), plain_id(task_id), *args, **kwargs))


# What stands in tasks' folders, what is behind them and their exports, for several ledgers.


def _reading(engine: Engine) -> TaskFileReader:
    return engine.reading


def _past(engine: Engine) -> Past:
    return engine.past


class ReadingOfAll(TaskFileReader):
    """The folders of every ledger's tasks; see `TaskFileReader`."""

    def __init__(self, root: Path, near: Neighbours) -> None:
        super().__init__(root)
        self._near = near
        self._door: Door[TaskFileReader] = Door(near, self, _reading)

    def units(
        self, task_id: str, since: int = 0, number: int = 0
    ) -> AsyncGenerator[UnitPart, None]:
        return self._door.each(TaskFileReader.units, task_id, since, number)

    async def unit(self, task_id: str, unit: Unit) -> dict[str, Any] | None:
        return await self._door.ask(TaskFileReader.unit, as_it_is, task_id, unit)

    async def refusals(self, task_id: str) -> Refusals:
        return await self._door.ask(TaskFileReader.refusals, as_it_is, task_id)

    async def differences(
        self,
        before: str,
        after: str,
        told: Callable[[int], None],
        *,
        earlier: TaskFileReader | None = None,
    ) -> Differences:
        """What differs between two runs, also of two ledgers."""
        rooms = [one and one.engine.reading for one in map(self._near.of, (before, after))]
        there = self._near.of(after) or self._near.of(before)
        work = TaskFileReader.differences(
            rooms[1] or self, plain_id(before), plain_id(after), told, earlier=rooms[0] or self
        )
        return await (work if there is None else there.ask(work))

    async def files(self, task_id: str) -> tuple[FileFacts, ...]:
        return await self._door.ask(TaskFileReader.files, as_it_is, task_id)

    async def place(self, task_id: str, name: str) -> Path | None:
        return await self._door.ask(TaskFileReader.place, as_it_is, task_id, name)

    async def part(self, task_id: str, name: str, start: int, most: int) -> FilePart:
        return await self._door.ask(TaskFileReader.part, as_it_is, task_id, name, start, most)

    async def find(
        self, task_id: str, name: str, needle: str, start: int, on_progress: OnProgress
    ) -> int:
        return await self._door.ask(
            TaskFileReader.find, as_it_is, task_id, name, needle, start, on_progress
        )

    async def picture(self, task_id: str, name: str) -> bytes | None:
        return await self._door.ask(TaskFileReader.picture, as_it_is, task_id, name)

    def members(
        self, task_id: str, name: str, node: Node, rest: Rest | None = None, most: int = 500
    ) -> AsyncGenerator[list[Node | Rest], None]:
        return self._door.each(TaskFileReader.members, task_id, name, node, rest, most)

    def search(self, task_id: str, name: str, needle: str) -> AsyncGenerator[HitPart, None]:
        return self._door.each(TaskFileReader.search, task_id, name, needle)

    async def value(self, task_id: str, name: str, node: Node) -> bytes | None:
        return await self._door.ask(TaskFileReader.value, as_it_is, task_id, name, node)

    def open(self, task_id: str, name: str) -> BinaryIO:
        there = self._near.of(task_id)
        if there is None:
            return super().open(task_id, name)
        return there.engine.reading.open(plain_id(task_id), name)


class PastOfAll(Past):
    """What tasks of every ledger have behind them; see `Past`."""

    def __init__(self, root: Path, near: Neighbours) -> None:
        super().__init__(root)
        self._near = near
        self._door: Door[Past] = Door(near, self, _past)

    async def find(self, task_id: str, text: str, since: int = 0) -> Found:
        return await self._door.ask(Past.find, as_it_is, task_id, text, since)

    async def place_of(self, task_id: str, ts_ms: float) -> int:
        return await self._door.ask(Past.place_of, as_it_is, task_id, ts_ms)

    async def unit_times(self, task_id: str, since: int = 0) -> UnitTimes:
        return await self._door.ask(Past.unit_times, as_it_is, task_id, since)

    async def save_events(self, task_id: str, place: Path, told: Told) -> int:
        await self._near.check_outside(place)
        return await self._door.ask(Past.save_events, as_it_is, task_id, place, told)

    async def save_lines(self, lines: Iterable[str], place: Path) -> int:
        await self._near.check_outside(place)
        return await super().save_lines(lines, place)


class ExportsOfAll(Exports):
    """The results of every ledger's tasks as files, none of them inside a ledger that is shown."""

    def __init__(self, root: Path, near: Neighbours) -> None:
        super().__init__(root)
        self._near = near

    async def to_file(
        self, order: Order, place: Path, *, force: bool = False, watch: ExportProgress | None = None
    ) -> Exported:
        await self._near.check_outside(place)
        there = self._near.of(order.task_id)
        if there is None:
            return await super().to_file(order, place, force=force, watch=watch)
        named = replace(order, task_id=plain_id(order.task_id))
        work = there.engine.exports.to_file(named, place, force=force, watch=watch)
        return there.marks.exported(await there.ask(work))

    async def list_to_file(
        self,
        views: Sequence[TaskView],
        order: Order,
        place: Path,
        *,
        force: bool = False,
        watch: ExportProgress | None = None,
    ) -> Exported:
        await self._near.check_outside(place)
        return await super().list_to_file(views, order, place, force=force, watch=watch)

    async def to_stream(
        self, order: Order, out: BinaryIO, *, watch: ExportProgress | None = None
    ) -> Exported:
        there = self._near.of(order.task_id)
        if there is None:
            return await super().to_stream(order, out, watch=watch)
        named = replace(order, task_id=plain_id(order.task_id))
        work = there.engine.exports.to_stream(named, out, watch=watch)
        return there.marks.exported(await there.ask(work))


# Looking at a task, in whichever of the ledgers side by side it is.

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

    async def prospect(self, subject: str, *, named: bool = False) -> CompletionCheck:
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
