"""Table model of a task's spans: start, kind, text, duration and position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QObject, Qt
from PySide6.QtWidgets import QApplication

from engine.text.words import NONE, clock, took
from gui.details.timeline_picture import IDLE
from gui.details.timeline_spans import Span
from gui.style.tables import ALIGNMENT, COLOUR, DISPLAY, ROOT, SPOKEN, TOOL_TIP, AnyIndex
from gui.style.theme import plain_tip, tone

_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
BEGAN, WHAT, TEXT, TOOK, BAR = range(5)


def duration(ms: float) -> str:
    """Format `240 ms`, `1.3 s`, `2 min 05 s`; "" for 0."""
    return took(ms) if ms > 0 else ""


class TimelineModel(QAbstractTableModel):
    """Spans in the given order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._spans: list[Span] = []
        self._titles = (
            self.tr("Began"),
            self.tr("Kind"),
            self.tr("What happened"),
            self.tr("Took"),
            self.tr("When"),
        )

    def show_spans(self, spans: Sequence[Span]) -> None:
        """Show exactly these spans; spans after the known ones are appended without a reset.

        The first and the last known span are compared by identity.
        """
        known, rows = len(self._spans), list(spans)
        goes_on = 0 < known <= len(rows) and rows[known - 1] is self._spans[-1]
        if goes_on and rows[0] is self._spans[0]:
            if len(rows) > known:
                self.beginInsertRows(ROOT, known, len(rows) - 1)
                self._spans = rows
                self.endInsertRows()
            return
        self.beginResetModel()
        self._spans = rows
        self.endResetModel()

    def span_at(self, row: int) -> Span:
        return self._spans[row]

    def row_at(self, ts_ms: float) -> int:
        """Return the first row that ends at or after this time."""
        for row, span in enumerate(self._spans):
            if span.end >= ts_ms:
                return row
        return max(0, len(self._spans) - 1)

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._spans)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._titles)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        span, column = self._spans[index.row()], index.column()
        if role == DISPLAY:
            return self._text(span, column)
        if role == SPOKEN:
            return self._spoken(span)
        if role == TOOL_TIP:
            return plain_tip(span.text) if column == TEXT else None
        if role == ALIGNMENT:
            return _RIGHT if column == TOOK else None
        if role == COLOUR and (span.tone == IDLE or (column == WHAT and span.tone)):
            return tone("muted" if span.tone == IDLE else span.tone, QApplication.palette())
        return None

    def _text(self, span: Span, column: int) -> str:
        if column == BEGAN:
            return f"{clock(span.start, span.start)}.{int(span.start % 1000):03d}"
        if column == WHAT:
            return span.name
        if column == TEXT:
            return span.text
        if column == TOOK:
            said = duration(span.took_ms)
            return said if span.exact or not said else f"≤ {said}"
        return ""

    def _spoken(self, span: Span) -> str:
        parts = (span.name, span.text, self._text(span, TOOK) or NONE, self._text(span, BEGAN))
        return ", ".join(part for part in parts if part)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self._titles):
            return None
        if role == ALIGNMENT:
            return _RIGHT if section == TOOK else int(Qt.AlignmentFlag.AlignLeft)
        return self._titles[section] if role == DISPLAY else None
