"""Table model of the commands of a task, with their problems."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QApplication

from engine.model.display import display
from gui.style.theme import plain_tip, tone

Index = QModelIndex | QPersistentModelIndex
NUMBER, TOOL, INTENTION, ARGS = range(4)
CELL_CHARS: Final = 200
NO_PARENT: Final = QModelIndex()


def tool_of(command: Any) -> tuple[str, str]:
    """Return tool and action of a command, empty where missing."""
    if not isinstance(command, Mapping):
        return "", ""
    args = command.get("args")
    action = args.get("action") if isinstance(args, Mapping) else ""
    return str(command.get("tool_name") or ""), str(action or "")


class CommandRows(QAbstractTableModel):
    """Commands in their given form; unedited parts stay unchanged."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.commands: list[Any] = []
        self._mistakes: dict[int, str] = {}

    def show(self, commands: Sequence[Any]) -> None:
        """Replace all commands."""
        self.beginResetModel()
        self.commands = list(commands)
        self._mistakes = {}
        self.endResetModel()

    def insert(self, at: int, command: Mapping[str, Any]) -> None:
        self.beginInsertRows(NO_PARENT, at, at)
        self.commands.insert(at, dict(command))
        self.endInsertRows()

    def remove(self, at: int) -> None:
        self.beginRemoveRows(NO_PARENT, at, at)
        del self.commands[at]
        self.endRemoveRows()

    def move(self, at: int, by: int) -> int:
        """Move a command by one row and return its new row."""
        to = at + by
        if not (0 <= at < len(self.commands) and 0 <= to < len(self.commands)):
            return at
        self.beginMoveRows(NO_PARENT, at, at, NO_PARENT, to + (1 if by > 0 else 0))
        self.commands.insert(to, self.commands.pop(at))
        self.endMoveRows()
        self._repaint(min(at, to), max(at, to))  # Repaint the row numbers
        return to

    def replace(self, at: int, command: Mapping[str, Any]) -> None:
        self.commands[at] = dict(command)
        self._repaint(at, at)

    def show_mistakes(self, mistakes: Mapping[int, str]) -> None:
        """Show problems by row."""
        if mistakes == self._mistakes:
            return
        self._mistakes = dict(mistakes)
        if self.commands:
            self._repaint(0, len(self.commands) - 1)

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.commands)

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else 4

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if role != Qt.ItemDataRole.DisplayRole or orientation != Qt.Orientation.Horizontal:
            return None
        titles = ("#", self.tr("Tool"), self.tr("Intention"), self.tr("Arguments"))
        return titles[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = index.row()
        mistake = self._mistakes.get(row, "")
        if role == Qt.ItemDataRole.DisplayRole:
            return self._cell(row, index.column(), mistake)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(mistake or self._cell(row, index.column(), ""))
        if role == Qt.ItemDataRole.ForegroundRole and mistake and index.column() == NUMBER:
            return tone("bad", QApplication.palette())
        if role == Qt.ItemDataRole.AccessibleTextRole:
            said = " ".join(self._cell(row, column, "") for column in (TOOL, INTENTION))
            return f"{row + 1}. {said}. {mistake}".strip()
        return None

    def _cell(self, row: int, column: int, mistake: str) -> str:
        command = self.commands[row]
        if column == NUMBER:
            return f"{row + 1} ⚠" if mistake else str(row + 1)
        if column == TOOL:
            return display(" ".join(filter(None, tool_of(command))), CELL_CHARS)
        if not isinstance(command, Mapping):
            return ""
        if column == INTENTION:
            return display(str(command.get("intention") or ""), CELL_CHARS)
        args = command.get("args")
        said = (
            {key: value for key, value in args.items() if key != "action"}
            if isinstance(args, Mapping)
            else {}
        )
        return display(", ".join(f"{key} {_short(value)}" for key, value in said.items()), 200)

    def _repaint(self, first: int, last: int) -> None:
        self.dataChanged.emit(self.index(first, 0), self.index(last, ARGS))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
