"""What a task run waits for, and what a person has done about it."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QWidget

from engine.model.records import TaskRecord, TaskView
from engine.text.words import task_name, why
from gui.style.question import Question
from gui.style.theme import plain_label

WIDTH = 520
MOST_REASON = 500


class ResumeDialog(Question):
    """`reason` is what has changed; without one nothing can go on. To wait is the default."""

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
