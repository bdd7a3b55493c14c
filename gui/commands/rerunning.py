"""Start ended tasks again: re-run, replay, retry or resume them.

One is re-run or resumed immediately, many after a dry run, incomplete ones by form. A retry repeats
only the failed units of one task, after a question. A resumed crawl goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QCheckBox, QWidget

from engine.model.errors import EngineError
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import ledger_label
from engine.model.records import Status, TaskId, TaskRecord, TaskView
from engine.model.status import is_orphan, moment
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.rerun import (
    STARTING,
    Asked,
    CannotRepeat,
    Chance,
    Remainder,
    Repeats,
    known,
    repeats,
)
from engine.service.resuming import (
    ResumeFate,
    ResumePlan,
    resume_fate,
    resume_plan,
    successors,
)
from engine.text.words import count, task_name
from gui.commands.bulk_work import BulkWork, Outcome, Reports
from gui.commands.task_requests import Requests
from gui.context.window_context import WindowContext
from gui.i18n.names import name_with_ledger
from gui.style.banners import Choice
from gui.style.questions import BUTTON, Question, TaskList

# Dry run of a re-run.

WIDTH = 620
_Group = TypeVar("_Group", Chance, ResumeFate)


def _named(
    words: Mapping[_Group, str], tasks: Callable[[_Group], Iterable[TaskView]]
) -> list[tuple[str, str]]:
    """Return the rows of a dry run: each task of each group, and what happens to it."""
    return [
        (name_with_ledger(view), word) for group, word in words.items() for view in tasks(group)
    ]


class RerunDialog(Question):
    """Dry run with numbers and names; the default starts nothing.

    `elsewhere` names the target ledger if it differs. A task in two ledgers starts once, unless
    `once` is unchecked.
    """

    def __init__(self, found: Repeats, parent: QWidget | None = None, elsewhere: str = "") -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self._found = found
        number = len(found.ids)
        for line in self._lines():
            self.add_text(line)
        if elsewhere and number:
            self.add_text(elsewhere)
        self.list = TaskList((self.tr("Task"), self.tr("What happens")), self._rows(), self)
        self.list.setColumnWidth(0, WIDTH - 280)  # Addresses differ at their ends
        self.body.addWidget(self.list)
        self.once = QCheckBox(self.tr("Start what is in two ledgers only once"), self)
        self.once.setChecked(True)
        self.once.setVisible(bool(found.of(Chance.COPY)))
        self.once.toggled.connect(self._show_number)
        self.body.addWidget(self.once)
        self._verb = self.add_button("rerun", "") if number else None
        leave = self.tr("Start nothing") if number else self.tr("Close")
        self.add_button("leave", leave, default=True)
        self._show_number()

    @property
    def ids(self) -> tuple[TaskId, ...]:
        """The tasks that would start."""
        return self._found.ids if self.once.isChecked() else self._found.with_copies

    def _show_number(self) -> None:
        number = len(self.ids)
        self.ask(self.tr("Re-run"), self._question(number))
        if self._verb is not None:
            verb = self.tr("Re-run 1 task") if number == 1 else self.tr("Re-run {0} tasks")
            self._verb.setText(verb.format(count(number)))
            self._verb.setMinimumSize(BUTTON.expandedTo(self._verb.sizeHint()))

    def _question(self, number: int) -> str:
        if number == 0:
            return self.tr("None of these tasks can be re-run as it was")
        if number == 1:
            return self.tr("Re-run 1 task?")
        return self.tr("Re-run {0} tasks?").format(count(number))

    def _lines(self) -> Iterator[str]:
        """Yield the number of tasks for each result, with reasons."""
        for number, words in (*self._starting(), *self._unknown(), *self._skipped()):
            if number:
                yield words.format(count(number))
        if windows := sum(map(_shows_window, self._found.of(*STARTING))):
            once = self.tr("1 opens a browser window.")
            often = self.tr("{0} open browser windows, as many at once as there are slots.")
            yield once if windows == 1 else often.format(count(windows))
        if self._found.of(Chance.ASKS):
            yield self.tr("Re-run these one at a time to fill in what is missing.")

    def _starting(self) -> Iterator[tuple[int, str]]:
        yield self._number(Chance.STARTS), self.tr("Will start, each as a new task: {0}")
        yield self._number(Chance.LED), self.tr("Will start, and wait for an agent: {0}")
        yield self._number(Chance.COPY), self.tr("The same tasks again, in another ledger: {0}")

    def _unknown(self) -> Iterator[tuple[int, str]]:
        words = {
            "request_hidden": self.tr("Need their secrets again: {0}"),
            "variables_missing": self.tr("Need values of their variables again: {0}"),
            "typed_text_missing": self.tr("Need their typed texts again: {0}"),
            "request_cut": self.tr("Too many arguments to be stored: {0}"),
            "request_unknown": self.tr(
                "Started by another program, so their full arguments are not stored: {0}"
            ),
        }
        yield from ((self._found.whys.get(why, 0), said) for why, said in words.items())

    def _skipped(self) -> Iterator[tuple[int, str]]:
        yield self._number(Chance.LIVE), self.tr("Skipped, because they have not ended: {0}")
        yield self._number(Chance.STRANGE), self.tr("Of a kind that cannot be started here: {0}")
        yield self._number(Chance.GOAL), self.tr("Task runs, which are no work of their own: {0}")
        yield self._number(Chance.LOST), self.tr("Skipped, because they cannot be read: {0}")

    def _number(self, chance: Chance) -> int:
        return len(self._found.of(chance))

    def _rows(self) -> list[tuple[str, str]]:
        words = {
            Chance.STARTS: self.tr("will start"),
            Chance.LED: self.tr("will start and wait for its agent"),
            Chance.COPY: self.tr("is the same task as one that starts"),
            Chance.ASKS: self.tr("is not stored in full"),
            Chance.LIVE: self.tr("has not ended"),
            Chance.STRANGE: self.tr("cannot be started here"),
            Chance.GOAL: self.tr("is a task run"),
            Chance.LOST: self.tr("cannot be read"),
        }
        return _named(words, self._found.of)


class Rerunning(QObject):
    """Dry run and start of re-runs for one window."""

    def __init__(
        self, ctx: WindowContext, requests: Requests, bulk: BulkWork, reports: Reports
    ) -> None:
        super().__init__(ctx.parent)
        self._requests = requests
        self._bulk = bulk
        self._reports = reports
        self._ctx, self._bridge = ctx, ctx.bridge
        acts = ctx.actions
        self._one = acts.add("rerun", self.tr("&Re-run"), ["Ctrl+R"], "rerun", self.tr("Re-run"))
        self._many = acts.add("rerun_many", self.tr("Re-run all in the &list…"))
        self._one.triggered.connect(lambda: self.ask(ctx.scope.views()))
        self._many.triggered.connect(lambda: self.ask(self._listed()))
        ctx.scope.changed.connect(self._show_ability)
        ctx.bridge.health.connect(lambda _: self._show_ability())
        ctx.model.shown_changed.connect(lambda *_: self._show_ability())
        self._show_ability()

    def ask(self, views: Sequence[TaskView]) -> None:
        """Examine the tasks; a single complete one starts immediately."""
        remembers = self._bridge.remembers

        async def look(_: Engine) -> Repeats:
            return await asyncio.to_thread(repeats, views, remembers)

        self._bridge.ask(look, self._decide, name="dry run")

    def start(self, ids: Sequence[TaskId]) -> None:
        """Start these tasks, a few at a time."""
        said = self.tr("Starting again: {0} of {1} tasks")
        repeat = self._bridge.repeat
        self._bulk.run(ids, lambda _, one: repeat(one), self._tell, said)

    def _decide(self, found: Repeats) -> None:
        views = [view for views in found.chances.values() for view in views]
        alone, asking = len(views) == 1, found.of(Chance.ASKS)
        if alone and can_be_replayed(views[0]) and (found.ids or asking):
            self._record_or_replay(views[0], lambda: self._rerun(found))
            return
        self._rerun(found)

    def _record_or_replay(self, view: TaskView, record: Callable[[], object]) -> None:
        """Ask what is meant by a re-run of a recording; the default does nothing."""
        question = Question(self._ctx.parent)
        headline = self.tr("Replay “{0}”, or record it again?").format(task_name(view))
        question.ask(self.tr("Re-run"), headline)
        question.add_text(
            self.tr("A replay does what was recorded, with the values that you give.")
        )
        question.add_text(
            self.tr("Recording again opens a browser and records from the beginning.")
        )
        question.add_button("replay", self.tr("Replay…"))
        question.add_button("record", self.tr("Record again"))
        question.add_button("leave", self.tr("Start nothing"), default=True)
        question.open_for(replay=self._ctx.actions["replay"].trigger, record=record)

    def _rerun(self, found: Repeats) -> None:
        alone = sum(map(len, found.chances.values())) == 1
        asking = found.of(Chance.ASKS)
        if alone and found.ids and not self._elsewhere(found):
            self.start(found.ids)
        elif alone and asking:
            self._complete_by_hand(asking[0])
        elif found.chances:
            self._question(found)

    def _question(self, found: Repeats) -> None:
        dialog = RerunDialog(found, self._ctx.parent, self._elsewhere(found))

        def rerun() -> None:
            # New tasks match the filter too, and would join a selection of all that match.
            self._ctx.table.keep_chosen(
                view.task_id for views in found.chances.values() for view in views
            )
            self.start(dialog.ids)

        dialog.open_for(rerun=rerun)

    def _elsewhere(self, found: Repeats) -> str:
        """Return a note on the target ledger if some tasks are in another one."""
        return self._ctx.ledgers.starts_here(any(map(ledger_label, found.ids)))

    def _complete_by_hand(self, view: TaskView) -> None:
        assert isinstance(view.entry, TaskRecord)
        note = self.tr("What was secret, or too long to be kept, has to be given again.")
        parent = None if view.ledger else view.task_id  # A parent must be in the same ledger
        self._requests.starting.open(known(view.entry), parent, note=note)

    def _tell(self, outcome: Outcome[TaskRecord]) -> None:
        started = len(outcome.done)
        if started == 1:
            self._bridge.started.emit(outcome.done[0])  # The window selects the started task
        if outcome.refused:
            number = len(outcome.refused)
            title = (
                self.tr("1 task could not be re-run")
                if number == 1
                else self.tr("{0} tasks could not be re-run").format(count(number))
            )
            self._reports.tell(title, outcome.refused, outcome)
        elif started > 1:
            words = self.tr("{0} tasks were re-run.").format(count(started))
            self._reports.say(words)

    def _listed(self) -> list[TaskView]:
        model = self._ctx.model
        found = map(model.view_of, model.ids)
        return [view for view in found if view is not None]

    def _show_ability(self) -> None:
        accepts = self._ctx.actions["new"].isEnabled()
        able = accepts and self._ctx.scope.counts.ended > 0
        why_not = self.tr("Only ended tasks can be run again.")
        number = len(self._ctx.scope)
        self._ctx.actions.allow_chosen("rerun", able, why_not, chosen=number)
        self._many.setEnabled(accepts and self._ctx.model.rowCount() > 0)


def _shows_window(view: TaskView) -> bool:
    entry = view.entry
    if not isinstance(entry, TaskRecord) or not traits_of(entry.kind).opens_window:
        return False
    return entry.args_summary.get("headless") is not True


def can_be_replayed(view: TaskView) -> bool:
    """Return whether the task has ended, and a command task can do again what it holds."""
    entry = view.entry
    known = isinstance(entry, TaskRecord) and entry.is_terminal
    return known and traits_of(getattr(entry, "kind", "")).replayable


class Replaying(QObject):
    """Open the start form with the command task that replays the selected recording."""

    def __init__(self, ctx: WindowContext, requests: Requests) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._bridge, self._requests = ctx, ctx.bridge, requests
        text, short = self.tr("Replay recordi&ng…"), self.tr("Replay…")
        self._action = ctx.actions.add("replay", text, ["Ctrl+Shift+R"], "sample", short)
        self._action.triggered.connect(self._replay_chosen)
        ctx.scope.changed.connect(self._allow)
        ctx.bridge.health.connect(lambda _: self._allow())
        self._allow()

    def _replay_chosen(self) -> None:
        view = self._chosen()
        if view is None:
            return
        name = task_name(view)

        async def read(engine: Engine) -> dict[str, Any]:
            return await engine.exports.replay(view.task_id)

        self._bridge.ask(
            read,
            lambda task: self._requests.starting.replay(task, name),
            self._requests.failed.emit,
            name="read a recording",
        )

    def _chosen(self) -> TaskView | None:
        views = self._ctx.scope.views() if len(self._ctx.scope) == 1 else []
        return next(filter(can_be_replayed, views), None)

    def _allow(self) -> None:
        able = self._ctx.actions["new"].isEnabled() and self._chosen() is not None
        why_not = self.tr("Select one recording that has ended.")
        self._ctx.actions.allow("replay", able, why_not)


class Retrying(QObject):
    """Action and question of a retry."""

    def __init__(self, ctx: WindowContext, requests: Requests) -> None:
        super().__init__(ctx.parent)
        self._requests = requests
        self._ctx, self._bridge = ctx, ctx.bridge
        self._action = ctx.actions.add("retry_failed", self.tr("Retr&y failed…"))
        self._action.triggered.connect(self._ask_chosen)
        ctx.services.wishes.retry.connect(self.ask)
        ctx.scope.changed.connect(self._allow)
        ctx.bridge.health.connect(lambda _: self._allow())
        self._allow()

    def ask(self, task_id: str, page: str = "") -> None:
        """Read the failed units of this task, or one `page` of them, and open the question."""
        self._bridge.ask(
            lambda _: self._bridge.remainder(task_id, page),
            lambda found: self._decide(found, page),
            partial(self._begin_by_hand, task_id),
            name="look at failed",
        )

    def _ask_chosen(self) -> None:
        views = self._ctx.scope.views()
        if len(views) == 1:
            self.ask(views[0].task_id)

    def _allow(self) -> None:
        views = self._ctx.scope.views() if len(self._ctx.scope) == 1 else []
        able = bool(views) and can_be_retried(views[0])
        self._action.setEnabled(able and self._ctx.actions["new"].isEnabled())

    def _decide(self, found: Remainder, page: str) -> None:
        if found.refusal is not None and found.request is not None:
            self._complete_by_hand(found.task_id, found.request)
            return
        dialog = Question(self._ctx.parent)
        dialog.ask(self.tr("Retry failed"), self._headline(found))
        elsewhere = self._ctx.ledgers.starts_here(bool(ledger_label(found.task_id)))
        for text in (page, *self._sentences(found), elsewhere):
            if text:
                dialog.add_text(text)
        if found.request:
            dialog.add_button("start", self.tr("Start"))
            dialog.add_button("keep", self.tr("Leave it"), default=True)
        else:
            dialog.add_button("keep", self.tr("Close"), default=True)
        dialog.open_for(start=lambda: self._start(found, page))

    def _begin_by_hand(self, task_id: str, error: EngineError) -> None:
        """Open the form of a task whose request is incomplete; show any other error."""
        view = self._ctx.model.view_of(task_id)
        entry = view.entry if view is not None else None
        if not isinstance(error, CannotRepeat) or not isinstance(entry, TaskRecord):
            self._bridge.failed.emit(error)
            return
        note = self.tr(
            "Only a part of its request is known, so that what failed cannot be tried again on "
            "its own. This starts all of it again: add what is missing."
        )
        parent = None if ledger_label(task_id) else task_id  # A parent must be in the same ledger
        self._requests.starting.open(known(entry), parent, note=note)

    def _complete_by_hand(self, task_id: str, request: Asked) -> None:
        note = self.tr(
            "These are the commands from the last page on that was opened before the failed one. "
            "Variables and typed texts are not kept: they have to be given again."
        )
        parent = None if ledger_label(task_id) else task_id  # A parent must be in the same ledger
        self._requests.starting.open(request, parent, note=note)

    def _headline(self, found: Remainder) -> str:
        number = found.taken
        if not found.request:
            return self.tr("There is nothing to retry")
        if traits_of(found.kind).steps:
            return self.tr("Run the failed command and those behind it again?")
        if number == 1:
            return self.tr("Try the failed page again?")
        return self.tr("Try {0} failed pages again?").format(count(number))

    def _sentences(self, found: Remainder) -> Sequence[str]:
        known = traits_of(found.kind)
        if not found.request:
            none = self.tr("Nothing of this task failed that could be tried again on its own.")
            kinds = self.tr("Only pages of a crawl and commands can be retried on their own.")
            return (none if known.crawls or known.steps else kinds,)
        if known.steps:
            last = self.tr("It begins with the last page that was opened before the failed one.")
            return (last, self.tr("It becomes a new task; this one stays as it is."))
        new = self.tr("It becomes a new task; this one stays as it is.")
        if found.failed > found.taken:
            text = self.tr("{0} pages failed; only the first {1} are retried at a time.")
            return (new, text.format(count(found.failed), count(found.taken)))
        return (new,)

    def _start(self, found: Remainder, page: str) -> None:
        async def start(_: Engine) -> list[EngineError]:
            try:
                await self._bridge.retry(found, page)
            except EngineError as error:
                return [error]
            return []

        self._bridge.ask(start, self._tell, name=f"retry {found.task_id}")

    def _tell(self, refused: list[EngineError]) -> None:
        if refused:
            self._requests.refused.emit(tuple(refused))


def can_be_retried(view: TaskView) -> bool:
    """Return whether the task has ended with units that can be retried."""
    entry, units = view.entry, view.units
    if not isinstance(entry, TaskRecord) or not entry.is_terminal:
        return False
    known = traits_of(entry.kind)
    failed = entry.status == Status.FAILED if units is None else units.failed > 0
    return (known.crawls or known.steps) if failed else known.crawls and _may_miss_pages(entry)


def _may_miss_pages(record: TaskRecord) -> bool:
    """Return whether pages that a contract names may be missing, though none failed."""
    engine = record.engine
    if engine is None or engine.contract_id is None:
        return False
    return record.status != Status.COMPLETED or engine.forced_at is not None


# Resume of stopped crawls, with an offer after a crash.

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
        return _named(words, self._plan.of)


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
            if record.cancel_requested_at is not None:  # Somebody wanted its end
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
