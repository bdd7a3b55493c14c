"""Bulk actions: bar of the selection, progress with a stop button, banner with the results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from engine.model.errors import EngineError
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskView
from engine.model.status import Standing
from engine.service.engine import Engine
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import EngineCalls
from gui.i18n import language
from gui.i18n.names import name_with_ledger
from gui.style.accessibility import announce
from gui.style.banners import Banner, Choice
from gui.style.icons import icon
from gui.style.questions import Question, TaskList
from gui.style.theme import plain_label, plain_tip
from gui.style.widgets import LinkButton

AT_ONCE = 4  # Concurrent tasks, each of which waits for a disk
QUIET_MS = 400  # Delay in ms before a progress bar appears
LOOK_MS = 100  # Update interval of the bar in ms
STEPS = 100  # of the bar, for each task

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


class Share(NamedTuple):
    """What an action tells while it runs: the parts of tasks that are `done`; and its `stop`."""

    done: Callable[[], float]
    stop: Callable[[], object]


_WHOLE = Share(lambda: 0.0, lambda: None)  # of an action that is quick, or cannot be stopped


class Work(Generic[T]):
    """A bulk action over many tasks; `stop` starts no further ones."""

    def __init__(self, task_ids: Iterable[str], act: Act[T], share: Share = _WHOLE) -> None:
        self._ids = tuple(dict.fromkeys(task_ids))
        self._act, self._share = act, share
        self._stopped = False
        self.outcome: Outcome[T] = Outcome()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def progress(self) -> float:
        """The number of tasks that are done, with the parts of those that run."""
        return self.outcome.tried + self._share.done()

    def stop(self) -> None:
        self._stopped = True
        self._share.stop()

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
        self._bar.setRange(0, len(work) * STEPS)
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
        words = self._said.format(count(self._work.outcome.tried), count(len(self._work)))
        self._bar.setValue(int(self._work.progress * STEPS))
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
        share: Share = _WHOLE,
    ) -> None:
        """Apply `act` to each task, a few at a time, and pass the result to `then` once.

        `said` is a message with {0} for the finished tasks and {1} for all.
        """
        work = Work(task_ids, act, share)
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


KEYS = ("cancel", "rerun", "resume_crawl", "acknowledge", "export_tasks")
FROM = 2  # Fewer tasks are covered by the toolbar
_STOPPED = (Standing.CANCELLED, Standing.FAILED, Standing.ORPHANED)


class BulkBar(QWidget):
    """`42 selected tasks · Select all 214 that match │ Cancel 30 │ Re-run 12 │ Export…`"""

    _whole = ""  # The full text before elision

    def __init__(self, ctx: WindowContext, reports: Reports) -> None:
        super().__init__(ctx.parent)
        self._reports = reports
        self._ctx = ctx
        self._scope, self._model = ctx.scope, ctx.model
        self.setAccessibleName(self.tr("What to do with the selected tasks"))
        self._said = plain_label(parent=self)
        self._said.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.all = LinkButton("", self)
        self.all.clicked.connect(ctx.table.selectAll)
        self.buttons: dict[str, QPushButton] = {}
        self._none = QToolButton(self)
        self._none.setAutoRaise(True)
        self._none.setIcon(icon("close"))
        self._none.setAccessibleName(self.tr("Select nothing"))
        self._none.setToolTip(self._none.accessibleName())
        self._none.clicked.connect(ctx.table.clearSelection)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(4, 0, 0, 0)
        self._row.setSpacing(6)
        self._row.addWidget(self._said, 1)
        self._row.addWidget(self.all)
        self._row.addWidget(self._none)
        self._scope.changed.connect(self._show)
        self._model.shown_changed.connect(lambda *_: self._show())
        self.setVisible(False)

    def _show(self) -> None:
        several = len(self._scope) >= FROM
        if several:
            self._make_buttons()
            self._name()
        if several == self.isHidden():
            self.setVisible(several)

    def _name(self) -> None:
        said = self._scope.describes()
        if said != self._whole:
            self._whole = said
            self._fit()
            # The list itself announces single selected rows.
            if self._scope.matching:
                announce(self, said)
        shown = self._model.rowCount()
        self.all.setVisible(not self._scope.matching)
        whole = self.tr("Select all {0} that match")
        text = whole if self._model.is_filtered else self.tr("Select all {0}")
        self.all.setText(text.format(count(shown)))
        for key, button in self.buttons.items():
            button.setText(self._text(key))
            action = self._ctx.actions[key]
            button.setEnabled(action.isEnabled())
            button.setVisible(key != "resume_crawl" or self._has_stopped())
            button.setToolTip("" if action.isEnabled() else action.toolTip())

    def _fit(self) -> None:
        """Elide the text to the room, and keep the full text as tool tip and accessible name."""
        metrics, room = self._said.fontMetrics(), self._said.width()
        shown = metrics.elidedText(self._whole, Qt.TextElideMode.ElideRight, room)
        self._said.show_text(shown)
        self._said.setAccessibleName(self._whole)
        self._said.setToolTip(plain_tip(self._whole) if shown != self._whole else "")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._row.activate()  # The label gets its new width only then
        self._fit()

    def tell_copied(self, rows: int) -> None:
        """Report a finished copy of many rows, which takes a while."""
        if rows >= FROM:
            self._reports.say(self.tr("{0} rows copied.").format(count(rows)))

    def _has_stopped(self) -> bool:
        """Return whether a task of the selection may be one to resume; its dry run tells."""
        states = self._scope.counts.states
        return any(states.get(state) for state in _STOPPED)

    def _text(self, key: str) -> str:
        counts = self._scope.counts
        if key == "resume_crawl":
            return self.tr("Resume…")
        if key == "cancel":
            return self.tr("Cancel {0}").format(count(counts.cancellable))
        if key == "rerun":
            # When none can start, the dry run explains why.
            number = counts.repeatable
            return self.tr("Re-run {0}").format(count(number)) if number else self.tr("Re-run…")
        return self._ctx.actions[key].iconText()

    def _make_buttons(self) -> None:
        """Create the buttons when the bar is first shown, after all parts added their actions."""
        if self.buttons:
            return
        for key in (key for key in KEYS if key in set(self._ctx.actions)):
            action = self._ctx.actions[key]
            button = self.buttons[key] = QPushButton(self)
            # A dialog gives the focus back: to the list, where Del and the arrows work.
            button.clicked.connect(self._ctx.table.setFocus)
            button.clicked.connect(action.trigger)
            action.changed.connect(lambda: self._name() if self.isVisible() else None)
            self._row.insertWidget(self._row.count() - 1, button)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._none.setIcon(icon("close"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return to the list on Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self._ctx.table.setFocus()
        else:
            super().keyPressEvent(event)
