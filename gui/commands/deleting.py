"""Delete ended tasks: hidden immediately, moved to the trash after the undo period.

The Undo action (Ctrl+Z) is for everything that the banners offer to undo. A focused text field
keeps the shortcut, because Qt sends it there first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget

from engine.model.errors import EngineError
from engine.model.records import TASK_RUN, TaskRecord, TaskView
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.text.messages import retold
from engine.text.words import count, status_word
from gui.commands.bulk_work import BulkWork, Outcome, Reports
from gui.context.window_context import WindowContext
from gui.i18n.names import name_with_ledger
from gui.style.banners import Banner, Choice
from gui.style.questions import Question, TaskList

# Question before many tasks go to the trash, or any are deleted permanently.

WIDTH = 560


class DeleteQuestion(Question):
    """Question dialog; the answer `go` deletes, the default keeps the tasks."""

    def __init__(
        self,
        title: str,
        verb: str,
        views: Sequence[TaskView],
        sentences: Sequence[str] = (),
        parent: QWidget | None = None,
        *,
        destroys: bool = False,
    ) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self.ask(title, title)
        for sentence in filter(None, sentences):
            self.add_text(sentence)
        rows = [(name_with_ledger(view), status_word(view)) for view in views]
        self.list = TaskList((self.tr("Task"), self.tr("Status")), rows, self)
        self.list.setColumnWidth(0, WIDTH - 170)
        self.body.addWidget(self.list)
        self.add_button("go", verb, destroys=destroys)
        self.add_button("keep", self.tr("Keep"), default=True)


UNDO_MS = 8000
MANY = 20  # Larger numbers are confirmed first, although they can be undone
MOST_LOOKED_AT = 500
NO_TRASH = "no_trash"
NOT_FOUND = "task_not_found"  # Another program deleted the task first, which is the wanted result


def can_go(view: TaskView | None) -> bool:
    """Return whether the task can be deleted: ended or unreadable, but no task run."""
    entry = view.entry if view is not None else None
    if isinstance(entry, TaskRecord):
        return entry.is_terminal and entry.kind != TASK_RUN
    return entry is not None


class Deleting(QObject):
    """Deletion with an undo period; nothing is touched before it ends or the window closes."""

    undo_offered = Signal(str)  # Text for the undo menu, empty after the undo period

    def __init__(self, ctx: WindowContext, bulk: BulkWork, reports: Reports) -> None:
        super().__init__(ctx.parent)
        self._bulk = bulk
        self._reports = reports
        self._ctx, self._bridge = ctx, ctx.bridge
        self._leaving: dict[str, TaskView] = {}
        self.bar = Banner(ctx.parent)
        self._over = QTimer(self, singleShot=True, interval=UNDO_MS)
        acts = ctx.actions
        self._act = acts.add("delete", self.tr("&Move to the trash"), [], "trash")
        self._for_good = acts.add("delete_for_good", self.tr("D&elete permanently…"), ["Shift+Del"])
        acts.keep_to(ctx.table, "delete", "delete_for_good")
        self._connect()
        self._show_ability()

    def _connect(self) -> None:
        ctx = self._ctx
        self._act.triggered.connect(lambda: self.ask(ctx.scope.views()))
        self._for_good.triggered.connect(lambda: self._ask_for_good(ctx.scope.views()))
        self._over.timeout.connect(self._carry_out)
        self.bar.closed.connect(self._carry_out)
        self._bridge.batch.connect(self._keep_out_of_sight)
        self._bridge.promise(self._at_the_end)
        ctx.scope.changed.connect(self._show_ability)
        self.undo_offered.connect(self._offer_undo)

    def ask(self, views: Sequence[TaskView]) -> None:
        """Delete the ended tasks of `views`, many of them after a question."""
        chosen = [view for view in views if self._may_go(view)]
        if len(chosen) <= MANY:
            self._take(chosen)
            return
        title = self.tr("Move {0} tasks to the trash?").format(count(len(chosen)))
        verb = self.tr("Move to the trash")
        self._question(title, verb, chosen, lambda: self._take(chosen))

    def _may_go(self, view: TaskView | None) -> bool:
        return can_go(view) and self._ctx.scope.may_change(view)

    def undo(self) -> None:
        """Show the hidden tasks again, which are untouched."""
        self._over.stop()
        self.bar.setVisible(False)
        back, self._leaving = self._leaving, {}
        self._tell_undo()
        self._ctx.model.put_many(back.values())
        self._ctx.table.select_ids(back)

    def _take(self, views: Iterable[TaskView]) -> None:
        self._leaving |= {str(view.task_id): view for view in views}
        number = len(self._leaving)
        if not number:
            return
        self._ctx.table.move_on_after(self._leaving)
        self._ctx.model.drop_many(self._leaving)
        self._ctx.scope.refresh()
        words = (
            self.tr("1 task goes to the trash.")
            if number == 1
            else self.tr("{0} tasks go to the trash.").format(count(number))
        )
        self.bar.tell(words, "", (Choice(self.tr("Undo"), self.undo),), "accent")
        self._tell_undo()
        self._over.start()
        self.bar.count_down(self._over)

    def _tell_undo(self) -> None:
        number = len(self._leaving)
        words = (
            self.tr("&Undo moving 1 task to the trash")
            if number == 1
            else self.tr("&Undo moving {0} tasks to the trash").format(count(number))
        )
        self.undo_offered.emit(words if number else "")

    def _carry_out(self) -> None:
        self._over.stop()
        self.bar.setVisible(False)
        leaving, self._leaving = self._leaving, {}
        self._tell_undo()
        if leaving:
            self._discard(leaving, delete=False)

    def _discard(self, views: dict[str, TaskView], *, delete: bool) -> None:
        self._ctx.table.move_on_after(views)

        async def act(engine: Engine, one: str) -> str:
            await engine.commands.discard(one, delete=delete)
            return one

        def then(outcome: Outcome[str]) -> None:
            gone = [one for one in outcome.refused if one.error.code == NOT_FOUND]
            outcome.done += [one.task_id for one in gone]
            outcome.refused = [one for one in outcome.refused if one not in gone]
            back = [one.task_id for one in outcome.refused] + outcome.left
            if back:
                self._ctx.model.put_many(views[one] for one in back)
                self._ctx.scope.refresh()
            self._tell(outcome, views)

        said = self.tr("Letting go: {0} of {1} tasks")
        self._bulk.run(views, act, then, said)

    def _tell(self, outcome: Outcome[str], views: dict[str, TaskView]) -> None:
        without = [one for one in outcome.refused if one.error.code == NO_TRASH]
        if without:
            reason = retold(str(without[0].error.fields.get("reason", "")))
            why = self.tr("The trash does not take this: {0}.").format(reason)
            self._ask_for_good([views[one.task_id] for one in without], why)
        refused = [one for one in outcome.refused if one.error.code != NO_TRASH]
        if refused:
            number = len(refused)
            title = (
                self.tr("1 task could not be let go")
                if number == 1
                else self.tr("{0} tasks could not be let go").format(count(number))
            )
            self._reports.tell(title, refused, outcome)

    def _ask_for_good(self, views: Sequence[TaskView], why: str = "") -> None:
        chosen = [view for view in views if self._may_go(view)]
        if not chosen:
            return
        title = (
            self.tr("Delete 1 task permanently?")
            if len(chosen) == 1
            else self.tr("Delete {0} tasks permanently?").format(count(len(chosen)))
        )
        gone = {str(view.task_id): view for view in chosen}
        sentences = (why, self.tr("Their folders are removed. This cannot be undone."))
        verb = self.tr("Delete permanently")
        act = partial(self._discard, gone, delete=True)
        self._question(title, verb, chosen, act, *sentences, destroys=True)

    def _question(
        self,
        title: str,
        verb: str,
        views: Sequence[TaskView],
        act: Callable[[], object],
        *sentences: str,
        destroys: bool = False,
    ) -> None:
        parent = self._ctx.parent
        dialog = DeleteQuestion(title, verb, views, sentences, parent, destroys=destroys)
        dialog.open_for(go=act)

    def _keep_out_of_sight(self, batch: Batch) -> None:
        """Keep updates of hidden tasks for an Undo, and drop tasks removed meanwhile."""
        if not self._leaving or not batch.tells_of(self._leaving):
            return
        for one in batch.gone:
            self._leaving.pop(one, None)
        self._tell_undo()
        again = {str(one.task_id): one for one in batch.views if one.task_id in self._leaving}
        self._leaving |= again
        self._ctx.model.drop_many(again)
        self._ctx.scope.refresh()  # It has heard of them as tasks of the list

    def _offer_undo(self, words: str) -> None:
        self._ctx.services.wishes.undo.emit("delete", words, self.undo)

    async def _at_the_end(self, engine: Engine) -> None:
        """Delete the hidden tasks when the window closes during the undo period."""
        leaving, self._leaving = self._leaving, {}
        for one in leaving:
            try:
                await engine.commands.discard(one)
            except EngineError as error:
                self._bridge.failed.emit(error)

    def _show_ability(self) -> None:
        """Use the Del key for the trash only when the selection has nothing to cancel."""
        ctx = self._ctx
        chosen = map(ctx.model.view_of, ctx.scope.ids()[:MOST_LOOKED_AT])
        able = any(map(self._may_go, chosen)) or len(ctx.scope) > MOST_LOOKED_AT
        self._act.setEnabled(able)
        self._for_good.setEnabled(able)
        cancel = ctx.actions["cancel"]
        keys = [] if ctx.scope.counts.cancellable else cancel.shortcuts()
        self._act.setShortcuts(keys or [QKeySequence()])


class UndoAction(QObject):
    """Action that is enabled while an undo is offered, named after the latest."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._name = self.tr("&Undo")
        self._act = ctx.actions.add("undo", self._name, [QKeySequence.StandardKey.Undo])
        self._act.triggered.connect(self._undo)
        self._offers: dict[str, tuple[str, Callable[[], None]]] = {}
        ctx.services.wishes.undo.connect(self._hear)
        self._show()

    def _hear(self, what: str, words: str, undo: Callable[[], None]) -> None:
        """Add an undo offer, or remove it with empty `words`."""
        self._offers.pop(what, None)
        if words:
            self._offers[what] = (words, undo)  # Moved to the end, so that it is undone first
        self._show()

    def _undo(self) -> None:
        if self._offers:
            _, undo = next(reversed(self._offers.values()))
            undo()

    def _show(self) -> None:
        words = [words for words, _ in self._offers.values()]
        self._act.setEnabled(bool(words))
        self._act.setText(words[-1] if words else self._name)
