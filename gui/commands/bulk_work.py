"""Bulk actions with a progress bar and a stop button, and the banner with their results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QProgressBar, QPushButton, QWidget

from engine.model.errors import EngineError
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskView
from engine.service.engine import Engine
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.engine_link.engine_calls import EngineCalls
from gui.i18n import language
from gui.i18n.ledger_names import name_with_ledger
from gui.style.banners import Banner, Choice
from gui.style.question import Question, TaskList
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


# List of tasks that failed, with reasons and ids.

WIDTH = 680


class Refusals(Question):
    """Dialog with one line for each failure, for reading and copying."""

    def __init__(
        self,
        headline: str,
        refused: Sequence[Refusal],
        view_of: Callable[[str], TaskView | None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self.ask(headline, headline)
        rows = [_row(one, view_of(one.task_id)) for one in refused]
        titles = (self.tr("Task"), self.tr("Why not"), self.tr("Id"))
        self.list = TaskList(titles, rows, self)
        self.list.setColumnWidth(0, 170)
        self.list.setColumnWidth(1, 320)
        self.body.addWidget(self.list)
        copy = self.add_button("copy", self.tr("Copy all"))
        copy.clicked.disconnect()  # Copying leaves the dialog open
        copy.clicked.connect(self.list.copy_all)
        self.add_button("close", self.tr("Close"), default=True)


def _row(one: Refusal, view: TaskView | None) -> tuple[str, str, str]:
    name = name_with_ledger(view) if view is not None else plain_id(one.task_id)
    return name, language.told(one.error), plain_id(one.task_id)


NEWS_MS = 8000
MOST_LISTED = 3


class Reports(QObject):
    """Show results of bulk actions: successes expire, failures stay until closed.

    While `bar` shows a failure, successes appear in `aside` below it.
    """

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self.bar, self.aside = Banner(ctx.parent), Banner(ctx.parent)
        self._refused = False
        self.bar.closed.connect(self._close)
        self._over = QTimer(self, singleShot=True, interval=NEWS_MS)
        self._over.timeout.connect(self._end_news)

    def say(self, words: str) -> None:
        """Show a success message that expires."""
        bar = self.aside if self._refused else self.bar
        bar.tell(words, "", tone_name="good")
        self._over.start()

    def tell(
        self, title: str, refused: Sequence[Refusal], outcome: Outcome[Any] | None = None
    ) -> None:
        """Show failures: `title` has their number, then the tally of `outcome` and common reasons.

        A button opens the list of all failures.
        """
        if not self._refused:
            self._over.stop()  # Stop the expiry of a success message
        self._refused = True
        lines = self._reasons(refused)
        if outcome is not None and (outcome.done or outcome.left):
            lines.insert(0, self._tally(len(outcome.done), len(refused), len(outcome.left)))
        show = Choice(self.tr("Show which…"), lambda: self._show(title, refused))
        self.bar.tell(title, "\n".join(lines), (show,), "bad")

    def _tally(self, done: int, refused: int, left: int) -> str:
        if not left:
            return self.tr("{0} done, {1} refused:").format(count(done), count(refused))
        text = self.tr("{0} done, {1} refused, {2} not tried:")
        return text.format(count(done), count(refused), count(left))

    def _reasons(self, refused: Sequence[Refusal]) -> list[str]:
        """Return reasons with their number of tasks, the most common first."""
        alike: dict[str, list[EngineError]] = {}
        for one in refused:
            alike.setdefault(one.error.code, []).append(one.error)
        groups = sorted(alike.values(), key=len, reverse=True)
        if len(refused) == 1:
            return [_reason(groups[0])]
        lines = [self._counted(len(group), _reason(group)) for group in groups[:MOST_LISTED]]
        if more := len(groups) - len(lines):
            lines.append(
                self.tr("…and 1 more reason.")
                if more == 1
                else self.tr("…and {0} more reasons.").format(count(more))
            )
        return lines

    def _counted(self, number: int, reason: str) -> str:
        if number == 1:
            return self.tr("1 task: {0}").format(reason)
        return self.tr("{0} tasks: {1}").format(count(number), reason)

    def _end_news(self) -> None:
        self.aside.hide()
        if not self._refused:
            self.bar.hide()

    def _close(self) -> None:
        self._refused = False

    def _show(self, title: str, refused: Sequence[Refusal]) -> None:
        dialog = Refusals(title, refused, self._ctx.model.view_of, self._ctx.parent)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()


def _reason(alike: Sequence[EngineError]) -> str:
    """Return the common sentence of failures with one code, otherwise their title."""
    sentences = {language.sentence(one) for one in alike}
    return sentences.pop() if len(sentences) == 1 else language.title(alike[0])
