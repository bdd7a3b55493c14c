"""Ending more than what is chosen: all that are listed; and recordings in good order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.records import Status, TaskRecord, TaskView
from engine.words import count
from gui.bulk_work import Outcome

if TYPE_CHECKING:
    from gui.main_window import MainWindow

RECORDING = "recording"
MOST_LOOKED_AT = 500  # tasks to enable an action; beyond that it tells when it is used


def attach(window: MainWindow) -> Stopping:
    """Add the actions, and enable them by what is listed and chosen."""
    return Stopping(window)


def can_be_stopped(view: TaskView | None) -> bool:
    """Is it a recording that runs, and that nobody has asked to end yet?"""
    entry = view.entry if view is not None else None
    if not isinstance(entry, TaskRecord) or entry.kind != RECORDING:
        return False
    asked = entry.cancel_requested_at or (entry.engine and entry.engine.stop_requested_at)
    return entry.status == Status.RUNNING and not asked


class Stopping(QObject):
    """See the module. What is asked before, and Undo, are `Requests`'."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        acts = window.acts
        self._all = acts.add("cancel_matching", self.tr("Cancel all that are l&isted…"))
        self._stop = acts.add("stop", self.tr("S&top recording"), ["Ctrl+."], "stop_recording")
        self._all.triggered.connect(self.cancel_listed)
        self._stop.triggered.connect(self.stop_chosen)
        window.scope.changed.connect(self._show_ability)
        window.model.shown_changed.connect(lambda *_: self._show_ability())
        self._show_ability()

    def cancel_listed(self) -> None:
        """Ask about every task that the list shows now, also out of sight."""
        model = self._window.model
        found = [view for view in map(model.view_of, model.ids) if view is not None]
        if model.is_filtered:
            whom = self.tr("All {0} tasks that match the filter").format(count(len(found)))
        else:
            whom = self.tr("All {0} tasks of this ledger").format(count(len(found)))
        self._window.requests.cancel(found, whom)

    def stop_chosen(self) -> None:
        """End the chosen recordings as if their time were over: they will be completed."""
        chosen = [view.task_id for view in self._window.scope.views() if can_be_stopped(view)]
        said = self.tr("Ending recordings: {0} of {1}")
        self._window.bulk.run(chosen, lambda engine, one: engine.stop(one), self._tell, said)

    def _tell(self, outcome: Outcome[TaskRecord]) -> None:
        refused = outcome.refused
        if refused:
            title = (
                self.tr("1 recording could not be ended")
                if len(refused) == 1
                else self.tr("{0} recordings could not be ended").format(count(len(refused)))
            )
            self._window.reports.tell(title, refused)

    def _show_ability(self) -> None:
        scope, model = self._window.scope, self._window.model
        chosen = map(model.view_of, scope.ids()[:MOST_LOOKED_AT])
        self._stop.setEnabled(any(map(can_be_stopped, chosen)) or len(scope) > MOST_LOOKED_AT)
        self._all.setEnabled(model.rowCount() > 0)
