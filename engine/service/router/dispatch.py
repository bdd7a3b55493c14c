"""Whom an id means: what is asked goes to the engine of that ledger, and comes back marked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from engine.export.output import check_outside
from engine.model.ledger_ids import SIGN, ledger_label, plain_id
from engine.service.engine import Engine
from engine.service.router.connection import Neighbour
from engine.service.router.errors import NoSuchLedger
from engine.service.router.id_qualifier import Marks

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
