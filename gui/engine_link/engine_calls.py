"""Background calls to the engine, the reporting of their failures, and cancellation of many."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Signal

from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerUnusable
from engine.model.records import TaskRecord
from engine.service.commands import stop_all
from engine.service.engine import Engine
from gui.engine_link.scheduling import TaskSet


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Records and errors after cancelling several tasks.

    `waiting` are the tasks that were queued when the user chose them.
    """

    records: tuple[TaskRecord, ...]
    refused: tuple[EngineError, ...]
    waiting: frozenset[str] = frozenset()


async def cancel_all(
    cancel: Callable[[str, str | None], Awaitable[TaskRecord]],
    task_ids: Iterable[str],
    reason: str | None,
    waiting: frozenset[str],
) -> Cancelled:
    """Cancel each task; a failure does not stop the others."""
    stopped = await stop_all(cancel, task_ids, reason)
    return Cancelled(stopped.records, stopped.refused, waiting)


log = logging.getLogger(__name__)

_T = TypeVar("_T")


class EngineCalls(QObject):
    """Owner of all background tasks of the window, which end with it.

    `failed` carries an error for the user, `broken` an unexpected exception.
    """

    failed = Signal(EngineError)
    broken = Signal(Exception)

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._engine: Engine | None = None
        self._trouble: EngineError | None = None  # Reason why the ledger is not open
        self._tried = asyncio.Event()  # Set when the ledger is open or has failed to open
        self._tasks = TaskSet(self._tell)
        self._promises: list[Callable[[Engine], Coroutine[Any, Any, object]]] = []

    @property
    def engine(self) -> Engine:
        """The engine of the open ledger.

        Raises: EngineError: the ledger is not open, with the reason after a failed attempt.
        """
        if self._engine is None:
            root = str(self._settings.root)
            raise self._trouble or LedgerUnusable(path=root, reason="it is still being opened")
        return self._engine

    @property
    def trouble(self) -> EngineError | None:
        """The reason why the ledger failed to open, else None."""
        return self._trouble

    def _has_tried(self, trouble: EngineError | None) -> None:
        """Record that the ledger is open, or why it is not."""
        self._trouble = trouble
        self._tried.set()

    def ask(
        self,
        work: Callable[[Engine], Coroutine[Any, Any, _T]],
        then: Callable[[_T], object],
        failed: Callable[[EngineError], object] | None = None,
        *,
        name: str,
    ) -> None:
        """Call the engine and pass the result to `then`, on the window's thread.

        A pending call of the same name is cancelled first. `failed` receives an engine error;
        without it the banner shows the error. Calls made before the ledger is open wait for it.
        """
        self._tasks.cancel(name)
        self._tasks.spawn(self._ask(work, then, failed), name=name)

    def promise(self, work: Callable[[Engine], Coroutine[Any, Any, object]]) -> None:
        """Run `work` before the engine closes, for actions already confirmed to the user."""
        self._promises.append(work)

    async def _keep_promises(self) -> None:
        for work in self._promises if self._engine is not None else ():
            try:
                await work(self.engine)
            except EngineError as error:
                log.warning("left undone at the end: %s", error)

    def call_off(self, name: str) -> None:
        """Cancel the calls and tasks of this name silently."""
        self._tasks.cancel(name)

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """Run `work` until it ends or the window closes."""
        self._tasks.spawn(work, name=name)

    def spawn_once(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """Run `work` like `spawn`, after cancelling a task of the same name."""
        self._tasks.cancel(name)
        self._tasks.spawn(work, name=name)

    def warm(self) -> None:
        """Start the browser in advance, so that the first task starts faster."""
        self._tasks.spawn(self._warm(), name="warm the browser")

    def show_health(self) -> None:
        """Update the status bar; overridden by `Bridge`."""

    async def _ask(
        self,
        work: Callable[[Engine], Coroutine[Any, Any, _T]],
        then: Callable[[_T], object],
        failed: Callable[[EngineError], object] | None,
    ) -> None:
        try:
            await self._tried.wait()
            answer = await work(self.engine)
        except EngineError as error:
            if failed is None:
                raise
            failed(error)
        else:
            then(answer)

    async def _warm(self) -> None:
        await self._tried.wait()
        if self._engine is not None:
            warming = asyncio.ensure_future(self._engine.warm())
            await asyncio.sleep(0)
            self.show_health()  # Shows "starting"
            await warming
            self.show_health()

    def _tell(self, error: Exception) -> None:
        if not isinstance(error, EngineError):
            log.error("a task of the window failed", exc_info=error)
            self.broken.emit(error)
            return
        self.failed.emit(error)
        self.show_health()
