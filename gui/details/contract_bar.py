"""What a task's contract asks for and how far that is: done, failed, skipped, missing."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QSizePolicy, QVBoxLayout, QWidget

from engine.contracts.contract_views import ContractView
from engine.model.display import display
from engine.text.catalogue import retold
from engine.text.words import clock, count
from gui.style.theme import TonedLabel, plain_label, tone

BAR_HEIGHT = 10
LEAST_WIDTH, MOST_WIDTH = 160, 560
_SAID_CHARS = 500
_SOLID, _HATCH, _DOTS = (
    Qt.BrushStyle.SolidPattern,
    Qt.BrushStyle.BDiagPattern,
    Qt.BrushStyle.Dense5Pattern,
)


class ContractPart(QWidget):
    """A bar with its counts in words, and what the contract's guard says; hidden without one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar = ContractBar(self)
        self.counts = plain_label("", self, wrap=True)
        self.guard = TonedLabel("", "muted", self)
        self.forced = TonedLabel("", "warning", self)
        for toned in (self.guard, self.forced):
            toned.setWordWrap(True)
        for label in (self.counts, self.guard, self.forced):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        for part in (self.bar, self.counts, self.guard, self.forced):
            column.addWidget(part)
        self.hide()

    def show_contract(self, view: ContractView | None, problem: str = "") -> None:
        """`problem` says why the contract of the task cannot be read."""
        self.setVisible(view is not None or bool(problem))
        self.bar.setVisible(view is not None)
        self.counts.setVisible(view is not None)
        self.forced.setVisible(view is not None and view.contract.forced is not None)
        if view is None:
            self.guard.show_tone("bad")
            self.guard.show_text(problem)
            return
        self.bar.show_counts(*self._numbers(view))
        self.counts.show_text(self._counts(view))
        self.bar.setAccessibleName(self.counts.text())
        guard = view.guard
        self.guard.show_tone("good" if guard.allowed else "warning")
        said = retold(guard.reason)
        if not guard.allowed:
            said = f"{said} {retold(guard.suggested_next_action)}"
        self.guard.show_text(display(said, _SAID_CHARS))
        if (forced := view.contract.forced) is not None:
            told = self.tr("⚑ Completed by force by {0} at {1}: {2}")
            by, why = display(forced.by, 80), display(forced.reason, _SAID_CHARS)
            self.forced.show_text(told.format(by, clock(forced.at), why))

    @staticmethod
    def _numbers(view: ContractView) -> tuple[int, int, int, int | None]:
        guard = view.guard
        seen = guard.completed_count + guard.failed_count + guard.skipped_count
        total = guard.expected_total
        missing = None if total is None else max(0, total - seen)
        return guard.completed_count, guard.failed_count, guard.skipped_count, missing

    def _counts(self, view: ContractView) -> str:
        done, failed, skipped, missing = self._numbers(view)
        parts = [self.tr("{0} done").format(count(done))]
        if failed:
            parts.append(self.tr("{0} failed").format(count(failed)))
        if skipped:
            parts.append(self.tr("{0} skipped").format(count(skipped)))
        if missing is None:
            parts.append(self.tr("total not known"))
        else:
            total = view.guard.expected_total or 0
            said = self.tr("{0} missing of {1}")
            parts.append(said.format(count(missing), count(total)))
        return " · ".join(parts)


class ContractBar(QWidget):
    """Done, failed, skipped and missing side by side; each has a pattern besides its colour."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[int, int, int, int | None] = (0, 0, 0, 0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(LEAST_WIDTH)
        self.setMaximumWidth(MOST_WIDTH)

    def sizeHint(self) -> QSize:
        return QSize(MOST_WIDTH, BAR_HEIGHT + 2)

    def show_counts(self, done: int, failed: int, skipped: int, missing: int | None) -> None:
        """`missing` is None while no total is known."""
        if (done, failed, skipped, missing) != self._parts:
            self._parts = (done, failed, skipped, missing)
            self.update()

    def paintEvent(self, _: QPaintEvent) -> None:
        painter, palette = QPainter(self), QApplication.palette()
        done, failed, skipped, missing = self._parts
        room = QRectF(0.5, 1, self.width() - 1, BAR_HEIGHT)
        painter.fillRect(room, tone("track", palette))
        whole = done + failed + skipped + (missing or 0)
        x = room.x()
        kinds = ((done, "good", _SOLID), (failed, "bad", _HATCH), (skipped, "muted", _DOTS))
        for number, name, pattern in kinds:
            # What there is of a kind is never painted as nothing.
            width = max(3.0, room.width() * number / whole) if number else 0.0
            part = QRectF(x, room.y(), min(width, room.right() - x), room.height())
            painter.fillRect(part, QBrush(tone(name, palette), pattern))
            x = part.right()
        painter.setPen(tone("muted", palette))
        painter.drawRect(room)
        painter.end()
