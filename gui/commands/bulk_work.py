"""One thing done to many tasks: how far it is, a way to stop it, and what came of it."""

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
from gui.engine_link.engine_calls import Errands
from gui.style.theme import plain_label

AT_ONCE = 4  # under way together: each waits for a disk
QUIET_MS = 400  # what takes no longer needs no bar
LOOK_MS = 100  # how often the bar moves

T = TypeVar("T")
Act = Callable[[Engine, str], Awaitable[T]]


class Refusal(NamedTuple):
    """A task that could not be helped, and why."""

    task_id: str
    error: EngineError


@dataclass(slots=True)
class Outcome(Generic[T]):
    """What came of it: answers, refusals, and the tasks that nobody got to any more."""

    done: list[T] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return len(self.done) + len(self.refused)


class Work(Generic[T]):
    """One run over many tasks; `stop` lets what is under way finish and begins nothing more."""

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
        """What came of it where it could not even begin: all are left as they are."""
        return Outcome(left=list(self._ids))

    async def run(self, engine: Engine) -> Outcome[T]:
        """To the end, or to where it was stopped; one that refuses does not keep the others."""
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
    """One line below the list: what is being done, how far it is, and a button to stop it."""

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
        """Nothing is under way any more."""
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
    """Runs such work for one window, each with a bar of its own in `place`.

    No two runs know of each other: what is done twice, the engine refuses or leaves alone.
    """

    def __init__(self, errands: Errands, place: QBoxLayout, parent: QObject) -> None:
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
        """Do `act` to each task, a few at a time; `then` hears of all of it, once.

        `said` has {0} for how many are through and {1} for how many there are.
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
