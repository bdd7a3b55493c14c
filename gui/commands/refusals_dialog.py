"""What could not be done to which tasks, and why: to read and to copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QWidget

from engine.model.ledger_ids import plain_id
from engine.model.records import TaskView
from gui.commands.bulk_work import Refusal
from gui.i18n import language
from gui.i18n.ledger_names import name_with_ledger
from gui.style.question import Question
from gui.style.task_list import TaskList

WIDTH = 680


class Refusals(Question):
    """One line for each refusal, with its id, so that a report of it can be pasted anywhere."""

    def __init__(
        self,
        headline: str,
        refused: Sequence[Refusal],
        view_of: Callable[[str], TaskView | None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self.ask(headline, headline)
        rows = [_row(one, view_of(one.task_id)) for one in refused]
        titles = (self.tr("Task"), self.tr("Why not"), self.tr("Id"))
        self.list = TaskList(titles, rows, self)
        self.list.setColumnWidth(0, 170)
        self.list.setColumnWidth(1, 320)
        self.body.addWidget(self.list)
        copy = self.add_button("copy", self.tr("Copy all"))
        copy.clicked.disconnect()  # the list stays open
        copy.clicked.connect(self.list.copy_all)
        self.add_button("close", self.tr("Close"), default=True)


def _row(one: Refusal, view: TaskView | None) -> tuple[str, str, str]:
    name = name_with_ledger(view) if view is not None else plain_id(one.task_id)
    return name, language.told(one.error), plain_id(one.task_id)
