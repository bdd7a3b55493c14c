"""User requests to the engine: start, cancel, stop, undo, with their questions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from engine.model.errors import EngineError
from engine.model.kind_traits import link_follower, traits_of
from engine.model.ledger_ids import ledger_label
from engine.model.records import Status, TaskId, TaskRecord, TaskView
from engine.model.status import Standing, standing
from engine.service.commands import has_worker
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.stop_plan import Fate, plan
from engine.text.words import count, status_word, task_name, unit_word
from gui.commands.bulk_work import BulkWork, Outcome, Reports
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Cancelled
from gui.i18n.names import name_with_ledger
from gui.start.starting import Starting
from gui.style.banners import Banner, Choice
from gui.style.questions import Question, TaskList
from gui.style.theme import plain_label
from gui.tasks.task_table import TaskTable

# Plan and question of a cancellation.

MAX_REASON = 500
LIST_WIDTH = 560


@dataclass(frozen=True, slots=True)
class Plan:
    """Tasks grouped by the effect of a cancel request."""

    pending: tuple[TaskView, ...] = ()
    running: tuple[TaskView, ...] = ()
    foreign: tuple[TaskView, ...] = ()
    at_once: tuple[TaskView, ...] = ()
    asked: int = 0
    ended: int = 0
    orphaned: int = 0
    unreadable: int = 0
    unknown: int = 0

    @property
    def views(self) -> tuple[TaskView, ...]:
        return (*self.pending, *self.running, *self.foreign, *self.at_once)

    @property
    def ids(self) -> tuple[TaskId, ...]:
        """The tasks that receive the request."""
        return tuple(view.task_id for view in self.views)

    @property
    def needs_a_question(self) -> bool:
        """True unless one queued task is cancelled, which can be undone."""
        return bool(self.running or self.foreign or self.at_once) or len(self.pending) > 1


def plan_cancel(views: Iterable[TaskView]) -> Plan:
    """Group `views`; `orphaned` and `unreadable` tasks cannot be cancelled."""
    found = plan(views)
    lost = [standing(view) for view in found.of(Fate.LOST)]
    return Plan(
        pending=found.of(Fate.PENDING),
        running=found.of(Fate.RUNNING),
        foreign=found.of(Fate.FOREIGN),
        at_once=found.of(Fate.AT_ONCE),
        asked=len(found.of(Fate.ASKED)),
        ended=len(found.of(Fate.ENDED)),
        orphaned=lost.count(Standing.ORPHANED),
        unreadable=lost.count(Standing.UNREADABLE),
        unknown=len(found.of(Fate.UNKNOWN)),
    )


class CancelDialog(Question):
    """Question before running tasks are cancelled; the default keeps them running.

    `for_good` counts queued tasks that cannot be restored, because their request is incomplete.
    """

    def __init__(
        self, plan: Plan, parent: QWidget | None = None, *, for_good: int = 0, whom: str = ""
    ) -> None:
        super().__init__(parent)
        self._plan, self._for_good = plan, for_good
        self.ask(self.tr("Cancel"), self._question())
        if whom:
            self.add_text(whom, tone="muted")
        for line in self._lines():
            self.add_text(line)
        if plan.asked + plan.ended + plan.orphaned + plan.unreadable + plan.unknown:
            self.add_text(self._skipped(), tone="muted")
        if len(plan.ids) > 1:
            self._add_list()
        self._reason = QLineEdit(self)
        self._reason.setMaxLength(MAX_REASON)
        self._reason.setPlaceholderText(self.tr("optional, kept with the task"))
        name = plain_label(self.tr("Reason"))
        name.setBuddy(self._reason)
        self.body.addSpacing(4)
        self.body.addWidget(name)
        self.body.addWidget(self._reason)
        self.add_button("cancel", self._verb(), destroys=True)
        waiting = all(getattr(one.entry, "status", "") == Status.PENDING for one in plan.views)
        keep = self.tr("Don’t cancel") if waiting else self.tr("Keep running")
        self.add_button("keep", keep, default=True)

    def _add_list(self) -> None:
        """List the tasks, so that the number can be verified."""
        self.setMinimumWidth(LIST_WIDTH)
        rows = [(name_with_ledger(view), status_word(view)) for view in self._plan.views]
        self.list = TaskList((self.tr("Task"), self.tr("Status")), rows, self)
        self.list.setColumnWidth(0, LIST_WIDTH - 170)
        self.body.addWidget(self.list)

    @property
    def reason(self) -> str | None:
        return self._reason.text().strip() or None

    def _question(self) -> str:
        ids = self._plan.ids
        if len(ids) == 1:
            return self.tr("Cancel “{0}”?").format(name_with_ledger(self._plan.views[0]))
        return self.tr("Cancel {0} tasks?").format(count(len(ids)))

    def _verb(self) -> str:
        number = len(self._plan.ids)
        if number == 1:
            return self.tr("Cancel task")
        return self.tr("Cancel {0} tasks").format(count(number))

    def _lines(self) -> list[str]:
        plan = self._plan
        if len(plan.running) == 1:
            running = self.tr("1 running: it stops within 2 seconds; its finished {1} are kept.")
        else:
            running = self.tr("{0} running: they stop within 2 seconds; finished {1} are kept.")
        pending = self.tr("{0} waiting: removed from the queue.")
        foreign = self.tr(
            "{0} owned by another process: the request is written, that process must act."
        )
        at_once = self.tr("{0} of agents and other programs: cancelled at once.")
        pairs = (
            (running, plan.running),
            (pending, plan.pending),
            (foreign, plan.foreign),
            (at_once, plan.at_once),
        )
        found = [said.format(count(len(views)), _units(views)) for said, views in pairs if views]
        return [*found, *self._lost()]

    def _lost(self) -> list[str]:
        if not self._for_good:
            return []
        if self._for_good == len(self._plan.ids) == 1:
            return [self.tr("This cannot be undone: what it was asked is not kept whole.")]
        said = self.tr(
            "{0} of them cannot be brought back: what they were asked is not kept whole."
        )
        return [said.format(count(self._for_good))]

    def _skipped(self) -> str:
        plan, parts = self._plan, []
        if plan.ended:
            parts.append(self.tr("{0} already finished").format(count(plan.ended)))
        if plan.asked:
            parts.append(self.tr("{0} already asked to stop").format(count(plan.asked)))
        if plan.orphaned:
            parts.append(self.tr("{0} without a living owner").format(count(plan.orphaned)))
        if plan.unreadable:
            parts.append(self.tr("{0} that cannot be read").format(count(plan.unreadable)))
        if plan.unknown:
            parts.append(
                self.tr("{0} in a state that is not known here").format(count(plan.unknown))
            )
        return self.tr("Skipped: {0}.").format(", ".join(parts))


def _units(views: Iterable[TaskView]) -> str:
    """Return the unit noun of these tasks, or "steps" for several kinds."""
    kinds = {getattr(view.entry, "kind", "") for view in views}
    return unit_word(kinds.pop() if len(kinds) == 1 else "", 2)


def _is_over(view: TaskView) -> bool:
    return isinstance(view.entry, TaskRecord) and view.entry.is_terminal


UNDO_MS = 8000
MOST_AT_ONCE = 300  # Tasks evaluated synchronously; more are evaluated on a thread


class Requests(QObject):
    """Owner of the request dialogs and the undo banner of one window."""

    started = Signal(str)
    failed = Signal(EngineError)
    refused = Signal(tuple)
    undo_offered = Signal(str)  # Text for the undo menu, empty after the undo period

    def __init__(
        self, ctx: WindowContext, undo_bar: Banner, bulk: BulkWork, reports: Reports
    ) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._bridge, self._undo_bar = ctx, ctx.bridge, undo_bar
        self._bulk, self._reports = bulk, reports
        self.starting = Starting(ctx)
        self.starting.failed.connect(self.failed)
        self._undoable: tuple[TaskRecord, ...] = ()
        self._undo_timer = QTimer(self, singleShot=True, interval=UNDO_MS)
        self._undo_timer.timeout.connect(self._forget_undo)
        self.undo_offered.connect(self._offer_undo)
        self._restoring: set[str] = set()  # Cancelled tasks that an undo starts again
        self._bridge.started.connect(lambda record: self.started.emit(record.task_id))
        self._bridge.started.connect(self._tell_restored)
        self._bridge.failed.connect(self.failed)
        self._bridge.cancelled.connect(self._show_cancelled)
        self._ending: set[str] = set()  # Tasks in the list that were asked to stop
        self._bridge.news.connect(self._tell_hidden)

    def new_task(self, args: Mapping[str, Any] | None = None, parent: str | None = None) -> None:
        """Open the start dialog with `args`; `parent` is the task to repeat."""
        self.starting.new_task(args, parent)

    def paste(self) -> None:
        """Open the start dialog with an address from the clipboard, if any."""
        self.starting.paste()

    def cancel(self, views: Sequence[TaskView], whom: str = "") -> None:
        """Cancel these tasks: one queued task immediately, all else after a question.

        `whom` describes the tasks when they were not selected individually.
        """
        if len(views) <= MOST_AT_ONCE:
            self._ask(*self._judged(views), whom)
            return

        async def judge(_: Engine) -> tuple[Plan, int]:
            return await asyncio.to_thread(self._judged, views)

        self._bridge.ask(judge, lambda found: self._ask(*found, whom), name="plan a cancel")

    def _judged(self, views: Sequence[TaskView]) -> tuple[Plan, int]:
        """Return the plan and the number of queued tasks that cannot be restored."""
        plan = plan_cancel([view for view in views if self._ctx.scope.may_change(view)])
        alone = len(plan.pending) == 1
        return plan, sum(not self._comes_back(view, alone) for view in plan.pending)

    def _ask(self, plan: Plan, for_good: int, whom: str) -> None:
        if not plan.ids:
            return
        if not plan.needs_a_question and not for_good:
            self._send_cancel(plan.ids, plan.pending, None)
            return
        dialog = CancelDialog(plan, self._ctx.parent, for_good=for_good, whom=whom)
        dialog.open_for(cancel=lambda: self._send_cancel(plan.ids, plan.pending, dialog.reason))

    def undo(self) -> None:
        """Start cancelled queued tasks again, each as a new task."""
        records = self._undoable
        self._undo_timer.stop()
        self._forget_undo()
        for record in records:
            if self._bridge.start_again(record):
                self._restoring.add(record.task_id)
            else:
                # The task was created by another program.
                self.new_task(record.args_summary, record.task_id)

    def _tell_restored(self, record: TaskRecord) -> None:
        """Explain the second row of a task that was cancelled and started again."""
        cancelled = record.engine.parent_task_id if record.engine is not None else None
        if cancelled not in self._restoring:
            return
        self._restoring.remove(cancelled)
        if not self._restoring:
            words = self.tr("Started again as a new task. The cancelled one stays in the list.")
            self._ctx.news_bar.tell(words, "", (), "accent")
            self._ctx.news_bar.leave_after(UNDO_MS)

    def _comes_back(self, view: TaskView, alone: bool) -> bool:
        """Return whether an undo can restore the task, or at least the address of a crawl."""
        if view.ledger:
            return False  # A restored task would start in the window's own ledger
        record = view.entry
        known = isinstance(record, TaskRecord) and self._bridge.can_start_again(record)
        return known or (alone and getattr(record, "kind", "") == link_follower())

    def _send_cancel(
        self, ids: Sequence[str], pending: Sequence[TaskView], reason: str | None
    ) -> None:
        """Cancel queued tasks first, because each stopped task would let another one start."""
        waiting = frozenset(view.task_id for view in pending)
        self._ctx.table.move_on_after(ids)
        self._ending |= {one for one in ids if one not in waiting and self._is_shown(one)}

        async def act(engine: Engine, one: str) -> TaskRecord:
            return await engine.commands.cancel(one, reason)

        def then(outcome: Outcome[TaskRecord]) -> None:
            self._bridge.cancelled.emit(Cancelled(tuple(outcome.done), (), waiting))
            if outcome.refused:
                title = self._not_cancelled(len(outcome.refused))
                self._reports.tell(title, outcome.refused, outcome)
            self._bridge.show_health()

        said = self.tr("Asking to stop: {0} of {1} tasks")
        self._bulk.run(ids, act, then, said)

    def _is_shown(self, task_id: str) -> bool:
        return self._ctx.model.row_of(task_id) >= 0

    def _tell_hidden(self, batch: Batch) -> None:
        """Report cancelled tasks that the filter hides now, so that they do not just vanish."""
        if not self._ending:
            return
        ended = [view for view in batch.views if view.task_id in self._ending and _is_over(view)]
        self._ending -= {view.task_id for view in ended}
        hidden = [
            view
            for view in ended
            if getattr(view.entry, "status", "") == Status.CANCELLED
            and not self._is_shown(view.task_id)
        ]
        if not hidden:
            return
        if len(hidden) == 1:
            kept = hidden[0].units.done if hidden[0].units else 0
            unit = unit_word(getattr(hidden[0].entry, "kind", ""), kept)
            words = self.tr("Cancelled; {0} {1} kept. The filter hides it.")
            words = words.format(count(kept), unit)
        else:
            words = self.tr("{0} tasks were cancelled. The filter hides them.")
            words = words.format(count(len(hidden)))
        ids = [view.task_id for view in hidden]
        show = Choice(self.tr("Show"), lambda: self._show_hidden(ids))
        self._ctx.news_bar.tell(words, "", (show,), "accent")

    def _show_hidden(self, ids: Sequence[str]) -> None:
        self._ctx.news_bar.setVisible(False)
        self._ctx.clear_filter()
        self._ctx.table.select_ids(ids)

    def _not_cancelled(self, number: int) -> str:
        if number == 1:
            return self.tr("1 task could not be cancelled")
        return self.tr("{0} tasks could not be cancelled").format(count(number))

    def _show_cancelled(self, outcome: Cancelled) -> None:
        if outcome.refused:
            self.refused.emit(outcome.refused)
        news = tuple(
            record
            for record in outcome.records
            if record.status == Status.CANCELLED
            and record.task_id in outcome.waiting
            and record.started_at is None
            and not ledger_label(record.task_id)
        )
        if self._offer(news):
            self._tell_undo()

    def _offer(self, news: Sequence[TaskRecord]) -> bool:
        """Add tasks that can be restored, or one crawl of another process."""
        own = tuple(record for record in news if self._bridge.can_start_again(record))
        if own:
            earlier = self._undoable
            kept = (one for one in earlier if self._bridge.can_start_again(one))
            self._undoable = (*kept, *own)
        elif len(news) == 1 and news[0].kind == link_follower() and not self._undoable:
            self._undoable = tuple(news)
        else:
            return False
        return True

    def _tell_undo(self) -> None:
        number = len(self._undoable)
        words = (
            self.tr("1 waiting task was cancelled.")
            if number == 1
            else self.tr("{0} waiting tasks were cancelled.").format(count(number))
        )
        self._undo_bar.tell(words, "", (Choice(self.tr("Undo"), self.undo),), "accent")
        self.undo_offered.emit(
            self.tr("&Undo cancelling 1 task")
            if number == 1
            else self.tr("&Undo cancelling {0} tasks").format(count(number))
        )
        self._undo_timer.start()
        self._undo_bar.count_down(self._undo_timer)

    def _offer_undo(self, words: str) -> None:
        self._ctx.services.wishes.undo.emit("cancel", words, self.undo)

    def _forget_undo(self) -> None:
        self._undoable = ()
        self._undo_bar.setVisible(False)
        self.undo_offered.emit("")


PATIENCE_MS = 10_000  # As in the engine: a healthy task stops within 2 s
MOST_LOOKED_AT = 500  # Tasks examined to enable an action; with more it is enabled without a check


def can_be_stopped(view: TaskView | None) -> bool:
    """Return whether the view is a running recording without a stop request."""
    entry = view.entry if view is not None else None
    if not isinstance(entry, TaskRecord) or not traits_of(entry.kind).stoppable:
        return False
    asked = entry.cancel_requested_at or (entry.engine and entry.engine.stop_requested_at)
    return entry.status == Status.RUNNING and not asked


def _waits_ms(view: TaskView | None) -> int | None:
    """Return the ms until a cancelled task of another process may be stopped by force.

    None for all other tasks, and always None in a further ledger, which has its own window.
    """
    entry = view.entry if view is not None else None
    if view is None or not isinstance(entry, TaskRecord):
        return None
    if view.ledger or view.ours or view.orphaned:
        return None
    asked = entry.cancel_requested_at
    ours = entry.engine is not None and entry.engine.runner is not None
    if asked is None or not ours or entry.status != Status.RUNNING:
        return None
    return max(0, int(asked + PATIENCE_MS - time.time() * 1000))


def _may_be_forced(view: TaskView | None) -> bool:
    """Return whether a worker runs the task and had its time to stop.

    A window or a server, and what runs on another machine, is never ended from here.
    """
    entry = view.entry if view is not None else None
    return isinstance(entry, TaskRecord) and _waits_ms(view) == 0 and has_worker(entry)


class CancelListed(QObject):
    """Actions to cancel all listed tasks, stop recordings and force a stop.

    Questions and Undo belong to `Requests`.
    """

    def __init__(
        self, ctx: WindowContext, requests: Requests, bulk: BulkWork, reports: Reports
    ) -> None:
        super().__init__(ctx.parent)
        self._requests = requests
        self._bulk = bulk
        self._reports = reports
        self._ctx = ctx
        acts = ctx.actions
        self._all = acts.add("cancel_matching", self.tr("Cancel all &in the list…"))
        self._stop = acts.add("stop", self.tr("S&top recording"), ["Ctrl+."], "stop_recording")
        short = self.tr("Force stop…")
        self._force = acts.add("force_stop", self.tr("Force st&op…"), (), "stop", short)
        self._force.triggered.connect(self.ask_to_force)
        self._recordings: set[TaskId] = set()  # those that run in this window
        self._due = QTimer(self, singleShot=True)
        self._due.timeout.connect(self._show_ability)
        ctx.bridge.news.connect(self._hear)
        self._all.triggered.connect(self.cancel_listed)
        self._stop.triggered.connect(self.stop_chosen)
        ctx.scope.changed.connect(self._show_ability)
        ctx.model.shown_changed.connect(lambda *_: self._show_ability())
        self._show_ability()

    def _may_be_stopped(self, view: TaskView | None) -> bool:
        return can_be_stopped(view) and self._ctx.scope.may_change(view)

    def cancel_listed(self) -> None:
        """Cancel all tasks of the filtered list, after a question."""
        model = self._ctx.model
        found = [view for view in map(model.view_of, model.ids) if view is not None]
        if len(found) == 1:
            whom = ""  # A single task is named in the question
        elif model.is_filtered:
            whom = self.tr("All {0} tasks that match the filter").format(count(len(found)))
        elif self._ctx.ledgers.states:
            whom = self.tr("All {0} tasks of these ledgers").format(count(len(found)))
        else:
            whom = self.tr("All {0} tasks of this ledger").format(count(len(found)))
        self._requests.cancel(found, whom)

    def stop_chosen(self) -> None:
        """Stop the selected recordings, which complete as if their time were over.

        Without a selection, those of this window are stopped.
        """
        views = self._ctx.scope.views() if len(self._ctx.scope) else self._running()
        chosen = [view.task_id for view in views if self._may_be_stopped(view)]
        said = self.tr("Ending recordings: {0} of {1}")
        self._bulk.run(chosen, lambda engine, one: engine.commands.stop(one), self._tell, said)

    def _running(self) -> list[TaskView]:
        """The recordings that run in this window."""
        found = map(self._ctx.model.view_of, self._recordings)
        return [view for view in found if view is not None]

    def _hear(self, batch: Batch) -> None:
        before = set(self._recordings)
        for view in batch.views:
            runs = view.ours and can_be_stopped(view)
            (self._recordings.add if runs else self._recordings.discard)(view.task_id)
        self._recordings.difference_update(batch.gone)
        if before != self._recordings:
            self._show_ability()

    def ask_to_force(self) -> None:
        """Ask for confirmation before killing the worker of the first unresponsive task."""
        view = next(filter(_may_be_forced, self._ctx.scope.views()), None)
        if view is None:
            return
        question = Question(self._ctx.parent)
        headline = self.tr("Stop “{0}” by force?").format(task_name(view))
        question.ask(self.tr("Force stop"), headline)
        question.add_text(self.tr("It was asked to stop and has not. Its process is ended."))
        question.add_text(self.tr("It will stand as failed; its finished steps are kept."))
        question.add_button("force", self.tr("Force stop"), destroys=True)
        question.add_button("wait", self.tr("Keep waiting"), default=True)
        question.open_for(force=lambda: self._force_stop(view.task_id))

    def _force_stop(self, task_id: str) -> None:
        said = self.tr("Stopping by force: {0} of {1}")
        self._bulk.run(
            [task_id], lambda engine, one: engine.commands.force_stop(one), self._tell, said
        )

    def _tell(self, outcome: Outcome[TaskRecord]) -> None:
        refused = outcome.refused
        if refused:
            title = (
                self.tr("1 task could not be ended")
                if len(refused) == 1
                else self.tr("{0} tasks could not be ended").format(count(len(refused)))
            )
            self._reports.tell(title, refused, outcome)

    def _show_ability(self) -> None:
        scope, model = self._ctx.scope, self._ctx.model
        chosen = [model.view_of(one) for one in scope.ids()[:MOST_LOOKED_AT]]
        stoppable = any(map(self._may_be_stopped, chosen if len(scope) else self._running()))
        stoppable |= len(scope) > MOST_LOOKED_AT and bool(scope.counts.states.get(Standing.RUNNING))
        why_not = self.tr("Only a running recording can be stopped.")
        self._ctx.actions.allow_chosen("stop", stoppable, why_not, chosen=len(scope))
        waits = [wait for wait in map(_waits_ms, chosen) if wait is not None]
        self._force.setEnabled(0 in waits and any(map(_may_be_forced, chosen)))
        if later := list(filter(None, waits)):
            self._due.start(min(later))
        self._all.setEnabled(model.rowCount() > 0)


class StartedTaskSelector(QObject):
    """Wait for one task to be listed, and report it when the filter hides it."""

    def __init__(self, table: TaskTable, bar: Banner, clear_filter: Callable[[], object]) -> None:
        super().__init__(bar)
        self._table, self._bar, self._clear_filter = table, bar, clear_filter
        self._awaited = self._hidden = self._title = ""

    def expect(self, task_id: str, hidden: str = "") -> None:
        """Select this task once it is listed; `hidden` is the title if the filter hides it."""
        self._awaited = task_id
        self._title = hidden or self.tr("Started; hidden by the filter.")
        self.look()

    def forget(self) -> None:
        """Stop waiting, because the user made another selection."""
        self._awaited = ""

    def look(self) -> None:
        """Check whether the task is listed now."""
        task_id, model = self._awaited, self._table.tasks
        if not task_id or model.view_of(task_id) is None:
            return
        self._awaited = ""
        if model.row_of(task_id) >= 0:
            self._stand_on(task_id)
            return
        self._hidden = task_id
        self._bar.tell(self._title, "", (Choice(self.tr("Show"), self._show),), "accent")

    def _show(self) -> None:
        self._bar.setVisible(False)
        self._clear_filter()
        self._stand_on(self._hidden)

    def _stand_on(self, task_id: str) -> None:
        """Select and focus the task for Del and Enter, unless a text field has the focus."""
        self._table.select_ids([task_id])
        if not isinstance(self._table.window().focusWidget(), QLineEdit):
            self._table.setFocus()
