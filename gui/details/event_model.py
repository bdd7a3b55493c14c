"""Events as a table that only grows; a switch for each kind hides it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QApplication

from engine import words
from engine.records import TaskEvent
from gui.details.event_rows import EventRow, event_row
from gui.theme import plain_tip, tone

AnyIndex = QModelIndex | QPersistentModelIndex

_ROOT = QModelIndex()
_DISPLAY = int(Qt.ItemDataRole.DisplayRole)
_TOOL_TIP = int(Qt.ItemDataRole.ToolTipRole)
_COLOUR = int(Qt.ItemDataRole.ForegroundRole)
_SPOKEN = int(Qt.ItemDataRole.AccessibleTextRole)
_ALIGNMENT = int(Qt.ItemDataRole.TextAlignmentRole)
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
TITLES = ("time", "kind", "text")


class EventModel(QAbstractTableModel):
    """`add` appends; nothing is ever moved."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[EventRow] = []
        self._shown: list[EventRow] = []
        self._hidden: frozenset[str] = frozenset()
        self.kinds: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """All events, shown or not."""
        return len(self._rows)

    def add(self, events: Iterable[TaskEvent]) -> None:
        new = [event_row(event) for event in events]
        if not new:
            return
        self._rows += new
        self.kinds.update(row.kind for row in new)
        shown = [row for row in new if row.kind not in self._hidden]
        if shown:
            first = len(self._shown)
            self.beginInsertRows(_ROOT, first, first + len(shown) - 1)
            self._shown += shown
            self.endInsertRows()

    def clear(self) -> None:
        self.beginResetModel()
        self._rows, self._shown, self._hidden = [], [], frozenset()
        self.kinds = Counter()
        self.endResetModel()

    def hide_kinds(self, hidden: frozenset[str]) -> None:
        self.beginResetModel()
        self._hidden = hidden
        self._shown = [row for row in self._rows if row.kind not in hidden]
        self.endResetModel()

    def row_at(self, row: int) -> EventRow:
        return self._shown[row]

    def rowCount(self, parent: AnyIndex = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: AnyIndex = _ROOT) -> int:
        return 0 if parent.isValid() else len(TITLES)

    def data(self, index: AnyIndex, role: int = _DISPLAY) -> Any:
        if not index.isValid():
            return None
        row, column = self._shown[index.row()], index.column()
        text = (row.at, row.name, row.text)[column]
        if role == _DISPLAY:
            return text
        if role == _TOOL_TIP:
            return plain_tip(text) if column == 2 else None
        if role == _SPOKEN:
            return f"{row.at}, {row.name}. {row.text}"
        if role == _COLOUR and column == 1 and row.tone:
            return tone(row.tone, QApplication.palette())
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(TITLES):
            return None
        if role == _DISPLAY:
            return words.say(f"events.{TITLES[section]}")
        return _LEFT if role == _ALIGNMENT else None
