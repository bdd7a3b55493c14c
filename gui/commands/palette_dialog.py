"""The palette: one field and what answers to it; arrows choose, Enter does, Esc leaves."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QKeyEvent, QPixmap, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QHeaderView,
    QLineEdit,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display, elide_right
from gui.commands.palette import Entry, TaskFinder, ranked
from gui.style.clearable import clearable
from gui.style.theme import plain_label, tone

WIDTH, HEIGHT = 620, 420
FROM_TOP = 70
MOST_CHARS = 90
ROW_PAD = 9
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class PaletteDialog(QDialog):
    """`chosen` tells the entry, after which the dialog is gone."""

    chosen = Signal(Entry)

    def __init__(
        self,
        entries: Sequence[Entry],
        recent: Sequence[str],
        finder: TaskFinder,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._entries, self._recent, self._finder = entries, recent, finder
        self._commands: list[Entry] = []
        self._shown: list[Entry] = []
        blank = QPixmap(16, 16)  # so that all names begin at one line
        blank.fill(Qt.GlobalColor.transparent)
        self._blank = QIcon(blank)
        self.setWindowTitle(self.tr("Command palette"))
        self.resize(WIDTH, HEIGHT)
        self._field = _field(self)
        self._nothing = plain_label(self.tr("Nothing answers to that."), self, tone="muted")
        self._items = QStandardItemModel(0, 2, self)
        self._list = _List(self)
        self._list.setModel(self._items)
        self._list.setAccessibleName(self.tr("Commands and tasks"))
        self._lay_out()
        self._field.installEventFilter(self)
        self._field.textChanged.connect(self._narrow)
        self._list.activated.connect(self._choose)
        self._list.clicked.connect(self._choose)
        finder.found.connect(self._show_tasks)
        self.finished.connect(lambda _: finder.stop())
        self.finished.connect(finder.deleteLater)
        self._narrow("")

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 10, 10, 10)
        column.setSpacing(8)
        column.addWidget(self._field)
        column.addWidget(self._nothing)
        column.addWidget(self._list, 1)
        head = self._list.header()
        head.setStretchLastSection(False)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        parent = self.parentWidget()
        if parent is not None:
            left = (parent.width() - self.width()) // 2
            self.move(parent.mapToGlobal(QPoint(max(0, left), FROM_TOP)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The field keeps the keyboard; what moves in a list moves in the list."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in _MOVES:
                QApplication.sendEvent(self._list, event)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._choose(self._list.currentIndex())
                return True
        return super().eventFilter(watched, event)

    def _narrow(self, typed: str) -> None:
        self._commands = ranked(self._entries, typed, self._recent)
        self._show(self._commands)
        self._finder.look_for(typed)

    def _show_tasks(self, tasks: list[Entry]) -> None:
        self._show([*self._commands, *tasks])

    def _show(self, entries: list[Entry]) -> None:
        at = self._list.currentIndex().row() if entries[: len(self._shown)] == self._shown else 0
        self._shown = entries
        self._items.removeRows(0, self._items.rowCount())  # their columns keep how they grow
        for entry in entries:
            self._items.appendRow(self._line(entry))
        self._list.setCurrentIndex(self._items.index(max(0, at), 0))
        self._nothing.setVisible(not entries)

    def _line(self, entry: Entry) -> list[QStandardItem]:
        name = QStandardItem(elide_right(display(entry.text), MOST_CHARS))
        name.setIcon(entry.icon or self._blank)
        name.setSizeHint(QSize(0, self.fontMetrics().height() + ROW_PAD))
        hint = QStandardItem(display(entry.hint))
        hint.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        hint.setForeground(tone("muted", self.palette()))
        for item in (name, hint):
            item.setEditable(False)
            item.setEnabled(entry.enabled)
        return [name, hint]

    def _choose(self, index: QModelIndex) -> None:
        if not index.isValid() or not self._shown[index.row()].enabled:
            return
        entry = self._shown[index.row()]
        self.accept()
        self.chosen.emit(entry)


def _field(dialog: QDialog) -> QLineEdit:
    field = QLineEdit(dialog)
    field.setPlaceholderText(dialog.tr("Type a command, or a task’s name, address or id"))
    field.setAccessibleName(dialog.tr("Command"))
    clearable(field)
    return field


class _List(QTreeView):
    """Rows without a tree; the keyboard stays with the field."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setHeaderHidden(True)
        self.setAllColumnsShowFocus(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
