"""Selected tasks as text for the clipboard."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtGui import QGuiApplication

from engine.display import clipboard_cell
from gui.columns import COLUMNS
from gui.rows import Row
from gui.scope import Scope
from gui.task_model import TaskModel


def copy_ids(scope: Scope) -> None:
    """Put the ids of the tasks that are meant on the clipboard, one a line."""
    QGuiApplication.clipboard().setText("\n".join(scope.ids()))


def copy_rows(scope: Scope, model: TaskModel) -> None:
    """Put the rows of the tasks that are meant on the clipboard, as a table."""
    rows = [model.row_at(number) for number in model.rows_of(scope.ids())]
    QGuiApplication.clipboard().setText(rows_text(rows, model.now_ms()))


def rows_text(rows: Iterable[Row], now_ms: float) -> str:
    """A table for a spreadsheet: tab-separated, the columns' titles first.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front, and no
    sign in it breaks a line or speaks to a terminal: addresses and titles come from strangers.
    """
    lines = ["\t".join(column.long_title for column in COLUMNS)]
    lines += [
        "\t".join(clipboard_cell(column.text(row, now_ms)) for column in COLUMNS) for row in rows
    ]
    return "\n".join(lines)
