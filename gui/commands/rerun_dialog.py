"""What re-running a set of tasks would come to, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QCheckBox, QWidget

from engine.model.records import TaskId
from engine.service.rerun import Chance, Repeats
from engine.text.words import count
from gui.i18n.ledger_names import name_with_ledger
from gui.style.question import BUTTON, Question
from gui.style.task_list import TaskList

WIDTH = 620


class RerunDialog(Question):
    """A dry run in numbers and names; the default is to start nothing.

    `elsewhere` says where they start, if that is not where they stand. What two ledgers have
    starts once, unless `once` is taken back.
    """

    def __init__(self, found: Repeats, parent: QWidget | None = None, elsewhere: str = "") -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self._found = found
        number = len(found.ids)
        for line in self._lines():
            self.add_text(line)
        if elsewhere and number:
            self.add_text(elsewhere)
        self.list = TaskList((self.tr("Task"), self.tr("What happens")), self._rows(), self)
        self.list.setColumnWidth(0, WIDTH - 280)  # addresses differ at their ends
        self.body.addWidget(self.list)
        self.once = QCheckBox(self.tr("Start what is in two ledgers only once"), self)
        self.once.setChecked(True)
        self.once.setVisible(bool(found.of(Chance.COPY)))
        self.once.toggled.connect(self._show_number)
        self.body.addWidget(self.once)
        self._verb = self.add_button("rerun", "") if number else None
        leave = self.tr("Start nothing") if number else self.tr("Close")
        self.add_button("leave", leave, default=True)
        self._show_number()

    @property
    def ids(self) -> tuple[TaskId, ...]:
        """What would be started now."""
        return self._found.ids if self.once.isChecked() else self._found.with_copies

    def _show_number(self) -> None:
        number = len(self.ids)
        self.ask(self.tr("Re-run"), self._question(number))
        if self._verb is not None:
            verb = self.tr("Re-run 1 task") if number == 1 else self.tr("Re-run {0} tasks")
            self._verb.setText(verb.format(count(number)))
            self._verb.setMinimumSize(BUTTON.expandedTo(self._verb.sizeHint()))

    def _question(self, number: int) -> str:
        if number == 0:
            return self.tr("None of these tasks can be re-run as it was")
        if number == 1:
            return self.tr("Re-run 1 task?")
        return self.tr("Re-run {0} tasks?").format(count(number))

    def _lines(self) -> Iterator[str]:
        """How many come to what, with the reason of those that cannot."""
        for number, words in (*self._starting(), *self._unknown(), *self._skipped()):
            if number:
                yield words.format(count(number))
        if self._found.of(Chance.ASKS):
            yield self.tr("Re-run one that is not known whole alone, to give what is missing.")

    def _starting(self) -> Iterator[tuple[int, str]]:
        yield self._number(Chance.STARTS), self.tr("Will start, each as a new task: {0}")
        yield self._number(Chance.LED), self.tr("Will start, and wait for an agent: {0}")
        yield self._number(Chance.COPY), self.tr("The same tasks again, in another ledger: {0}")

    def _unknown(self) -> Iterator[tuple[int, str]]:
        words = {
            "request_hidden": self.tr("Not known whole, because secrets are not kept: {0}"),
            "variables_missing": self.tr(
                "Not known whole, because values of variables are not kept: {0}"
            ),
            "typed_text_missing": self.tr("Not known whole, because typed texts are not kept: {0}"),
            "request_cut": self.tr("Not known whole, because they had too many arguments: {0}"),
            "request_unknown": self.tr("Not known whole, because another program made them: {0}"),
        }
        yield from ((self._found.whys.get(why, 0), said) for why, said in words.items())

    def _skipped(self) -> Iterator[tuple[int, str]]:
        yield self._number(Chance.LIVE), self.tr("Skipped, because they have not ended: {0}")
        yield self._number(Chance.STRANGE), self.tr("Of a kind that cannot be started here: {0}")
        yield self._number(Chance.GOAL), self.tr("Task runs, which are no work of their own: {0}")
        yield self._number(Chance.LOST), self.tr("Skipped, because they cannot be read: {0}")

    def _number(self, chance: Chance) -> int:
        return len(self._found.of(chance))

    def _rows(self) -> list[tuple[str, str]]:
        words = {
            Chance.STARTS: self.tr("will start"),
            Chance.LED: self.tr("will start and wait for its agent"),
            Chance.COPY: self.tr("is the same task as one that starts"),
            Chance.ASKS: self.tr("is not known whole"),
            Chance.LIVE: self.tr("has not ended"),
            Chance.STRANGE: self.tr("cannot be started here"),
            Chance.GOAL: self.tr("is a task run"),
            Chance.LOST: self.tr("cannot be read"),
        }
        return [
            (name_with_ledger(view), word)
            for chance, word in words.items()
            for view in self._found.of(chance)
        ]
