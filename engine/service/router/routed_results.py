"""What stands in tasks' folders, what is behind them and their exports, for several ledgers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from engine.export.exporter import Exported, Order, Watch
from engine.export.exports import Exports
from engine.ledger.event_search import Found
from engine.model.blocked_places import Refusals
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskView, UnitTimes
from engine.results.differences import Differences
from engine.results.file_parts import FileFacts, FilePart
from engine.results.file_reader import HitPart, Reading
from engine.results.file_reader import Told as FileTold
from engine.results.json_tree import Node, Rest
from engine.results.unit_rows import UnitPart
from engine.results.units import Unit
from engine.service.engine import Engine
from engine.service.router.dispatch import Door, Neighbours, as_it_is
from engine.service.task_history import Past, Told


def _reading(engine: Engine) -> Reading:
    return engine.reading


def _past(engine: Engine) -> Past:
    return engine.past


class ReadingOfAll(Reading):
    """The folders of every ledger's tasks; see `Reading`."""

    def __init__(self, root: Path, near: Neighbours) -> None:
        super().__init__(root)
        self._near = near
        self._door: Door[Reading] = Door(near, self, _reading)

    def units(
        self, task_id: str, since: int = 0, number: int = 0
    ) -> AsyncGenerator[UnitPart, None]:
        return self._door.each(Reading.units, task_id, since, number)

    async def unit(self, task_id: str, unit: Unit) -> dict[str, Any] | None:
        return await self._door.ask(Reading.unit, as_it_is, task_id, unit)

    async def refusals(self, task_id: str) -> Refusals:
        return await self._door.ask(Reading.refusals, as_it_is, task_id)

    async def differences(
        self,
        before: str,
        after: str,
        told: Callable[[int], None],
        *,
        earlier: Reading | None = None,
    ) -> Differences:
        """What differs between two runs, also of two ledgers."""
        rooms = [one and one.engine.reading for one in map(self._near.of, (before, after))]
        there = self._near.of(after) or self._near.of(before)
        work = Reading.differences(
            rooms[1] or self, plain_id(before), plain_id(after), told, earlier=rooms[0] or self
        )
        return await (work if there is None else there.ask(work))

    async def files(self, task_id: str) -> tuple[FileFacts, ...]:
        return await self._door.ask(Reading.files, as_it_is, task_id)

    async def place(self, task_id: str, name: str) -> Path | None:
        return await self._door.ask(Reading.place, as_it_is, task_id, name)

    async def part(self, task_id: str, name: str, start: int, most: int) -> FilePart:
        return await self._door.ask(Reading.part, as_it_is, task_id, name, start, most)

    async def find(self, task_id: str, name: str, needle: str, start: int, told: FileTold) -> int:
        return await self._door.ask(Reading.find, as_it_is, task_id, name, needle, start, told)

    async def picture(self, task_id: str, name: str) -> bytes | None:
        return await self._door.ask(Reading.picture, as_it_is, task_id, name)

    def members(
        self, task_id: str, name: str, node: Node, rest: Rest | None = None, most: int = 500
    ) -> AsyncGenerator[list[Node | Rest], None]:
        return self._door.each(Reading.members, task_id, name, node, rest, most)

    def search(self, task_id: str, name: str, needle: str) -> AsyncGenerator[HitPart, None]:
        return self._door.each(Reading.search, task_id, name, needle)

    async def value(self, task_id: str, name: str, node: Node) -> bytes | None:
        return await self._door.ask(Reading.value, as_it_is, task_id, name, node)

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
        self, order: Order, place: Path, *, force: bool = False, watch: Watch | None = None
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
        watch: Watch | None = None,
    ) -> Exported:
        await self._near.check_outside(place)
        return await super().list_to_file(views, order, place, force=force, watch=watch)

    async def to_stream(
        self, order: Order, out: BinaryIO, *, watch: Watch | None = None
    ) -> Exported:
        there = self._near.of(order.task_id)
        if there is None:
            return await super().to_stream(order, out, watch=watch)
        named = replace(order, task_id=plain_id(order.task_id))
        work = there.engine.exports.to_stream(named, out, watch=watch)
        return there.marks.exported(await there.ask(work))
