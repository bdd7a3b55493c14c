"""One ledger beside the own one: an engine that takes no tasks there, and threads of its own."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from engine.contracts.task_run_folders import FOLDER as RUNS
from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerUnusable
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.router.connection_state import Beside, LedgerState, Standing
from engine.service.router.errors import ContractsElsewhere, LedgerNotOpen, LedgerWatchOnly
from engine.service.router.id_qualifier import Marks
from engine.service.router.isolated_executor import Lane
from engine.service.router.ledger_paths import check_apart, home_of

log = logging.getLogger(__name__)

T = TypeVar("T")
AGAIN_S: Final = 2.0  # until a ledger that cannot be opened is tried again
CLOSE_S: Final = 1.0  # one on a dead disk is left to itself
_STATES: Final[dict[str, Standing]] = {
    "live": "live",
    "polling": "polling",
    "gone": "gone",
    "silent": "polling",
}


class Guest(Engine):
    """Looks at another ledger, and asks there what it is told to; starts and reaps nothing."""

    _keeps_all = True

    def __init__(self, own: Settings, root: Path) -> None:
        home = home_of(root, own.home)
        # Without a home of its own nothing is kept outside of the ledger: its runs, wherever
        # they are, are brought to where the task is by the program that has them.
        super().__init__(replace(own, root=root, home=home or root, environ={}), accepts=False)
        self.has_runs = home is not None
        if home is None:
            self._ledger.on_state_change = _tell_nobody


def _tell_nobody(_: TaskRecord) -> None:
    pass


class Neighbour:
    """Opens the ledger, again and again while that fails; `told` hears of another state.

    `others` gives the folders of the ledgers that were there first.
    """

    def __init__(
        self,
        beside: Beside,
        own: Settings,
        others: Callable[[], Iterable[Path]],
        told: Callable[[], object],
    ) -> None:
        self.beside = beside
        self.marks = Marks(beside.label)
        self.tasks = 0
        self.runs: Collection[str] = ()  # the task runs among its rows
        self.place = str(beside.path.absolute())  # without links, once somebody looked
        self.lane = Lane(beside.label)
        self._own, self._others, self._told = own, others, told
        self._engine: Guest | None = None
        self._error: EngineError | None = None
        self._ready, self._look = asyncio.Event(), asyncio.Event()
        self._opening: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Open it in the background, from a running loop."""
        self._opening = asyncio.create_task(self._begin(), name=f"open {self.beside.label}")

    async def ready(self) -> Guest:
        """Its engine, as soon as there is one."""
        await self._ready.wait()
        return self.engine

    @property
    def is_open(self) -> bool:
        return self._engine is not None

    @property
    def engine(self) -> Guest:
        """Its engine.

        Raises:
            LedgerNotOpen: there is none yet; with the reason.
        """
        if self._engine is None:
            reason = "it is still being opened"
            if self._error is not None:
                reason = str(self._error.fields.get("reason") or self._error).rstrip(".")
            label, path = self.beside.label, str(self.beside.path)
            raise LedgerNotOpen(label=label, path=path, reason=reason)
        return self._engine

    async def ask(self, work: Awaitable[T]) -> T:
        """Await what was asked of its engine, on its own threads."""
        return await self.lane.run(work)

    def folder_of(self, plain: str, *, is_run: bool) -> Path:
        """Where a task, or a task run, keeps its files."""
        root = self.engine.settings.home / RUNS if is_run else self.beside.path
        return root / plain

    def check_contracts(self) -> None:
        """Raise ContractsElsewhere where nobody knows in which folder its contracts are."""
        if not self.engine.has_runs:
            raise ContractsElsewhere(label=self.beside.label, path=str(self.beside.path))

    def check_writable(self) -> None:
        """Raise LedgerWatchOnly where nothing may be written."""
        if self.beside.watch_only:
            raise LedgerWatchOnly(label=self.beside.label, path=str(self.beside.path))

    @property
    def state(self) -> LedgerState:
        """How it is now, at once and from memory."""
        one = self.beside
        if self._error is not None:
            found: tuple[Standing, str] = "unusable", str(self._error)
        elif self._engine is None:
            found = "opening", ""
        else:
            health = self._engine.health()
            found = _STATES.get(health.watcher, "live"), health.watcher_reason
        return LedgerState(one.label, one.path, one.watch_only, *found, self.tasks, self._error)

    def fail(self, error: EngineError | None) -> None:
        """It could not be opened or followed; without an error it can again."""
        if str(error) != str(self._error):
            if error is not None:
                log.warning("ledger %s cannot be used now: %s", self.beside.label, error)
            self._error = error
            self._told()

    def hear(self, batch: Batch) -> None:
        """It is followed: how many tasks it has, and perhaps how well it is watched."""
        self.tasks = batch.total
        self.fail(None)
        if not batch.views and not batch.gone:
            self._told()

    def rescan(self) -> None:
        """Look at every folder again, or try to open it, now."""
        self._look.set()
        if self._engine is not None:
            self._engine.rescan()

    async def close(self, readers: Iterable[asyncio.Task[None]] = ()) -> None:
        """Let go of it, after its `readers` (which were called off) have ended.

        What hangs on its disk is not waited for longer than a second.
        """
        ending = [*readers, *filter(None, [self._opening])]
        if self._opening is not None:
            self._opening.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                if ending:
                    await asyncio.wait(ending)
                if self._engine is not None:
                    await self.ask(self._engine.close(0))
        self.lane.close()

    async def pause(self) -> None:
        """Wait until it is worth trying again."""
        self._look.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(AGAIN_S):
                await self._look.wait()

    async def _begin(self) -> None:
        await self.lane.run(self._open())

    async def _open(self) -> None:
        while self._engine is None:
            try:
                self._engine = await asyncio.to_thread(self._made)
            except (EngineError, OSError) as error:
                self.fail(as_engine_error(error, self.beside.path))
                await self.pause()
        self.fail(None)
        self._ready.set()
        self._told()

    def _made(self) -> Guest:
        """In a thread: where the folder lies is asked of disks that may be slow."""
        check_apart(self.beside.path, self._others())
        self.place = os.path.realpath(self.beside.path)
        return Guest(self._own, self.beside.path)


def as_engine_error(error: Exception, path: Path) -> EngineError:
    """What kept a ledger from being opened or followed, for people."""
    if isinstance(error, EngineError):
        return error
    reason = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
    return LedgerUnusable(path=str(path), reason=reason)
