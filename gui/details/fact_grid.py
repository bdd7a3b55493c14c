"""The facts of a task, a line each, and its arguments: everything can be marked and copied."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QGridLayout, QLabel, QPlainTextEdit, QWidget

from engine.text import words
from gui.details.budget_facts import Fact
from gui.details.facts import FIELDS
from gui.style.fonts import fixed_pitch
from gui.style.theme import PlainLabel, plain_label, tone

_ARGS_LINES = 12


class FactGrid(QWidget):
    """Names at the left, values at the right; what has none is not there."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(1, 1)
        self._lines = {field: self._line(row, field) for row, field in enumerate(FIELDS)}

    def show_facts(self, found: Iterable[Fact]) -> None:
        """Show exactly these."""
        facts = {fact.field: fact for fact in found}
        for field, (title, value) in self._lines.items():
            fact = facts.get(field)
            if fact is not None:
                value.show_fact(fact.text, fact.tone)
            title.setVisible(fact is not None)
            value.setVisible(fact is not None)

    def text_of(self, field: str) -> str:
        """What stands beside a field's name; empty when the field is not shown."""
        pair = self._lines.get(field)
        return pair[1].text() if pair is not None and pair[1].isVisibleTo(self) else ""

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
        can_be_marked(self)

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


class Arguments(QPlainTextEdit):
    """Read-only plain text in fixed pitch, as high as its lines up to a limit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        fixed_pitch(self)
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


def can_be_marked(label: QLabel) -> None:
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
