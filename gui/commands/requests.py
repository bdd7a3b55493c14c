"""What a user asks of the engine, from the question to the answer: start, cancel, undo."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal

from engine.model.errors import EngineError
from engine.model.ledger_ids import ledger_label
from engine.model.records import Status, TaskRecord, TaskView
from engine.service.engine import Engine
from engine.text.words import count
from gui.commands.bulk_work import Outcome
from gui.commands.cancel_dialog import CancelDialog, Plan, plan_cancel
from gui.engine_link.bridge import Bridge
from gui.engine_link.cancel_many import Cancelled
from gui.start.starting import FIRST_KIND, Starting
from gui.style.banners import Banner, Choice

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

UNDO_MS = 8000
MOST_AT_ONCE = 300  # tasks that are judged in the turn in which it is asked


class Requests(QObject):
    """Owns the dialogs of one window and the bar that offers to undo."""

    started = Signal(str)
    failed = Signal(EngineError)
    refused = Signal(tuple)
    undo_offered = Signal(str)  # in words for a menu; empty when it is over

    def __init__(self, bridge: Bridge, window: MainWindow, undo_bar: Banner) -> None:
        super().__init__(window)
        self._bridge, self._window, self._undo_bar = bridge, window, undo_bar
        self.starting = Starting(bridge, window)
        self.starting.failed.connect(self.failed)
        self._undoable: tuple[TaskRecord, ...] = ()
        self._undo_timer = QTimer(self, singleShot=True, interval=UNDO_MS)
        self._undo_timer.timeout.connect(self._forget_undo)
        bridge.started.connect(lambda record: self.started.emit(record.task_id))
        bridge.failed.connect(self.failed)
        bridge.cancelled.connect(self._show_cancelled)

    def new_task(self, args: Mapping[str, Any] | None = None, parent: str | None = None) -> None:
        """Open the start dialog, filled with `args`; `parent` is the task that it repeats."""
        self.starting.new_task(args, parent)

    def paste(self) -> None:
        """Open the start dialog with the address that was copied; an empty one without one."""
        self.starting.paste()

    def cancel(self, views: Sequence[TaskView], whom: str = "") -> None:
        """Cancel these tasks: one that waits at once, anything else after a question.

        `whom` says in words which tasks were meant, where nobody chose them one by one.
        """
        if len(views) <= MOST_AT_ONCE:
            self._ask(*self._judged(views), whom)
            return

        async def judge(_: Engine) -> tuple[Plan, int]:
            return await asyncio.to_thread(self._judged, views)

        self._bridge.ask(judge, lambda found: self._ask(*found, whom), name="plan a cancel")

    def _judged(self, views: Sequence[TaskView]) -> tuple[Plan, int]:
        """What a cancel would do, and to how many of those that wait for good."""
        plan = plan_cancel([view for view in views if self._window.scope.may_change(view)])
        alone = len(plan.pending) == 1
        return plan, sum(not self._comes_back(view, alone) for view in plan.pending)

    def _ask(self, plan: Plan, for_good: int, whom: str) -> None:
        if not plan.ids:
            return
        if not plan.needs_a_question and not for_good:
            self._send_cancel(plan.ids, plan.pending, None)
            return
        dialog = CancelDialog(plan, self._window, for_good=for_good, whom=whom)

        def act(answer: str) -> None:
            if answer == "cancel":
                self._send_cancel(plan.ids, plan.pending, dialog.reason)
            dialog.deleteLater()

        dialog.when_answered(act)
        dialog.open()

    def undo(self) -> None:
        """Start again what was cancelled before it began, each as a new task."""
        records = self._undoable
        self._undo_timer.stop()
        self._forget_undo()
        for record in records:
            if not self._bridge.start_again(record):
                self.new_task(record.args_summary, record.task_id)  # made by another program

    def _comes_back(self, view: TaskView, alone: bool) -> bool:
        """Could an undo bring it back? Of a crawl by another program, what it is about at least."""
        if view.ledger:
            return False  # what is started again starts in the window's own ledger
        record = view.entry
        known = isinstance(record, TaskRecord) and self._bridge.can_start_again(record)
        return known or (alone and getattr(record, "kind", "") == FIRST_KIND)

    def _send_cancel(
        self, ids: Sequence[str], pending: Sequence[TaskView], reason: str | None
    ) -> None:
        """Those that wait first: else each one that stops would let another one begin."""
        waiting = frozenset(view.task_id for view in pending)

        async def act(engine: Engine, one: str) -> TaskRecord:
            return await engine.cancel(one, reason)

        def then(outcome: Outcome[TaskRecord]) -> None:
            self._bridge.cancelled.emit(Cancelled(tuple(outcome.done), (), waiting))
            if outcome.refused:
                title = self._not_cancelled(len(outcome.refused))
                self._window.reports.tell(title, outcome.refused, outcome)
            self._bridge.show_health()

        said = self.tr("Asking to stop: {0} of {1} tasks")
        self._window.bulk.run(ids, act, then, said)

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
        """Add to what can be undone; one crawl of another process can at least be asked anew."""
        own = tuple(record for record in news if self._bridge.can_start_again(record))
        if own:
            earlier = self._undoable
            kept = (one for one in earlier if self._bridge.can_start_again(one))
            self._undoable = (*kept, *own)
        elif len(news) == 1 and news[0].kind == FIRST_KIND and not self._undoable:
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
            self.tr("Und&o cancelling 1 task")
            if number == 1
            else self.tr("Und&o cancelling {0} tasks").format(count(number))
        )
        self._undo_timer.start()

    def _forget_undo(self) -> None:
        self._undoable = ()
        self._undo_bar.setVisible(False)
        self.undo_offered.emit("")
