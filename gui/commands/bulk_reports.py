"""Results of bulk actions: a banner below the list, and a list of failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QWidget

from engine.model.errors import EngineError
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskView
from engine.text.words import count
from gui.commands.bulk_work import Outcome, Refusal
from gui.context.window_context import WindowContext
from gui.i18n import language
from gui.i18n.ledger_names import name_with_ledger
from gui.style.banners import Banner, Choice
from gui.style.question import Question, TaskList

# List of tasks that failed, with reasons and ids.

WIDTH = 680


class Refusals(Question):
    """Dialog with one line for each failure, for reading and copying."""

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
        copy.clicked.disconnect()  # Copying leaves the dialog open
        copy.clicked.connect(self.list.copy_all)
        self.add_button("close", self.tr("Close"), default=True)


def _row(one: Refusal, view: TaskView | None) -> tuple[str, str, str]:
    name = name_with_ledger(view) if view is not None else plain_id(one.task_id)
    return name, language.told(one.error), plain_id(one.task_id)


NEWS_MS = 8000
MOST_LISTED = 3


class Reports(QObject):
    """Show results of bulk actions: successes expire, failures stay until closed.

    While `bar` shows a failure, successes appear in `aside` below it.
    """

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self.bar, self.aside = Banner(ctx.parent), Banner(ctx.parent)
        self._refused = False
        self.bar.closed.connect(self._close)
        self._over = QTimer(self, singleShot=True, interval=NEWS_MS)
        self._over.timeout.connect(self._end_news)

    def say(self, words: str) -> None:
        """Show a success message that expires."""
        bar = self.aside if self._refused else self.bar
        bar.tell(words, "", tone_name="good")
        self._over.start()

    def tell(
        self, title: str, refused: Sequence[Refusal], outcome: Outcome[Any] | None = None
    ) -> None:
        """Show failures: `title` has their number, then the tally of `outcome` and common reasons.

        A button opens the list of all failures.
        """
        if not self._refused:
            self._over.stop()  # Stop the expiry of a success message
        self._refused = True
        lines = self._reasons(refused)
        if outcome is not None and (outcome.done or outcome.left):
            lines.insert(0, self._tally(len(outcome.done), len(refused), len(outcome.left)))
        show = Choice(self.tr("Show which…"), lambda: self._show(title, refused))
        self.bar.tell(title, "\n".join(lines), (show,), "bad")

    def _tally(self, done: int, refused: int, left: int) -> str:
        if not left:
            return self.tr("{0} done, {1} refused:").format(count(done), count(refused))
        text = self.tr("{0} done, {1} refused, {2} not tried:")
        return text.format(count(done), count(refused), count(left))

    def _reasons(self, refused: Sequence[Refusal]) -> list[str]:
        """Return reasons with their number of tasks, the most common first."""
        alike: dict[str, list[EngineError]] = {}
        for one in refused:
            alike.setdefault(one.error.code, []).append(one.error)
        groups = sorted(alike.values(), key=len, reverse=True)
        if len(refused) == 1:
            return [_reason(groups[0])]
        lines = [self._counted(len(group), _reason(group)) for group in groups[:MOST_LISTED]]
        if more := len(groups) - len(lines):
            lines.append(
                self.tr("…and 1 more reason.")
                if more == 1
                else self.tr("…and {0} more reasons.").format(count(more))
            )
        return lines

    def _counted(self, number: int, reason: str) -> str:
        if number == 1:
            return self.tr("1 task: {0}").format(reason)
        return self.tr("{0} tasks: {1}").format(count(number), reason)

    def _end_news(self) -> None:
        self.aside.hide()
        if not self._refused:
            self.bar.hide()

    def _close(self) -> None:
        self._refused = False

    def _show(self, title: str, refused: Sequence[Refusal]) -> None:
        dialog = Refusals(title, refused, self._ctx.model.view_of, self._ctx.parent)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()


def _reason(alike: Sequence[EngineError]) -> str:
    """Return the common sentence of failures with one code, otherwise their title."""
    sentences = {language.sentence(one) for one in alike}
    return sentences.pop() if len(sentences) == 1 else language.title(alike[0])
