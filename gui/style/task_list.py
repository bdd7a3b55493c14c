"""List of affected tasks inside a question dialog."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QTreeWidget, QTreeWidgetItem, QWidget

from engine.model.display import display
from engine.text.words import count
from gui.style.theme import plain_tip

MOST = 100  # Most rows shown; "Copy all" includes the others
LINES = 7
NAME_CHARS, WORD_CHARS = 120, 300


class TaskList(QTreeWidget):
    """The first hundred of `rows` (task, text); `copy_all` copies every row."""

    def __init__(
        self, titles: Sequence[str], rows: Sequence[Sequence[str]], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._rows = rows
        self.setHeaderLabels(list(titles))
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setAlternatingRowColors(True)
        self.setTabKeyNavigation(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setAccessibleName(self.tr("Tasks that this is about"))
        height = self.fontMetrics().height() + 8
        for row in rows[:MOST]:
            self._add(_shown(row), height)
        if len(rows) > MOST:
            more = self.tr("…and {0} more").format(count(len(rows) - MOST))
            self._add([more], height)
        self.setColumnWidth(0, 230)
        self.setFixedHeight(height * (min(LINES, self.topLevelItemCount()) + 1) + 6)
        copy = QShortcut(QKeySequence.StandardKey.Copy, self)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self.copy_chosen)

    def _add(self, cells: list[str], height: int) -> None:
        item = QTreeWidgetItem(cells)
        item.setSizeHint(0, QSize(0, height))
        for column, cell in enumerate(cells):
            item.setToolTip(column, plain_tip(cell))
        self.addTopLevelItem(item)

    def copy_all(self) -> None:
        """Copy every row, hidden ones included, separated by tabs."""
        _copy(self._rows)

    def copy_chosen(self) -> None:
        """Copy the selected rows, or all without a selection."""
        places = [self.indexOfTopLevelItem(item) for item in self.selectedItems()]
        chosen = [self._rows[at] for at in sorted(places) if at < len(self._rows)]
        _copy(chosen or self._rows)


def _shown(row: Sequence[str]) -> list[str]:
    name, *words = row
    return [display(name, NAME_CHARS), *(display(word, WORD_CHARS) for word in words)]


def _copy(rows: Sequence[Sequence[str]]) -> None:
    lines = ("\t".join(display(cell, 2_000) for cell in row) for row in rows)
    QGuiApplication.clipboard().setText("\n".join(lines))
