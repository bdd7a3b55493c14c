"""Cancel all listed tasks, and stop recordings."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, QTimer

from engine.model.kind_traits import traits_of
from engine.model.records import Status, TaskRecord, TaskView
from engine.text.words import count, task_name
from gui.commands.bulk_reports import Reports
from gui.commands.bulk_work import BulkWork, Outcome
from gui.commands.requests import Requests
from gui.context.window_context import WindowContext
from gui.style.question import Question

PATIENCE_MS = 10_000  # As in the engine: a healthy task stops within 2 s
MOST_LOOKED_AT = 500  # Tasks examined to enable an action; with more it is enabled without a check


def attach(
    ctx: WindowContext, requests: Requests, bulk: BulkWork, reports: Reports
) -> CancelListed:
    """Add the actions and enable them by list and selection."""
    return CancelListed(ctx, requests, bulk, reports)


def can_be_stopped(view: TaskView | None) -> bool:
    """Return whether the view is a running recording without a stop request."""
    entry = view.entry if view is not None else None
    if not isinstance(entry, TaskRecord) or not traits_of(entry.kind).stoppable:
        return False
    asked = entry.cancel_requested_at or (entry.engine and entry.engine.stop_requested_at)
    return entry.status == Status.RUNNING and not asked


def _waits_ms(view: TaskView | None) -> int | None:
    """Return the ms until a cancelled task of another local process may be stopped by force.

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
        self._all = acts.add("cancel_matching", self.tr("Cancel all that are l&isted…"))
        self._stop = acts.add("stop", self.tr("S&top recording"), ["Ctrl+."], "stop_recording")
        self._force = acts.add("force_stop", self.tr("Force st&op…"))
        self._force.triggered.connect(self.ask_to_force)
        self._due = QTimer(self, singleShot=True)
        self._due.timeout.connect(self._show_ability)
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
        """Stop the selected recordings, which complete as if their time were over."""
        views = filter(self._may_be_stopped, self._ctx.scope.views())
        chosen = [view.task_id for view in views]
        said = self.tr("Ending recordings: {0} of {1}")
        self._bulk.run(chosen, lambda engine, one: engine.commands.stop(one), self._tell, said)

    def ask_to_force(self) -> None:
        """Ask for confirmation before killing the worker of the first unresponsive task."""
        view = next((one for one in self._ctx.scope.views() if _waits_ms(one) == 0), None)
        if view is None:
            return
        question = Question(self._ctx.parent)
        headline = self.tr("Stop “{0}” by force?").format(task_name(view))
        question.ask(self.tr("Force stop"), headline)
        question.add_text(self.tr("It was asked to stop and has not. Its process is ended."))
        question.add_text(self.tr("It will stand as failed; its finished steps are kept."))
        question.add_button("force", self.tr("Force stop"))
        question.add_button("wait", self.tr("Keep waiting"), default=True)

        def act(answer: str) -> None:
            question.deleteLater()
            if answer == "force":
                said = self.tr("Stopping by force: {0} of {1}")
                end = self._bulk.run
                end(
                    [view.task_id],
                    lambda engine, one: engine.commands.force_stop(one),
                    self._tell,
                    said,
                )

        question.when_answered(act)
        question.open()

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
        self._stop.setEnabled(any(map(self._may_be_stopped, chosen)) or len(scope) > MOST_LOOKED_AT)
        waits = [wait for wait in map(_waits_ms, chosen) if wait is not None]
        self._force.setEnabled(0 in waits)
        if waits and 0 not in waits:
            self._due.start(min(waits))
        self._all.setEnabled(model.rowCount() > 0)
