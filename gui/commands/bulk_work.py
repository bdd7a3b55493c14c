"""Bulk actions with a progress bar, a stop button and a combined result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QProgressBar, QPushButton, QWidget

from engine.model.errors import EngineError
from engine.service.engine import Engine
from engine.text.words import count
from gui.engine_link.engine_calls import EngineCalls
from gui.style.theme import plain_label

AT_ONCE = 4  # Concurrent tasks, each of which waits for a disk
QUIET_MS = 400  # Delay in ms before a progress bar appears
LOOK_MS = 100  # Update interval of the bar in ms

T = TypeVar("T")
Act = Callable[[Engine, str], Awaitable[T]]


class Refusal(NamedTuple):
    """A failed task with its error."""

    task_id: str
    error: EngineError


@dataclass(slots=True)
class Outcome(Generic[T]):
    """Result of a bulk action: answers, failures and skipped tasks."""

    done: list[T] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return len(self.done) + len(self.refused)


class Work(Generic[T]):
    """A bulk action over many tasks; `stop` starts no further ones."""

    def __init__(self, task_ids: Iterable[str], act: Act[T]) -> None:
        self._ids = tuple(dict.fromkeys(task_ids))
        self._act = act
        self._stopped = False
        self.outcome: Outcome[T] = Outcome()

    def __len__(self) -> int:
        return len(self._ids)

    def stop(self) -> None:
        self._stopped = True

    def unbegun(self) -> Outcome[T]:
        """Return the result of an action that could not start, with all tasks skipped."""
        return Outcome(left=list(self._ids))

    async def run(self, engine: Engine) -> Outcome[T]:
        """Run until the end or a stop; a failure does not affect the others."""
        waiting = iter(self._ids)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(self._ids))):
                group.create_task(self._go_on(engine, waiting))
        self.outcome.left.extend(waiting)
        return self.outcome

    async def _go_on(self, engine: Engine, waiting: Iterator[str]) -> None:
        while not self._stopped and (task_id := next(waiting, None)) is not None:
            try:
                self.outcome.done.append(await self._act(engine, task_id))
            except EngineError as error:
                self.outcome.refused.append(Refusal(task_id, error))


class WorkBar(QWidget):
    """Progress bar below the list with a text and a stop button."""

    def __init__(self, said: str, work: Work[Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._said, self._work = said, work
        self._words = plain_label(parent=self)
        self._bar = QProgressBar(self)
        self._bar.setRange(0, len(work))
        self._bar.setTextVisible(False)
        self.stop = QPushButton(self.tr("Stop here"), self)
        self.stop.setToolTip(self.tr("What is done stays done; the rest is left as it is"))
        self.stop.clicked.connect(self._stop)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 8, 4)
        row.setSpacing(10)
        row.addWidget(self._words)
        row.addWidget(self._bar, 1)
        row.addWidget(self.stop)
        self.show_progress()
        self.setVisible(False)
        clock = QTimer(self, interval=LOOK_MS)
        clock.timeout.connect(self.show_progress)
        self._later = QTimer(self, singleShot=True, interval=QUIET_MS)
        self._later.timeout.connect(self.show)
        self._later.timeout.connect(clock.start)
        self._later.start()

    def end(self) -> None:
        """Hide and delete the bar."""
        self._later.stop()
        self.setVisible(False)
        self.deleteLater()

    def show_progress(self) -> None:
        tried = self._work.outcome.tried
        words = self._said.format(count(tried), count(len(self._work)))
        self._bar.setValue(tried)
        self._words.show_text(words)
        self._bar.setAccessibleName(words)

    def _stop(self) -> None:
        self.stop.setEnabled(False)
        self._work.stop()


class BulkWork(QObject):
    """Run bulk actions of one window, each with its own bar in `place`.

    Runs are independent; the engine rejects or ignores a duplicate action.
    """

    def __init__(self, errands: EngineCalls, place: QBoxLayout, parent: QObject) -> None:
        super().__init__(parent)
        self._errands, self._place = errands, place
        self._runs = 0

    def run(
        self,
        task_ids: Iterable[str],
        act: Act[T],
        then: Callable[[Outcome[T]], object],
        said: str,
    ) -> None:
        """Apply `act` to each task, a few at a time, and pass the result to `then` once.

        `said` is a message with {0} for the finished tasks and {1} for all.
        """
        work = Work(task_ids, act)
        bar = WorkBar(said, work)
        self._place.addWidget(bar)

        def end(found: Outcome[T]) -> None:
            bar.end()
            then(found)

        def fail(error: EngineError) -> None:
            self._errands.failed.emit(error)
            end(work.unbegun())

        self._runs += 1
        self._errands.ask(work.run, end, fail, name=f"bulk work {self._runs}")
