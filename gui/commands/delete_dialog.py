"""Asks before many tasks go to the trash, or any are deleted for good."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from engine.model.records import TaskView
from engine.text.words import status_word
from gui.i18n.ledger_names import name_with_ledger
from gui.style.question import Question
from gui.style.task_list import TaskList

WIDTH = 560


class LettingGo(Question):
    """`go` is the answer that does it; the default is to keep them."""

    def __init__(
        self,
        title: str,
        verb: str,
        views: Sequence[TaskView],
        sentences: Sequence[str] = (),
        parent: QWidget | None = None,
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
        self.add_button("go", verb)
        self.add_button("keep", self.tr("Keep"), default=True)
