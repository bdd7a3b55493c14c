"""Connection to one other ledger: an engine that only reads and changes tasks, and its threads.

Ids in its answers are qualified with its label; in unchanged documents (meta.json, a command
task's own) and in sentences of errors they stay plain, because those are for display only.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from engine.export.output import Exported
from engine.ledger.routing import Access
from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerUnusable
from engine.model.ledger_ids import qualified
from engine.model.records import TASK_RUNS_FOLDER, Health, TaskId, TaskRecord, TaskView, Unreadable
from engine.service.feed import Batch
from engine.service.router.isolated_executor import Lane
from engine.service.router.ledger_paths import (
    Beside,
    ContractsElsewhere,
    LedgerNotOpen,
    LedgerState,
    LedgerWatchOnly,
    OnlyInItsOwnWindow,
    Standing,
    check_apart,
)

if TYPE_CHECKING:
    from engine.contracts.completing import CompletionCheck
    from engine.contracts.contract_progress import ContractView, RunView

log = logging.getLogger(__name__)

_LINKS: Final = ("parent_task_id", "command_task_id", "contract_id", "task_run_id", "run_id")
_OF_CONTRACT: Final = ("contract_id", "run_id", "task_id")

_S = TypeVar("_S", bound=Struct)


@dataclass(frozen=True, slots=True)
class IdQualifier:
    """Add one ledger's label to ids, without disk access."""

    label: str

    def id(self, plain: str) -> TaskId:
        return qualified(plain, self.label)

    def qualified(self, answer: T) -> T:
        """Qualify the result of an operation by its type; a result without ids stays unchanged."""
        for kind, qualify in _by_type().items():
            if isinstance(answer, kind):
                found: T = qualify(self, answer)
                return found
        # The type of the answer is that of the call.
        return [self.qualified(one) for one in answer] if isinstance(answer, list) else answer  # type: ignore[return-value]

    def record(self, record: TaskRecord) -> TaskRecord:
        engine = record.engine and self._marked(record.engine, _LINKS)
        return replace(record, task_id=self.id(record.task_id), engine=engine)

    def entry(self, entry: TaskRecord | Unreadable) -> TaskRecord | Unreadable:
        if isinstance(entry, TaskRecord):
            return self.record(entry)
        return replace(entry, task_id=self.id(entry.task_id))

    def view(self, view: TaskView) -> TaskView:
        """No task there is of this process, which starts none in that ledger."""
        return replace(view, entry=self.entry(view.entry), ledger=self.label)

    def batch(self, batch: Batch) -> Batch:
        views = tuple(map(self.view, batch.views))
        return replace(batch, views=views, gone=tuple(map(self.id, batch.gone)))

    def prospect(self, prospect: CompletionCheck) -> CompletionCheck:
        return replace(prospect, subject=self.id(prospect.subject))

    def contract(self, view: ContractView) -> ContractView:
        return replace(view, contract=self._marked(view.contract, _OF_CONTRACT))

    def run(self, view: RunView) -> RunView:
        raw = {**view.raw, "run_id": self.id(view.run_id)}
        return replace(view, raw=raw, progress=view.progress and self.contract(view.progress))

    def exported(self, exported: Exported) -> Exported:
        return replace(exported, task_id=self.id(exported.task_id))

    def _marked(self, one: _S, names: Sequence[str]) -> _S:
        found = {name: getattr(one, name) for name in names}
        return replace(one, **{name: self.id(value) for name, value in found.items() if value})


@cache
def _by_type() -> dict[type, Callable[[IdQualifier, Any], Any]]:
    # Imported here, so that an engine without other ledgers does not import the contracts.
    from engine.contracts.completing import CompletionCheck
    from engine.contracts.contract_progress import ContractView, RunView

    return {
        str: IdQualifier.id,
        TaskView: IdQualifier.view,
        TaskRecord: IdQualifier.record,
        CompletionCheck: IdQualifier.prospect,
        ContractView: IdQualifier.contract,
        RunView: IdQualifier.run,
        Exported: IdQualifier.exported,
    }


T = TypeVar("T")
AGAIN_S: Final = 2.0  # interval between attempts to open a ledger
CLOSE_S: Final = 1.0  # maximum wait for a ledger on a dead disk
_STATES: Final[dict[str, Standing]] = {
    "live": "live",
    "polling": "polling",
    "gone": "gone",
    "silent": "polling",
}


class _LiveTasks(Protocol):
    def changes(self) -> AsyncGenerator[Batch, None]: ...

    def rescan(self) -> None: ...


class _LiveRuns(Protocol):
    def run_changes(self) -> AsyncGenerator[Batch, None]: ...


class OtherEngine(Protocol):
    """Interface of another ledger's engine, as a connection uses it."""

    settings: Settings
    has_runs: bool

    @property
    def tasks(self) -> _LiveTasks: ...

    @property
    def contracts(self) -> _LiveRuns: ...

    def health(self) -> Health: ...

    async def close(self, grace_s: float = 5.0) -> None: ...


class LedgerConnection:
    """Open a ledger, with retries; call `told` after a change of its state.

    `others` returns the folders of the ledgers that were added earlier.
    """

    def __init__(
        self,
        beside: Beside,
        open_engine: Callable[[Path], OtherEngine],
        others: Callable[[], Iterable[Path]],
        told: Callable[[], object],
    ) -> None:
        self.beside = beside
        self.ids = IdQualifier(beside.label)
        self.tasks = 0
        self.runs: Collection[str] = ()  # the task runs among its rows
        self.place = str(beside.path.absolute())  # without symlinks once it was opened
        self.lane = Lane(beside.label)
        self._open_engine, self._others, self._told = open_engine, others, told
        self._engine: OtherEngine | None = None
        self._error: EngineError | None = None
        self._ready, self._look = asyncio.Event(), asyncio.Event()
        self._opening: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Open the ledger in the background, from a running loop."""
        self._opening = asyncio.create_task(self._begin(), name=f"open {self.beside.label}")

    async def ready(self) -> OtherEngine:
        """Wait for the engine, and return it."""
        await self._ready.wait()
        return self.engine

    @property
    def is_open(self) -> bool:
        return self._engine is not None

    @property
    def engine(self) -> OtherEngine:
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

    @property
    def label(self) -> str:
        return self.beside.label

    def part(self, name: str) -> Any:
        """The part of its engine with this name."""
        return getattr(self.engine, name)

    async def ask(self, work: Awaitable[T]) -> T:
        """Await an engine operation on its own threads, and qualify the ids of its result."""
        return self.ids.qualified(await self.lane.run(work))

    def each(self, items: AsyncGenerator[T, Any]) -> AsyncGenerator[T, Any]:
        """Yield `items`, each made on its own threads."""
        return self.lane.each(items)

    def qualified(self, plain: str) -> TaskId:
        """An id of this ledger with its label."""
        return self.ids.id(plain)

    def check(self, access: Access) -> None:
        """Raise unless this access is allowed from outside.

        Raises:
            LedgerWatchOnly: the ledger may not be written.
            ContractsElsewhere: the folder of its contracts is unknown.
            OnlyInItsOwnWindow: only the program that runs the task may do this.
        """
        names = {"label": self.beside.label, "path": str(self.beside.path)}
        if access == "write" and self.beside.watch_only:
            raise LedgerWatchOnly(**names)
        if access == "contracts" and not self.engine.has_runs:
            raise ContractsElsewhere(**names)
        if access == "own":
            raise OnlyInItsOwnWindow(**names)

    def folder_of(self, plain: str, *, is_run: bool) -> Path:
        """Return the folder of a task or a task run."""
        root = self.engine.settings.home / TASK_RUNS_FOLDER if is_run else self.beside.path
        return root / plain

    @property
    def state(self) -> LedgerState:
        """The current state, immediately and from memory."""
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
        """Record an error of opening or following the ledger; None clears it."""
        if str(error) != str(self._error):
            if error is not None:
                log.warning("ledger %s cannot be used now: %s", self.beside.label, error)
            self._error = error
            self._told()

    def hear(self, batch: Batch) -> None:
        """Record the number of tasks of a batch, and report a changed watch state."""
        self.tasks = batch.total
        self.fail(None)
        if not batch.views and not batch.gone:
            self._told()

    def rescan(self) -> None:
        """Read every folder again, or retry opening the ledger, now."""
        self._look.set()
        if self._engine is not None:
            self._engine.tasks.rescan()

    async def close(self, readers: Iterable[asyncio.Task[None]] = ()) -> None:
        """Close the ledger after its cancelled `readers` have ended.

        Operations that hang on its disk are awaited for at most a second.
        """
        ending = [*readers, *filter(None, [self._opening])]
        if self._opening is not None:
            self._opening.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                if ending:
                    await asyncio.wait(ending)
                if self._engine is not None:
                    await self.lane.run(self._engine.close(0))
        self.lane.close()

    async def pause(self) -> None:
        """Wait until the next attempt."""
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

    def _made(self) -> OtherEngine:
        """Open the engine in a thread, because resolving the folder may wait for a slow disk."""
        check_apart(self.beside.path, self._others())
        self.place = os.path.realpath(self.beside.path)
        return self._open_engine(self.beside.path)


def as_engine_error(error: Exception, path: Path) -> EngineError:
    """Convert a failure of opening or following a ledger to an error with a readable reason."""
    if isinstance(error, EngineError):
        return error
    reason = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
    return LedgerUnusable(path=str(path), reason=reason)
