"""Completing by hand, by force where a contract stands against it: asked first, kept for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer

from engine.contracts.forcing import Chance, Prospect, may_be_completed
from engine.model.errors import EngineError
from engine.model.records import TaskView
from engine.service.engine import Engine
from engine.text.words import count
from gui.commands.bulk_work import Outcome
from gui.engine_link.engine_calls import Errands
from gui.i18n.ledger_names import name_with_ledger

if TYPE_CHECKING:
    from gui.commands.force_dialog import ForceDialog
    from gui.window.main_window import MainWindow

RECENT, KEPT_REASONS = "force.reasons", 5
MOST_LOOKED_AT = 500  # tasks to enable the action; beyond that the dialog tells
AGAIN_MS, AT_A_TIME = 1000, 40  # how often an open question is brought up to date, and how much
_LOOK = "what is missing now"


def attach(window: MainWindow) -> Forcing:
    """Add the action, and enable it by what is chosen."""
    return Forcing(window)


class Forcing(QObject):
    """Owns the question of one window, and what is done after it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window, self._bridge = window, window.bridge
        text, short = self.tr("&Force-complete…"), self.tr("Force-complete…")
        self._act = window.acts.add("force", text, ["Ctrl+Shift+F"], "force", short)
        self._act.triggered.connect(lambda: self.ask(window.scope.views()))
        window.scope.changed.connect(self._show_ability)
        window.bridge.health.connect(lambda _: self._show_ability())
        self._show_ability()

    def ask(self, views: Sequence[TaskView]) -> None:
        """Look at what stands against each, and then ask. Nothing is written before."""
        chosen = list(filter(self._may_be_completed, views))
        if not chosen:
            return
        left_out = len(views) - len(chosen)
        names = {str(view.task_id): name_with_ledger(view) for view in chosen}
        alone = len(chosen) == 1

        async def look(engine: Engine, one: str) -> Prospect:
            return await engine.prospect(one, named=alone)

        def then(outcome: Outcome[Prospect]) -> None:
            if outcome.refused:
                self._window.reports.tell(self.tr("Some could not be looked at"), outcome.refused)
            if outcome.done and not outcome.left:
                self._question(outcome.done, names, left_out)

        said = self.tr("Looking at what is missing: {0} of {1} tasks")
        self._window.bulk.run(names, look, then, said)

    def _may_be_completed(self, view: TaskView | None) -> bool:
        return view is not None and may_be_completed(view) and self._window.scope.may_change(view)

    def complete(self, prospects: Sequence[Prospect], reason: str) -> None:
        """Complete these, by force those that need it."""
        needing = {one.subject for one in prospects if one.chance is Chance.FORCE}
        subjects = [one.subject for one in prospects if one.chance is not Chance.NEVER]

        async def act(engine: Engine, one: str) -> Any:
            return await engine.complete(
                one, force=engine.force(reason) if one in needing else None
            )

        if needing:
            try:
                self._remember(self._bridge.engine.force(reason).reason)  # redacted by now
            except EngineError as error:
                self._bridge.failed.emit(error)
                return
        said = self.tr("Completing: {0} of {1} tasks")
        self._window.bulk.run(subjects, act, self._tell, said)

    def _question(
        self, prospects: Sequence[Prospect], names: dict[str, str], left_out: int
    ) -> None:
        from gui.commands.force_dialog import ForceDialog  # few first paints need it

        recent = self._window.desk.preferences.get(RECENT, list)
        dialog = ForceDialog(prospects, names, recent, self._window, left_out=left_out)
        looking = LookingAgain(self._bridge, dialog)

        def act(answer: str) -> None:
            looking.end()
            if answer in ("force", "complete"):
                self.complete(dialog.prospects, dialog.reason.reason)
            dialog.deleteLater()

        dialog.when_answered(act)
        dialog.open()

    def _remember(self, reason: str) -> None:
        preferences = self._window.desk.preferences
        recent = [one for one in preferences.get(RECENT, list) if one != reason]
        preferences.set(RECENT, [reason, *recent][:KEPT_REASONS])

    def _tell(self, outcome: Outcome[Any]) -> None:
        number, refused = len(outcome.done), outcome.refused
        if refused:
            title = (
                self.tr("1 task could not be completed")
                if len(refused) == 1
                else self.tr("{0} tasks could not be completed").format(count(len(refused)))
            )
            self._window.reports.tell(title, refused, outcome)
        elif number:
            words = (
                self.tr("1 task was called complete.")
                if number == 1
                else self.tr("{0} tasks were called complete.").format(count(number))
            )
            self._window.reports.say(words)

    def _show_ability(self) -> None:
        scope, view_of = self._window.scope, self._window.model.view_of
        views = map(view_of, scope.ids()[:MOST_LOOKED_AT])
        found = any(map(self._may_be_completed, views))
        writable = self._window.acts["new"].isEnabled()
        self._act.setEnabled(writable and (found or len(scope) > MOST_LOOKED_AT))


class LookingAgain(QObject):
    """Keeps an open question true: what is missing changes while somebody reads it."""

    def __init__(self, errands: Errands, dialog: ForceDialog) -> None:
        super().__init__(dialog)
        self._errands, self._dialog = errands, dialog
        self._at, self._busy = 0, False
        self._clock = QTimer(self, interval=AGAIN_MS)
        self._clock.timeout.connect(self.look)
        self._clock.start()

    def end(self) -> None:
        """Nobody reads it any more."""
        self._clock.stop()
        self._errands.call_off(_LOOK)

    def look(self) -> None:
        """Ask after the next few of them; of many one after another."""
        if self._busy:
            return
        known = self._dialog.prospects
        part = known[self._at : self._at + AT_A_TIME]
        self._at = self._at + AT_A_TIME if self._at + AT_A_TIME < len(known) else 0
        self._busy = True
        alone = len(known) == 1
        self._errands.ask(lambda engine: _anew(engine, part, alone), self._show, name=_LOOK)

    def _show(self, found: Mapping[str, Prospect]) -> None:
        self._busy = False
        now = [found.get(one.subject, one) for one in self._dialog.prospects]
        self._dialog.show_prospects(now)


async def _anew(engine: Engine, known: Sequence[Prospect], named: bool) -> dict[str, Prospect]:
    """Those that stand otherwise by now; names are read only where the numbers have changed."""
    found: dict[str, Prospect] = {}
    for one in known:
        try:
            now = replace(await engine.prospect(one.subject), missing=one.missing)
            if named and now != one:
                now = await engine.prospect(one.subject, named=True)
        except EngineError:  # gone, or not to be read now: what completes it will say so
            continue
        found[one.subject] = now
    return found
