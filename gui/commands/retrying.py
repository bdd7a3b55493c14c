"""Retry of the failed units of a task, after a question."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject

from engine.model.errors import EngineError
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import ledger_label
from engine.model.records import TaskRecord, TaskView
from engine.service.engine import Engine
from engine.service.rerun import Asked
from engine.service.retry_failed import Remainder
from engine.text.words import count
from gui.commands.requests import Requests
from gui.context.window_context import WindowContext


class Retrying(QObject):
    """Action and question of a retry."""

    def __init__(self, ctx: WindowContext, requests: Requests) -> None:
        super().__init__(ctx.parent)
        self._requests = requests
        self._ctx, self._bridge = ctx, ctx.bridge
        self._action = ctx.actions.add("retry_failed", self.tr("Retr&y failed only…"))
        self._action.triggered.connect(self._ask_chosen)
        ctx.services.wishes.retry.connect(self.ask)
        ctx.scope.changed.connect(self._allow)
        self._allow()

    def ask(self, task_id: str) -> None:
        """Read the failed units of this task and open the question."""
        self._bridge.ask(
            lambda engine: engine.requests.remainder(task_id), self._decide, name="look at failed"
        )

    def _ask_chosen(self) -> None:
        views = self._ctx.scope.views()
        if len(views) == 1:
            self.ask(views[0].task_id)

    def _allow(self) -> None:
        views = self._ctx.scope.views() if len(self._ctx.scope) == 1 else []
        self._action.setEnabled(bool(views) and can_be_retried(views[0]))

    def _decide(self, found: Remainder) -> None:
        from gui.style.question import Question

        if found.refusal is not None and found.request is not None:
            self._complete_by_hand(found.task_id, found.request)
            return
        dialog = Question(self._ctx.parent)
        dialog.ask(self.tr("Retry what failed"), self._headline(found))
        elsewhere = self._ctx.ledgers.starts_here(bool(ledger_label(found.task_id)))
        for text in (*self._sentences(found), elsewhere):
            if text:
                dialog.add_text(text)
        if found.request:
            dialog.add_button("start", self.tr("Start"))
            dialog.add_button("keep", self.tr("Leave it"), default=True)
        else:
            dialog.add_button("keep", self.tr("Close"), default=True)

        def act(answer: str) -> None:
            if answer == "start":
                self._start(found.task_id)
            dialog.deleteLater()

        dialog.when_answered(act)
        dialog.open()

    def _complete_by_hand(self, task_id: str, request: Asked) -> None:
        note = self.tr(
            "These are the commands from the failed one on. Variables and typed texts are not "
            "kept: they have to be given again."
        )
        parent = None if ledger_label(task_id) else task_id  # A parent must be in the same ledger
        self._requests.starting.open(request, parent, note=note)

    def _headline(self, found: Remainder) -> str:
        number = found.taken
        if not found.request:
            return self.tr("There is nothing to retry")
        if traits_of(found.kind).steps:
            return self.tr("Run the failed command and those behind it again?")
        if number == 1:
            return self.tr("Try the failed page again?")
        return self.tr("Try {0} failed pages again?").format(count(number))

    def _sentences(self, found: Remainder) -> Sequence[str]:
        known = traits_of(found.kind)
        if not found.request:
            none = self.tr("Nothing of this task failed that could be tried again on its own.")
            kinds = self.tr("Only pages of a crawl and commands can be retried on their own.")
            return (none if known.crawls or known.steps else kinds,)
        if known.steps:
            last = self.tr("It begins with the last page that was opened before the failed one.")
            return (last, self.tr("It becomes a new task; this one stays as it is."))
        new = self.tr("It becomes a new task; this one stays as it is.")
        if found.failed > found.taken:
            text = self.tr("{0} pages failed; only the first {1} are retried at a time.")
            return (new, text.format(count(found.failed), count(found.taken)))
        return (new,)

    def _start(self, task_id: str) -> None:
        async def start(engine: Engine) -> list[EngineError]:
            try:
                await engine.requests.retry(task_id)
            except EngineError as error:
                return [error]
            return []

        self._bridge.ask(start, self._tell, name=f"retry {task_id}")

    def _tell(self, refused: list[EngineError]) -> None:
        if refused:
            self._requests.refused.emit(tuple(refused))


def can_be_retried(view: TaskView) -> bool:
    """Return whether the task has ended and its kind has units that can be retried."""
    entry = view.entry
    if not isinstance(entry, TaskRecord) or not entry.is_terminal:
        return False
    return traits_of(entry.kind).crawls or traits_of(entry.kind).steps


def attach(ctx: WindowContext, requests: Requests) -> Retrying:
    """Add the action and connect the requests of the details."""
    return Retrying(ctx, requests)
