"""The Overview tab: why the task stands where it stands, and the facts around it."""

from __future__ import annotations

import time
from collections.abc import Iterable

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QFontDatabase, QHideEvent, QPalette, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QGridLayout,
    QLabel,
    QPlainTextEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from engine import words
from engine.pace import STALL_MIN_MS
from engine.records import TaskView, Unreadable
from engine.refused import Refusal, Refusals
from gui.details.budget_facts import Fact
from gui.details.facts import FIELDS, arguments_text, facts, refused_text
from gui.theme import PlainLabel, plain_label, tone

AGE_MS = 1000
_ARGS_LINES = 12


class Overview(QScrollArea):
    """A sheet of facts; everything on it can be marked and copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view: TaskView | None = None
        self._stall_after_ms: float = STALL_MIN_MS
        self._refused = Refusals()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        sheet = QWidget(self)
        self._why = plain_label("", sheet, wrap=True)
        _can_be_marked(self._why)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(1, 1)
        self._lines = {field: self._line(row, field) for row, field in enumerate(FIELDS)}
        self._args_title = plain_label(words.say("field.args"), sheet, tone="muted")
        self._args = _Code(sheet)
        self._args_title.setBuddy(self._args)
        self._lay_out(sheet)
        self._aging = QTimer(self)
        self._aging.setInterval(AGE_MS)
        self._aging.timeout.connect(self._fill)

    def _lay_out(self, sheet: QWidget) -> None:
        column = QVBoxLayout(sheet)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(8)
        column.addWidget(self._why)
        column.addLayout(self._grid)
        column.addWidget(self._args_title)
        column.addWidget(self._args)
        column.addStretch(1)
        self.setWidget(sheet)

    def show_view(self, view: TaskView, stall_after_ms: float = STALL_MIN_MS) -> None:
        """Show this task's facts as they are now."""
        self._view, self._stall_after_ms = view, stall_after_ms
        entry = view.entry
        text = "" if isinstance(entry, Unreadable) else arguments_text(entry.args_summary)
        self._args_title.setVisible(bool(text))
        self._args.setVisible(bool(text))
        self._args.show_text(text)
        self._fill()
        self._pace()

    def start_over(self) -> None:
        """Forget what was refused: another task is shown from now on."""
        self._refused = Refusals()

    def add_refused(self, found: Iterable[Refusal]) -> None:
        """The browser of this task was refused these as well."""
        known = len(self._refused)
        self._refused.add(found)
        if len(self._refused) != known or known:
            self._fill()

    def text_of(self, field: str) -> str:
        """What stands beside a field's name; empty when the field is not shown."""
        pair = self._lines.get(field)
        return pair[1].text() if pair is not None and pair[1].isVisibleTo(self) else ""

    @property
    def sentence(self) -> str:
        """The sentence on top: why now."""
        return self._why.text()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fill()
        self._pace()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._pace()

    def _pace(self) -> None:
        """Ages go on only while a task that is still to end is looked at."""
        entry = self._view.entry if self._view is not None else None
        live = entry is not None and not isinstance(entry, Unreadable) and entry.is_live
        if live and self.isVisible():
            self._aging.start()
        else:
            self._aging.stop()

    def _fill(self) -> None:
        if self._view is None:
            return
        now_ms = time.time() * 1000
        sentence, found = facts(self._view, now_ms, self._stall_after_ms)
        if self._why.text() != sentence:
            self._why.show_text(sentence)
        for title, value in self._lines.values():
            title.hide()
            value.hide()
        if refused := refused_text(self._refused):
            found.append(Fact("refused", refused, "warning"))
        for fact in found:
            title, value = self._lines[fact.field]
            value.show_fact(fact.text, fact.tone)
            title.show()
            value.show()

    def _line(self, row: int, field: str) -> tuple[PlainLabel, _Value]:
        title, value = plain_label(words.say(f"field.{field}"), tone="muted"), _Value()
        value.setAccessibleName(words.say(f"field.{field}"))
        self._grid.addWidget(title, row, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(value, row, 1)
        return title, value


class _Value(PlainLabel):
    """A text beside a field's name, in a tone where it needs one."""

    def __init__(self) -> None:
        super().__init__()
        self._tone = ""
        self.setWordWrap(True)
        _can_be_marked(self)

    def show_fact(self, text: str, tone_name: str) -> None:
        if self.text() != text:
            self.show_text(text)
        if self._tone != tone_name:
            self._tone = tone_name
            self._colour()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ApplicationPaletteChange:
            self._colour()

    def _colour(self) -> None:
        palette = QApplication.palette()
        if self._tone:
            palette.setColor(QPalette.ColorRole.WindowText, tone(self._tone, palette))
        self.setPalette(palette)


class _Code(QPlainTextEdit):
    """Read-only plain text in fixed pitch, as high as its lines up to a limit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.setTabChangesFocus(True)
        self.setAccessibleName(words.say("field.args"))

    def show_text(self, text: str) -> None:
        if self.toPlainText() == text:
            return
        self.setPlainText(text)
        lines = min(_ARGS_LINES, text.count("\n") + 1)
        margins = 2 * (int(self.document().documentMargin()) + self.frameWidth())
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + margins + 2)


def _can_be_marked(label: QLabel) -> None:
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
