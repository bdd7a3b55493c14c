"""What cancelling a selection would do, counted honestly, and the dialog that asks first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtWidgets import QLineEdit, QWidget

from engine.model.records import TaskId, TaskView
from engine.model.status import Standing, standing
from engine.service.stop_many import REACHED, Fate, fate, plan
from engine.text.words import count, status_word, unit_word
from gui.i18n.ledger_names import name_with_ledger
from gui.style.question import Question
from gui.style.task_list import TaskList
from gui.style.theme import plain_label

MAX_REASON = 500
LIST_WIDTH = 560


@dataclass(frozen=True, slots=True)
class Plan:
    """A selection sorted by what a cancel request does to each task."""

    pending: tuple[TaskView, ...] = ()
    running: tuple[TaskView, ...] = ()
    foreign: tuple[TaskView, ...] = ()
    at_once: tuple[TaskView, ...] = ()
    asked: int = 0
    ended: int = 0
    orphaned: int = 0
    unreadable: int = 0
    unknown: int = 0

    @property
    def views(self) -> tuple[TaskView, ...]:
        return (*self.pending, *self.running, *self.foreign, *self.at_once)

    @property
    def ids(self) -> tuple[TaskId, ...]:
        """The tasks that a request goes to."""
        return tuple(view.task_id for view in self.views)

    @property
    def needs_a_question(self) -> bool:
        """One that has not begun is cancelled at once and can be undone; all else is asked."""
        return bool(self.running or self.foreign or self.at_once) or len(self.pending) > 1


def plan_cancel(views: Iterable[TaskView]) -> Plan:
    """Sort `views`; nobody can stop what is `orphaned`, or `unreadable`."""
    found = plan(views)
    lost = [standing(view) for view in found.of(Fate.LOST)]
    return Plan(
        pending=found.of(Fate.PENDING),
        running=found.of(Fate.RUNNING),
        foreign=found.of(Fate.FOREIGN),
        at_once=found.of(Fate.AT_ONCE),
        asked=len(found.of(Fate.ASKED)),
        ended=len(found.of(Fate.ENDED)),
        orphaned=lost.count(Standing.ORPHANED),
        unreadable=lost.count(Standing.UNREADABLE),
        unknown=len(found.of(Fate.UNKNOWN)),
    )


def can_be_cancelled(view: TaskView | None) -> bool:
    """Would a cancel request change anything for this task?"""
    return view is not None and fate(view) in REACHED


class CancelDialog(Question):
    """Asks before running work is stopped; the default is to keep it running.

    `for_good` of those that wait could not be started again: their request is not known whole.
    """

    def __init__(
        self, plan: Plan, parent: QWidget | None = None, *, for_good: int = 0, whom: str = ""
    ) -> None:
        super().__init__(parent)
        self._plan, self._for_good = plan, for_good
        self.ask(self.tr("Cancel"), self._question())
        if whom:
            self.add_text(whom, tone="muted")
        for line in self._lines():
            self.add_text(line)
        if plan.asked + plan.ended + plan.orphaned + plan.unreadable + plan.unknown:
            self.add_text(self._skipped(), tone="muted")
        if len(plan.ids) > 1:
            self._add_list()
        self._reason = QLineEdit(self)
        self._reason.setMaxLength(MAX_REASON)
        self._reason.setPlaceholderText(self.tr("optional, kept with the task"))
        name = plain_label(self.tr("Reason"))
        name.setBuddy(self._reason)
        self.body.addSpacing(4)
        self.body.addWidget(name)
        self.body.addWidget(self._reason)
        self.add_button("cancel", self._verb())
        self.add_button("keep", self.tr("Keep running"), default=True)

    def _add_list(self) -> None:
        """Which ones: a number alone would have to be believed."""
        self.setMinimumWidth(LIST_WIDTH)
        rows = [(name_with_ledger(view), status_word(view)) for view in self._plan.views]
        self.list = TaskList((self.tr("Task"), self.tr("Status")), rows, self)
        self.list.setColumnWidth(0, LIST_WIDTH - 170)
        self.body.addWidget(self.list)

    @property
    def reason(self) -> str | None:
        return self._reason.text().strip() or None

    def _question(self) -> str:
        ids = self._plan.ids
        if len(ids) == 1:
            return self.tr("Cancel “{0}”?").format(name_with_ledger(self._plan.views[0]))
        return self.tr("Cancel {0} tasks?").format(count(len(ids)))

    def _verb(self) -> str:
        number = len(self._plan.ids)
        if number == 1:
            return self.tr("Cancel task")
        return self.tr("Cancel {0} tasks").format(count(number))

    def _lines(self) -> list[str]:
        plan = self._plan
        if len(plan.running) == 1:
            running = self.tr("1 running: it stops within 2 seconds; its finished {1} are kept.")
        else:
            running = self.tr("{0} running: they stop within 2 seconds; finished {1} are kept.")
        pending = self.tr("{0} waiting: removed from the queue.")
        foreign = self.tr(
            "{0} owned by another process: the request is written, that process must act."
        )
        at_once = self.tr("{0} driven from outside: cancelled at once, whoever drives it.")
        pairs = (
            (running, plan.running),
            (pending, plan.pending),
            (foreign, plan.foreign),
            (at_once, plan.at_once),
        )
        found = [said.format(count(len(views)), _units(views)) for said, views in pairs if views]
        return [*found, *self._lost()]

    def _lost(self) -> list[str]:
        if not self._for_good:
            return []
        if self._for_good == len(self._plan.ids) == 1:
            return [self.tr("This cannot be undone: what it was asked is not kept whole.")]
        said = self.tr(
            "{0} of them cannot be brought back: what they were asked is not kept whole."
        )
        return [said.format(count(self._for_good))]

    def _skipped(self) -> str:
        plan, parts = self._plan, []
        if plan.ended:
            parts.append(self.tr("{0} already finished").format(count(plan.ended)))
        if plan.asked:
            parts.append(self.tr("{0} already asked to stop").format(count(plan.asked)))
        if plan.orphaned:
            parts.append(self.tr("{0} without a living owner").format(count(plan.orphaned)))
        if plan.unreadable:
            parts.append(self.tr("{0} that cannot be read").format(count(plan.unreadable)))
        if plan.unknown:
            parts.append(
                self.tr("{0} in a state that is not known here").format(count(plan.unknown))
            )
        return self.tr("Skipped: {0}.").format(", ".join(parts))


def _units(views: Iterable[TaskView]) -> str:
    """What these tasks finish one by one: pages, actions; of several kinds: steps."""
    kinds = {getattr(view.entry, "kind", "") for view in views}
    return unit_word(kinds.pop() if len(kinds) == 1 else "", 2)
