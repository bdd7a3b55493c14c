"""Asking tasks once more: one at once, many after a dry run, and what is missing by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.model.ledger_ids import ledger_label
from engine.model.records import TaskId, TaskRecord, TaskView
from engine.service.engine import Engine
from engine.service.rerun import Chance, Repeats, known, repeats
from engine.text.words import count
from gui.commands.bulk_work import Outcome

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow


def attach(window: MainWindow) -> Rerunning:
    """Add the actions, and enable them by what is chosen."""
    return Rerunning(window)


class Rerunning(QObject):
    """Owns the dry run of one window and what is started after it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window, self._bridge = window, window.bridge
        acts = window.acts
        self._one = acts.add("rerun", self.tr("&Re-run"), ["Ctrl+R"], "rerun", self.tr("Re-run"))
        self._many = acts.add("rerun_many", self.tr("Re-run all that are &listed…"))
        self._one.triggered.connect(lambda: self.ask(window.scope.views()))
        self._many.triggered.connect(lambda: self.ask(self._listed()))
        window.scope.changed.connect(self._show_ability)
        window.bridge.health.connect(lambda _: self._show_ability())
        window.model.shown_changed.connect(lambda *_: self._show_ability())
        self._show_ability()

    def ask(self, views: Sequence[TaskView]) -> None:
        """Look at what re-running these would come to; one that is known whole just starts."""
        remembers = self._bridge.remembers

        async def look(_: Engine) -> Repeats:
            return await asyncio.to_thread(repeats, views, remembers)

        self._bridge.ask(look, self._decide, name="dry run")

    def start(self, ids: Sequence[TaskId]) -> None:
        """Start these, which the dry run said would start, a few at a time."""
        said = self.tr("Starting again: {0} of {1} tasks")
        repeat = self._bridge.repeat
        self._window.bulk.run(ids, lambda _, one: repeat(one), self._tell, said)

    def _decide(self, found: Repeats) -> None:
        alone = sum(map(len, found.chances.values())) == 1
        asking = found.of(Chance.ASKS)
        if alone and found.ids and not self._elsewhere(found):
            self.start(found.ids)
        elif alone and asking:
            self._complete_by_hand(asking[0])
        elif found.chances:
            self._question(found)

    def _question(self, found: Repeats) -> None:
        from gui.commands.rerun_dialog import RerunDialog  # few first paints need it

        dialog = RerunDialog(found, self._window, self._elsewhere(found))

        def act(answer: str) -> None:
            if answer == "rerun":
                self._keep_choice(found)
                self.start(dialog.ids)
            dialog.deleteLater()

        dialog.when_answered(act)
        dialog.open()

    def _keep_choice(self, found: Repeats) -> None:
        """Where all that match are chosen, what starts now would match as well, and be chosen:
        the tasks that were asked about stay chosen, and no others."""
        asked = [view.task_id for views in found.chances.values() for view in views]
        self._window.table.keep_chosen(asked)

    def _elsewhere(self, found: Repeats) -> str:
        """Where they start, if some of them are in another ledger; empty when that is clear."""
        return self._window.beside.starts_here(any(map(ledger_label, found.ids)))

    def _complete_by_hand(self, view: TaskView) -> None:
        assert isinstance(view.entry, TaskRecord)
        note = self.tr("What was secret, or too long to be kept, has to be given again.")
        parent = None if view.ledger else view.task_id  # a parent is in the same ledger
        self._window.requests.starting.open(known(view.entry), parent, note=note)

    def _tell(self, outcome: Outcome[TaskRecord]) -> None:
        started = len(outcome.done)
        if started == 1:
            self._bridge.started.emit(outcome.done[0])  # it is shown, and chosen
        if outcome.refused:
            number = len(outcome.refused)
            title = (
                self.tr("1 task could not be re-run")
                if number == 1
                else self.tr("{0} tasks could not be re-run").format(count(number))
            )
            self._window.reports.tell(title, outcome.refused, outcome)
        elif started > 1:
            words = self.tr("{0} tasks were started again.").format(count(started))
            self._window.reports.say(words)

    def _listed(self) -> list[TaskView]:
        model = self._window.model
        found = map(model.view_of, model.ids)
        return [view for view in found if view is not None]

    def _show_ability(self) -> None:
        accepts = self._window.acts["new"].isEnabled()
        self._one.setEnabled(accepts and self._window.scope.counts.ended > 0)
        self._many.setEnabled(accepts and self._window.model.rowCount() > 0)
