"""What a user asks of the engine, from the question to the answer: start, cancel, undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from engine.errors import EngineError
from engine.records import Status, TaskRecord, TaskView
from engine.words import count
from gui.bridge import Bridge
from gui.cancelling import Cancelled
from gui.dialogs.cancel import CancelDialog, plan_cancel
from gui.starting import FIRST_KIND, Starting
from gui.states import Banner, Choice

UNDO_MS = 8000


class Requests(QObject):
    """Owns the dialogs of one window and the bar that offers to undo."""

    started = Signal(str)
    failed = Signal(EngineError)
    refused = Signal(tuple)

    def __init__(self, bridge: Bridge, window: QWidget, undo_bar: Banner) -> None:
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

    def cancel(self, views: Sequence[TaskView]) -> None:
        """Cancel these tasks: one that waits at once, anything else after a question."""
        plan = plan_cancel(views)
        if not plan.ids:
            return
        alone = len(plan.pending) == 1
        lost = [view for view in plan.pending if not self._comes_back(view, alone)]
        if not plan.needs_a_question and not lost:
            self._send_cancel(plan.ids, plan.pending, None)
            return
        dialog = CancelDialog(plan, self._window, for_good=len(lost))

        def act(answer: str) -> None:
            if answer == "cancel":
                self._send_cancel(plan.ids, plan.pending, dialog.reason)
            dialog.deleteLater()

        dialog.when_answered(act)
        dialog.open()

    def undo(self) -> None:
        """Start again what was cancelled before it began, each as a new task."""
        records, self._undoable = self._undoable, ()
        self._undo_bar.setVisible(False)
        self._undo_timer.stop()
        for record in records:
            if not self._bridge.start_again(record):
                self.new_task(record.args_summary, record.task_id)  # made by another program

    def _comes_back(self, view: TaskView, alone: bool) -> bool:
        """Could an undo bring it back? Of a crawl by another program, what it is about at least."""
        record = view.entry
        known = isinstance(record, TaskRecord) and self._bridge.can_start_again(record)
        return known or (alone and getattr(record, "kind", "") == FIRST_KIND)

    def _send_cancel(
        self, ids: Sequence[str], pending: Sequence[TaskView], reason: str | None
    ) -> None:
        self._bridge.cancel(ids, reason, [view.task_id for view in pending])

    def _show_cancelled(self, outcome: Cancelled) -> None:
        if outcome.refused:
            self.refused.emit(outcome.refused)
        news = tuple(
            record
            for record in outcome.records
            if record.status == Status.CANCELLED
            and record.task_id in outcome.waiting
            and record.started_at is None
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
        self._undo_timer.start()

    def _forget_undo(self) -> None:
        self._undoable = ()
        self._undo_bar.setVisible(False)
