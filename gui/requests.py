"""What a user asks of the engine, from the question to the answer: start, cancel, undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.errors import EngineError, InvalidArguments
from engine.records import Status, TaskRecord, TaskView
from engine.words import count
from gui.bridge import Bridge, Cancelled
from gui.dialogs.address import address_in
from gui.dialogs.cancel import CancelDialog, plan_cancel
from gui.dialogs.start import StartDialog
from gui.states import Banner, Choice

UNDO_MS = 8000


class Requests(QObject):
    """Owns the dialogs of one window and the bar that offers to undo."""

    started = Signal(str)
    failed = Signal(EngineError)

    def __init__(self, bridge: Bridge, window: QWidget, undo_bar: Banner) -> None:
        super().__init__(window)
        self._bridge, self._window, self._undo_bar = bridge, window, undo_bar
        self._dialog: StartDialog | None = None
        self._undoable: tuple[TaskRecord, ...] = ()
        self._immediate: frozenset[str] = frozenset()
        self._undo_timer = QTimer(self, singleShot=True, interval=UNDO_MS)
        self._undo_timer.timeout.connect(self._forget_undo)
        bridge.started.connect(self._show_started)
        bridge.refused.connect(self._show_refused)
        bridge.failed.connect(self._show_failed)
        bridge.cancelled.connect(self._show_cancelled)

    def new_task(self, args: Mapping[str, Any] | None = None, parent: str | None = None) -> None:
        """Open the start dialog, filled with `args`; `parent` is the task that it repeats."""
        if self._dialog is not None:
            self._dialog.raise_()
            return
        dialog = self._dialog = StartDialog(self._bridge.problems, self._window)
        if args:
            dialog.fill(args)
        dialog.offer_clipboard(QGuiApplication.clipboard().text())
        dialog.wanted.connect(lambda kind, wanted: self._bridge.start(kind, wanted, parent))
        dialog.finished.connect(self._forget_dialog)
        dialog.open()

    def paste(self) -> None:
        """Open the start dialog with the address that was copied; an empty one without one."""
        url = address_in(QGuiApplication.clipboard().text())
        self.new_task({"url": url} if url else None)

    def cancel(self, views: Sequence[TaskView]) -> None:
        """Cancel these tasks: one that waits at once, anything else after a question."""
        plan = plan_cancel(views)
        if not plan.ids:
            return
        if not plan.needs_a_question:
            self._send_cancel(plan.ids, plan.pending, None)
            return
        dialog = CancelDialog(plan, self._window)

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
            if not self._bridge.start_again(record.task_id) and len(records) == 1:
                self.new_task(record.args_summary, record.task_id)  # made by another process

    def _send_cancel(
        self, ids: Sequence[str], pending: Sequence[TaskView], reason: str | None
    ) -> None:
        self._immediate = frozenset(view.task_id for view in pending)
        self._bridge.cancel(ids, reason)

    def _show_started(self, record: TaskRecord) -> None:
        if self._dialog is not None:
            self._dialog.accept_task(record)
        self.started.emit(record.task_id)

    def _show_refused(self, mistakes: InvalidArguments) -> None:
        if self._dialog is not None:
            self._dialog.show_refusal(mistakes)
        else:
            self.failed.emit(mistakes)

    def _show_failed(self, error: EngineError) -> None:
        if self._dialog is not None:
            self._dialog.show_error(error)
        else:
            self.failed.emit(error)

    def _show_cancelled(self, outcome: Cancelled) -> None:
        if outcome.refused:
            self.failed.emit(outcome.refused[0])
        self._undoable = tuple(
            record
            for record in outcome.records
            if record.status == Status.CANCELLED
            and record.task_id in self._immediate
            and record.started_at is None
        )
        if not self._undoable:
            return
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

    def _forget_dialog(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None
