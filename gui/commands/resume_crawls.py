"""Resume of stopped crawls: one immediately, several after a dry run; offer after a crash."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from engine.model.records import TaskId, TaskRecord, TaskView
from engine.model.status import is_orphan, moment
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.resuming import (
    ResumeFate,
    ResumePlan,
    resume_fate,
    resume_plan,
    successors,
)
from engine.text.words import count
from gui.commands.bulk_work import BulkWork, Outcome, Reports
from gui.context.window_context import WindowContext
from gui.i18n.names import name_with_ledger
from gui.style.banners import Choice
from gui.style.questions import Question, TaskList

WIDTH = 620
# Orphans may be reaped before the parts of the window exist.
START_MS = 10_000


class ResumeDialog(Question):
    """Dry run with numbers and names; the default starts nothing."""

    def __init__(self, plan: ResumePlan, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self._plan = plan
        number = len(plan.ids)
        self.ask(self.tr("Resume"), self._question(number))
        for line in self._lines():
            self.add_text(line)
        self.list = TaskList((self.tr("Task"), self.tr("What happens")), self._rows(), self)
        self.list.setColumnWidth(0, WIDTH - 280)  # Addresses differ at their ends
        self.body.addWidget(self.list)
        if number:
            verb = self.tr("Resume 1 task") if number == 1 else self.tr("Resume {0} tasks")
            self.add_button("resume", verb.format(count(number)))
        leave = self.tr("Start nothing") if number else self.tr("Close")
        self.add_button("leave", leave, default=True)

    def _question(self, number: int) -> str:
        if number == 0:
            return self.tr("None of these tasks can be resumed")
        if number == 1:
            return self.tr("Resume 1 task?")
        return self.tr("Resume {0} tasks?").format(count(number))

    def _lines(self) -> Iterator[str]:
        words = {
            ResumeFate.RESUMES: self.tr(
                "Will go on, each as a new task that keeps the finished pages: {0}"
            ),
            ResumeFate.WHOLE: self.tr("Skipped, because they ended by themselves: {0}"),
            ResumeFate.RESUMED: self.tr("Skipped, because they were resumed before: {0}"),
            ResumeFate.LIVE: self.tr("Skipped, because they have not ended: {0}"),
            ResumeFate.ASKS: self.tr(
                "Skipped, because their request is not stored whole; re-run them: {0}"
            ),
            ResumeFate.ELSEWHERE: self.tr("In another ledger, where they can be resumed: {0}"),
            ResumeFate.OTHER: self.tr("Skipped, because they are no crawls: {0}"),
            ResumeFate.LOST: self.tr("Skipped, because they cannot be read: {0}"),
        }
        for fate, said in words.items():
            if number := len(self._plan.of(fate)):
                yield said.format(count(number))

    def _rows(self) -> list[tuple[str, str]]:
        words = {
            ResumeFate.RESUMES: self.tr("will go on"),
            ResumeFate.WHOLE: self.tr("ended by itself"),
            ResumeFate.RESUMED: self.tr("was resumed before"),
            ResumeFate.LIVE: self.tr("has not ended"),
            ResumeFate.ASKS: self.tr("is not stored in full"),
            ResumeFate.ELSEWHERE: self.tr("is in another ledger"),
            ResumeFate.OTHER: self.tr("is no crawl"),
            ResumeFate.LOST: self.tr("cannot be read"),
        }
        return [
            (name_with_ledger(view), word)
            for fate, word in words.items()
            for view in self._plan.of(fate)
        ]


class Resuming(QObject):
    """Dry run and start of resumed crawls for one window."""

    def __init__(self, ctx: WindowContext, bulk: BulkWork, reports: Reports) -> None:
        super().__init__(ctx.parent)
        self._bulk, self._reports = bulk, reports
        self._ctx, self._bridge = ctx, ctx.bridge
        self._resumed: dict[str, TaskId] = {}
        self._began_ms = time.time() * 1000 - START_MS
        self._interrupted: set[TaskId] = set()  # crawls of a program that ended, not yet offered
        self._offered: set[TaskId] = set()
        text, short = self.tr("Res&ume crawl"), self.tr("Resume")
        self._action = ctx.actions.add("resume_crawl", text, ["Ctrl+Shift+G"], "sample", short)
        self._action.triggered.connect(lambda: self.ask(ctx.scope.views()))
        ctx.bridge.news.connect(self._hear)
        ctx.scope.changed.connect(self._allow)
        ctx.bridge.health.connect(lambda _: self._allow())
        self._allow()

    def ask(self, views: Sequence[TaskView]) -> None:
        """Examine the tasks; a single one is resumed immediately."""
        resumed, remembers = dict(self._resumed), self._bridge.remembers

        async def look(_: Engine) -> ResumePlan:
            return await asyncio.to_thread(resume_plan, views, resumed, remembers=remembers)

        self._bridge.ask(look, self._decide, name="dry run")

    def _decide(self, plan: ResumePlan) -> None:
        alone = sum(map(len, plan.fates.values())) == 1
        if alone and plan.ids:
            self._start(plan.ids)
        elif plan.fates:
            dialog = ResumeDialog(plan, self._ctx.parent)
            dialog.open_for(resume=lambda: self._start_chosen(plan))

    def _start_chosen(self, plan: ResumePlan) -> None:
        # New tasks match the filter too, and would join a selection of all that match.
        self._ctx.table.keep_chosen(view.task_id for views in plan.fates.values() for view in views)
        self._start(plan.ids)

    def _start(self, ids: Sequence[TaskId]) -> None:
        resume = self._bridge.resume
        said = self.tr("Resuming: {0} of {1} tasks")
        self._bulk.run(ids, lambda _, one: resume(one), self._tell, said)

    def _tell(self, outcome: Outcome[TaskRecord]) -> None:
        started = len(outcome.done)
        if started == 1:
            self._bridge.started.emit(outcome.done[0])  # The window selects the started task
        if outcome.refused:
            number = len(outcome.refused)
            title = (
                self.tr("1 task could not be resumed")
                if number == 1
                else self.tr("{0} tasks could not be resumed").format(count(number))
            )
            self._reports.tell(title, outcome.refused, outcome)
        elif started > 1:
            self._reports.say(self.tr("{0} tasks were resumed.").format(count(started)))

    def _hear(self, batch: Batch) -> None:
        found = successors(batch.views)
        if batch.gone:
            gone = set(batch.gone)
            self._resumed = {one: by for one, by in self._resumed.items() if by not in gone}
        self._resumed.update(found)
        self._interrupted.update(self._newly_interrupted(batch))
        if batch.complete and self._interrupted:
            self._offer()
        if found or batch.gone or batch.tells_of(frozenset(self._ctx.scope.ids()[:1])):
            self._allow()

    def _newly_interrupted(self, batch: Batch) -> Iterator[TaskId]:
        """Yield crawls whose program ended before they did, found since the window opened."""
        for view in batch.views:
            record = view.entry
            if type(record) is not TaskRecord or not is_orphan(record):
                continue
            if view.task_id in self._offered:
                continue
            if (moment(record.ended_at) or 0) < self._began_ms:
                continue
            if self._fate(view) is ResumeFate.RESUMES:
                yield view.task_id

    def _offer(self) -> None:
        """Offer to resume them in a banner, once for each; where nothing can start, later."""
        if not self._ctx.actions["new"].isEnabled():
            return
        self._offered |= self._interrupted
        views = self._views_of(self._interrupted)
        self._interrupted.clear()
        if not views:
            return
        title = (
            self.tr("1 crawl was interrupted: the program that ran it ended")
            if len(views) == 1
            else self.tr("{0} crawls were interrupted: the program that ran them ended").format(
                count(len(views))
            )
        )
        kept = self.tr("The finished pages are kept. A resumed crawl goes on from there.")
        ids = [view.task_id for view in views]
        text = self.tr("Resume") if len(views) == 1 else self.tr("Resume…")
        choice = Choice(text, lambda: self._resume_offered(ids))
        self._ctx.news_bar.tell(title, kept, (choice,))

    def _resume_offered(self, ids: Sequence[TaskId]) -> None:
        self._ctx.news_bar.setVisible(False)
        if views := self._views_of(ids):
            self.ask(views)

    def _views_of(self, ids: Iterable[TaskId]) -> list[TaskView]:
        found = map(self._ctx.model.view_of, ids)
        return [view for view in found if view is not None]

    def _allow(self) -> None:
        accepts, number = self._ctx.actions["new"].isEnabled(), len(self._ctx.scope)
        why_not = self.tr("Only stopped crawls can be resumed.")
        able = self._ctx.scope.counts.ended > 0
        if number == 1:
            views = self._ctx.scope.views()
            fate = self._fate(views[0]) if views else ResumeFate.LOST
            able = fate is ResumeFate.RESUMES
            why_not = self._why_not(fate)
        self._ctx.actions.allow_chosen("resume_crawl", accepts and able, why_not, chosen=number)

    def _fate(self, view: TaskView) -> ResumeFate:
        return resume_fate(view, self._resumed, remembers=self._bridge.remembers)

    def _why_not(self, fate: ResumeFate) -> str:
        words = {
            ResumeFate.WHOLE: self.tr("It ended by itself: there is nothing to resume."),
            ResumeFate.RESUMED: self.tr("It was resumed before; resume its successor."),
            ResumeFate.LIVE: self.tr("It has not ended."),
            ResumeFate.ASKS: self.tr("Its request is not stored whole; re-run it instead."),
            ResumeFate.ELSEWHERE: self.tr("It is in another ledger; open that one to resume it."),
        }
        return words.get(fate, self.tr("Only stopped crawls can be resumed."))
