"""What the window asks of its engine in the background, and where failures of that go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Signal

from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerUnusable
from engine.service.engine import Engine
from gui.engine_link.background import TaskSet

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Errands(QObject):
    """Owns every task that the window starts; none outlives it.

    `failed` is for a person to read, `broken` is what nobody expected.
    """

    failed = Signal(EngineError)
    broken = Signal(Exception)

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._engine: Engine | None = None
        self._trouble: EngineError | None = None  # why the ledger is not open
        self._tried = asyncio.Event()  # the ledger is open, or it is known why it is not
        self._tasks = TaskSet(self._tell)
        self._promises: list[Callable[[Engine], Coroutine[Any, Any, object]]] = []

    @property
    def engine(self) -> Engine:
        """The engine, once the ledger is open.

        Raises:
            EngineError: it is not open yet; why, if it was tried.
        """
        if self._engine is None:
            root = str(self._settings.root)
            raise self._trouble or LedgerUnusable(path=root, reason="it is still being opened")
        return self._engine

    @property
    def trouble(self) -> EngineError | None:
        """Why the ledger is not open; None while it is, or is still being opened."""
        return self._trouble

    def _has_tried(self, trouble: EngineError | None) -> None:
        """The ledger is open, or this is why it is not."""
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
        """Ask the engine something; `then` hears the answer, on the window's own thread.

        What was asked before under this name is called off first. `failed` hears an engine's
        error; without it the window's banner tells it. What is asked while the ledger is being
        opened is asked then.
        """
        self._tasks.cancel(name)
        self._tasks.spawn(self._ask(work, then, failed), name=name)

    def promise(self, work: Callable[[Engine], Coroutine[Any, Any, object]]) -> None:
        """Do this at the end, before the engine ends: what a person was told will be done."""
        self._promises.append(work)

    async def _keep_promises(self) -> None:
        for work in self._promises if self._engine is not None else ():
            try:
                await work(self.engine)
            except EngineError as error:
                log.warning("left undone at the end: %s", error)

    def call_off(self, name: str) -> None:
        """End what was asked or spawned under this name; nobody hears of it."""
        self._tasks.cancel(name)

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """Run `work` until it ends or the window is closed."""
        self._tasks.spawn(work, name=name)

    def spawn_once(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """As `spawn`; what runs under this name is called off first."""
        self._tasks.cancel(name)
        self._tasks.spawn(work, name=name)

    def warm(self) -> None:
        """Start the browser in the background, so that the first task need not wait for it."""
        self._tasks.spawn(self._warm(), name="warm the browser")

    def show_health(self) -> None:
        """Something may have changed that the status bar shows."""

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
            self.show_health()  # "starting"
            await warming
            self.show_health()

    def _tell(self, error: Exception) -> None:
        if not isinstance(error, EngineError):
            log.error("a task of the window failed", exc_info=error)
            self.broken.emit(error)
            return
        self.failed.emit(error)
        self.show_health()
