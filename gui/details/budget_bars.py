"""A task's budgets as thin bars, each with its name, its numbers, and a word for how it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QGridLayout, QWidget

from engine.budgets import Level
from engine.text import words
from gui.details.budget_facts import GaugeLine
from gui.style.theme import PlainLabel, TonedLabel, plain_label, tone
from gui.tasks.cell_painting import paint_bar

BAR_WIDTH = 140
SIGNS: dict[Level, str] = {"ok": "✓", "warning": "▲", "exceeded": "✖"}
TONES: dict[Level, str] = {"ok": "good", "warning": "warning", "exceeded": "bad"}


class BudgetBars(QWidget):
    """One line for each budget that is set; hidden where none is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines: list[_Line] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(4, 1)
        self.hide()

    def show_lines(self, lines: Sequence[GaugeLine]) -> None:
        """Show exactly these, in their order."""
        while len(self._lines) < len(lines):
            self._lines.append(self._add(len(self._lines)))
        for number, shown in enumerate(self._lines):
            shown.show_line(lines[number] if number < len(lines) else None)
        self.setVisible(bool(lines))

    def spoken(self) -> list[str]:
        """Each line as a sentence."""
        return [line.bar.accessibleName() for line in self._lines if line.bar.isVisibleTo(self)]

    def _add(self, row: int) -> _Line:
        line = _Line(
            plain_label("", self, tone="muted"),
            BudgetBar(self),
            plain_label("", self),
            TonedLabel("", "muted", self),
        )
        for column, part in enumerate((line.name, line.bar, line.used, line.state)):
            self._grid.addWidget(part, row, column, Qt.AlignmentFlag.AlignVCenter)
        return line


@dataclass(frozen=True, slots=True)
class _Line:
    name: PlainLabel
    bar: BudgetBar
    used: PlainLabel
    state: TonedLabel

    def show_line(self, given: GaugeLine | None) -> None:
        for part in (self.name, self.bar, self.used, self.state):
            part.setVisible(given is not None)
        if given is None:
            return
        word = words.say(f"budget.level.{given.level}")
        for label, text in ((self.name, given.name), (self.used, given.used)):
            if label.text() != text:
                label.show_text(text)
        self.state.show_text(f"{SIGNS[given.level]} {word}")
        self.state.show_tone(TONES[given.level])
        self.bar.show_fraction(given.fraction, TONES[given.level])
        self.bar.setAccessibleName(f"{given.name}: {given.used}, {word}")


class BudgetBar(QWidget):
    """How much of a budget is used; beyond its limit it is framed as well."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fraction, self._tone = 0.0, "good"
        self.setFixedSize(self.sizeHint())

    def sizeHint(self) -> QSize:
        return QSize(BAR_WIDTH, self.fontMetrics().height())

    def show_fraction(self, fraction: float, tone_name: str) -> None:
        """`fraction` is 1 at the limit."""
        if (fraction, tone_name) != (self._fraction, self._tone):
            self._fraction, self._tone = fraction, tone_name
            self.update()

    def paintEvent(self, _: QPaintEvent) -> None:
        painter, palette = QPainter(self), QApplication.palette()
        room = QRectF(self.rect()).adjusted(0.5, 0, -0.5, 0)
        fill = tone(self._tone, palette)
        paint_bar(painter, room, min(1.0, self._fraction), fill, tone("track", palette))
        if self._fraction > 1:
            painter.setPen(fill)
            painter.drawRect(QRectF(room.x(), room.center().y() - 5, room.width() - 1, 10))
        painter.end()
