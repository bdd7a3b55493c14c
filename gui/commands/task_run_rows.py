"""Task runs in the list, and the action that resumes one after help."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

from msgspec.structs import replace
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLineEdit, QWidget

from engine.model.errors import EngineError
from engine.model.records import TaskRecord, TaskView
from engine.model.status import NEEDS_HELP
from engine.service.feed import Batch
from engine.text.words import task_name, why
from gui.commands.bulk_work import Reports
from gui.context.window_context import WindowContext
from gui.style.question import Question
from gui.style.theme import plain_label

# Question before a task run resumes.

WIDTH = 520
MOST_REASON = 500


class ResumeDialog(Question):
    """Dialog for the required `reason`; the default keeps the run waiting."""

    def __init__(self, view: TaskView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        assert isinstance(view.entry, TaskRecord)
        headline = self.tr("Let “{0}” go on?").format(task_name(view))
        self.ask(self.tr("Help is given"), headline)
        self.add_text(why(view, 0))
        self._line = QLineEdit(self)
        self._line.setMaxLength(MOST_REASON)
        self._line.setPlaceholderText(self.tr("as in: the captcha is solved"))
        name = plain_label(self.tr("What has been done"))
        name.setBuddy(self._line)
        self.body.addWidget(name)
        self.body.addWidget(self._line)
        self._go = self.add_button("resume", self.tr("Go on"))
        self.add_button("wait", self.tr("Let it wait"), default=True)
        self._line.textChanged.connect(self._judge)
        self._line.setFocus()
        self._judge()

    @property
    def reason(self) -> str:
        return self._line.text().strip()

    def _judge(self) -> None:
        self._go.setEnabled(bool(self.reason))
        self._go.setToolTip("" if self.reason else self.tr("Say what has been done"))


log = logging.getLogger(__name__)

MOST_VIEWS = 200  # Views added at once; making a row takes about 0.1 ms
MOST_LOOKED_AT = 500
AGAIN_S = 5.0


def waits_for_help(view: TaskView | None) -> bool:
    """Return whether the run waits for a user."""
    return view is not None and getattr(view.entry, "status", "") == NEEDS_HELP


class RunRows(QObject):
    """Add task runs to the list through the same signals as tasks."""

    def __init__(self, ctx: WindowContext, reports: Reports) -> None:
        super().__init__(ctx.parent)
        self._reports = reports
        self._ctx, self._bridge = ctx, ctx.bridge
        self._following = False
        text = self.tr("Help is given: &go on…")
        self._act = ctx.actions.add("resume", text, ["Ctrl+G"], "sample")
        self._act.triggered.connect(self.ask)
        ctx.bridge.loaded.connect(self._begin)
        ctx.scope.changed.connect(self._show_ability)
        self._show_ability()

    def ask(self) -> None:
        """Show the reason why the first selected run waits, and ask for the resolution."""
        view = next(filter(self._may_go_on, self._ctx.scope.views()), None)
        if view is None or not isinstance(view.entry, TaskRecord):
            return
        dialog = ResumeDialog(view, self._ctx.parent)
        run_id = view.task_id

        def act(answer: str) -> None:
            if answer == "resume":
                self._resume(run_id, dialog.reason)
            dialog.deleteLater()

        dialog.when_answered(act)
        dialog.open()

    def _may_go_on(self, view: TaskView | None) -> bool:
        return waits_for_help(view) and self._ctx.scope.may_change(view)

    def _resume(self, run_id: str, reason: str) -> None:
        words = self.tr("It goes on as soon as whoever works for it looks.")
        self._bridge.ask(
            lambda engine: engine.contracts.resume(run_id, reason),
            lambda _: self._reports.say(words),
            name=f"resume {run_id}",
        )

    def _begin(self) -> None:
        """Start after the tasks are loaded, since the window waits for those."""
        if not self._following:
            self._following = True
            self._bridge.spawn(self._follow(), name="task runs")

    async def _follow(self) -> None:
        """Follow changes until the window closes, and restart a failed feed."""
        while True:
            try:
                async with aclosing(self._bridge.engine.contracts.run_changes()) as batches:
                    async for batch in batches:
                        await self._hand_on(batch)
            except EngineError as error:
                log.warning("the task runs cannot be followed now: %s", error)
            await asyncio.sleep(AGAIN_S)

    async def _hand_on(self, batch: Batch) -> None:
        views = batch.views
        parts = [views[at : at + MOST_VIEWS] for at in range(0, len(views), MOST_VIEWS)] or [()]
        for part in parts:
            self._bridge.batch.emit(replace(batch, views=part))
            await asyncio.sleep(0)

    def _show_ability(self) -> None:
        ids, view_of = self._ctx.scope.ids()[:MOST_LOOKED_AT], self._ctx.model.view_of
        self._act.setEnabled(any(self._may_go_on(view_of(one)) for one in ids))
