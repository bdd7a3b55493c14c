"""What re-running a set of tasks would come to, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QWidget

from engine.again import Chance, Repeats
from engine.words import count, task_name
from gui.dialogs.question import Question
from gui.dialogs.task_list import TaskList

WIDTH = 620


class RerunDialog(Question):
    """A dry run in numbers and names; the default is to start nothing."""

    def __init__(self, found: Repeats, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self._found = found
        number = len(found.ids)
        self.ask(self.tr("Re-run"), self._question(number))
        for line in self._lines():
            self.add_text(line)
        self.list = TaskList((self.tr("Task"), self.tr("What happens")), self._rows(), self)
        self.body.addWidget(self.list)
        if number:
            verb = self.tr("Re-run 1 task") if number == 1 else self.tr("Re-run {0} tasks")
            self.add_button("rerun", verb.format(count(number)))
            self.add_button("leave", self.tr("Start nothing"), default=True)
        else:
            self.add_button("leave", self.tr("Close"), default=True)

    def _question(self, number: int) -> str:
        if number == 0:
            return self.tr("None of these tasks can be re-run as it was")
        if number == 1:
            return self.tr("Re-run 1 task?")
        return self.tr("Re-run {0} tasks?").format(count(number))

    def _lines(self) -> Iterator[str]:
        """How many come to what, with the reason of those that cannot."""
        found, whys = self._found, self._found.whys
        said = (
            (found.of(Chance.STARTS), self.tr("{0} will start, each as a new task.")),
            (found.of(Chance.LED), self.tr("{0} will start and wait for their agent.")),
            (whys.get("request_hidden", 0), self.tr("{0} had secrets, which are not kept.")),
            (whys.get("request_cut", 0), self.tr("{0} had more arguments than are kept.")),
            (whys.get("request_unknown", 0), self.tr("{0} were made by another program.")),
            (found.of(Chance.LIVE), self.tr("{0} have not ended: skipped.")),
            (found.of(Chance.STRANGE), self.tr("{0} are of a kind that cannot be started here.")),
            (found.of(Chance.GOAL), self.tr("{0} are task runs: others work for them.")),
            (found.of(Chance.LOST), self.tr("{0} cannot be read: skipped.")),
        )
        for some, words in said:
            number = some if isinstance(some, int) else len(some)
            if number:
                yield words.format(count(number))
        if found.of(Chance.ASKS):
            yield self.tr("Choose one of those alone to give what is missing, and start it.")

    def _rows(self) -> list[tuple[str, str]]:
        words = {
            Chance.STARTS: self.tr("will start"),
            Chance.LED: self.tr("will start and wait for its agent"),
            Chance.ASKS: self.tr("is not known whole"),
            Chance.LIVE: self.tr("has not ended"),
            Chance.STRANGE: self.tr("cannot be started here"),
            Chance.GOAL: self.tr("is a task run"),
            Chance.LOST: self.tr("cannot be read"),
        }
        return [
            (task_name(view), word)
            for chance, word in words.items()
            for view in self._found.of(chance)
        ]
