"""Hold new starts of the ledger, release them, and start a waiting task anyway."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject

from engine.model.ledger_ids import SIGN
from engine.model.records import Health, Hold, Status, TaskRecord, TaskView
from engine.model.status import Standing
from engine.service.engine import Engine
from engine.text.words import clock, count
from gui.commands.bulk_work import BulkWork, Outcome, Reports
from gui.context.window_context import WindowContext
from gui.style.banners import Banner, Choice


class HoldStarts(QObject):
    """Actions `hold` and `start_anyway`, and the `bar` that is shown while starts are held.

    The hold is a file of the ledger, so the bar also shows what other programs held.
    """

    def __init__(self, ctx: WindowContext, bulk: BulkWork, reports: Reports) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._bulk, self._reports = ctx, bulk, reports
        self._held: Hold | None = None
        self.bar = Banner(ctx.parent)
        acts = ctx.actions
        self._hold = acts.add("hold", self.tr("H&old new starts"), ["Ctrl+Shift+H"], "hold")
        self._hold.setCheckable(True)
        self._hold.triggered.connect(self._switch)
        self._anyway = acts.add("start_anyway", self.tr("&Start anyway"))
        self._anyway.triggered.connect(self._start_anyway)
        ctx.bridge.health.connect(self._show_health)
        ctx.scope.changed.connect(self._show_ability)
        acts.allow("hold", False)
        self._show_ability()

    def _switch(self, wanted: bool) -> None:
        self._hold.setChecked(self._held is not None)  # the next health shows what was done
        if wanted:
            self._ctx.bridge.ask(_hold, lambda _: self._refresh(), name="hold new starts")
        else:
            self.release()

    def release(self) -> None:
        """End the hold for all programs."""
        self._ctx.bridge.ask(_release, lambda _: self._refresh(), name="release new starts")

    def _refresh(self) -> None:
        self._ctx.bridge.show_health()

    def _start_anyway(self) -> None:
        chosen = [view.task_id for view in self._ctx.scope.views() if self._is_held(view)]
        said = self.tr("Starting: {0} of {1}")
        if chosen:  # others of the selection are released already
            self._bulk.run(chosen, _start_anyway, self._tell, said)

    def _tell(self, outcome: Outcome[TaskRecord]) -> None:
        self._refresh()
        if refused := outcome.refused:
            title = (
                self.tr("1 task could not be started")
                if len(refused) == 1
                else self.tr("{0} tasks could not be started").format(count(len(refused)))
            )
            self._reports.tell(title, refused, outcome)

    def _is_held(self, view: TaskView) -> bool:
        entry, held = view.entry, self._held
        waits = isinstance(entry, TaskRecord) and entry.status == Status.PENDING
        own = SIGN not in view.task_id and self._ctx.scope.may_change(view)
        return waits and own and held is not None and view.task_id not in held.released

    def _show_health(self, health: Health) -> None:
        accepts = health.engine == "ready" and not health.read_only
        self._ctx.actions.allow("hold", accepts)
        before, self._held = self._held, health.hold
        if before == health.hold:
            return
        self._hold.setChecked(health.hold is not None)
        if health.hold is None or before is None or before.since != health.hold.since:
            self._show_bar(health.hold)
        self._show_ability()

    def _show_bar(self, hold: Hold | None) -> None:
        if hold is None:
            self.bar.setVisible(False)
            return
        lines = [self._since(hold)]
        if hold.reason:
            lines.append(self.tr("Reason: {0}").format(hold.reason))
        lines.append(self.tr("Running tasks go on; new ones wait in the queue."))
        choice = Choice(self.tr("Start waiting tasks"), self.release)
        self.bar.tell(self.tr("New starts are held"), "\n".join(lines), (choice,))

    def _since(self, hold: Hold) -> str:
        if not hold.since:
            return self.tr("By the file .hold.json in the ledger’s folder.")
        since = clock(hold.since, time.time() * 1000)
        if not hold.by:
            return self.tr("Since {0}.").format(since)
        return self.tr("Since {0}, by {1}.").format(since, hold.by)

    def _show_ability(self) -> None:
        scope = self._ctx.scope
        able = self._held is not None and bool(scope.counts.states.get(Standing.PENDING))
        why_not = self.tr("Only tasks that wait while new starts are held can be started.")
        self._ctx.actions.allow_chosen("start_anyway", able, why_not, chosen=len(scope))


async def _hold(engine: Engine) -> Hold:
    return await engine.start_hold.hold()


async def _release(engine: Engine) -> Hold | None:
    return await engine.start_hold.release()


async def _start_anyway(engine: Engine, task_id: str) -> TaskRecord:
    return await engine.start_hold.start_anyway(task_id)
