"""The table of tasks: order by header clicks, selection by id, keys that find trouble.

A `QTableView`, not a `QTreeView`: after every insertion and every sort the tree asks the
model for the index and the flags of each row (1.0 s at 100,000 rows, measured), the table
for those in sight (0.03 s).
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import (
    QAbstractItemModel,
    QByteArray,
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QMenu,
    QTableView,
    QWidget,
)

from engine import words
from gui.columns import COLUMNS
from gui.row_delegate import RowDelegate, row_height
from gui.rows_model import runs
from gui.task_header import TaskHeader
from gui.task_model import TaskModel

LIVE_TICK_MS = 1000
HIDDEN_TICK_MS = 10_000
IDLE_TICK_MS = 60_000
_ROWS = QItemSelectionModel.SelectionFlag.Rows
_REPLACE = QItemSelectionModel.SelectionFlag.ClearAndSelect | _ROWS
_DRESSES = (QEvent.Type.PaletteChange, QEvent.Type.FontChange, QEvent.Type.StyleChange)
_TOP = QAbstractItemView.ScrollHint.EnsureVisible


class TaskTable(QTableView):
    """Shows a `TaskModel`. `menu_wanted` carries the menu to add actions to, before it opens."""

    selection_changed = Signal(list)
    activated_task = Signal(str)
    menu_wanted = Signal(QMenu)

    def __init__(self, parent: QWidget | None = None) -> None:
        self._painter: RowDelegate | None = None
        super().__init__(parent)
        self._kept: tuple[list[str], str, int] = ([], "", 0)
        self._quiet = False
        self.setAccessibleName(words.say("table.name"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setCornerButtonEnabled(False)
        self._header = TaskHeader(self)
        self.setHorizontalHeader(self._header)
        rows = self.verticalHeader()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(row_height(self.fontMetrics().height()))
        rows.hide()
        self.activated.connect(
            lambda index: self.activated_task.emit(self.tasks.id_at(index.row()))
        )
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._tick)

    @property
    def tasks(self) -> TaskModel:
        """The model; setting another kind of model is refused."""
        model = self.model()
        assert isinstance(model, TaskModel)
        return model

    def setModel(self, model: QAbstractItemModel | None) -> None:
        assert isinstance(model, TaskModel)
        super().setModel(model)
        self._painter = RowDelegate(model, self)
        self.setItemDelegate(self._painter)
        # The header would ask whether each column is selected, all rows through, at every
        # repaint (0.7 s with 10,000 rows selected): it gets a selection of its own.
        self.header().setSelectionModel(QItemSelectionModel(model, self.header()))
        model.look_through(self.rows_in_sight)
        model.ask_selected(self._selected_rows)
        model.modelAboutToBeReset.connect(self._keep_selection)
        model.modelReset.connect(self._restore_selection)
        model.counts_changed.connect(lambda _: self._pace_ticks())
        model.shown_changed.connect(lambda *_: self._pace_ticks())
        self.verticalScrollBar().valueChanged.connect(lambda _: self._pace_ticks())
        model.order_changed.connect(lambda: self._header.show_order(model.sort_keys))
        self._header.order_wanted.connect(model.set_sort)
        self.selectionModel().selectionChanged.connect(self._tell_selection)
        self._header.set_widths()
        self._header.show_order(model.sort_keys)

    # selection

    def selected_ids(self) -> list[str]:
        """The selected tasks from top to bottom."""
        spans = sorted(self._selected_spans())
        rows = dict.fromkeys(row for top, end in spans for row in range(top, end + 1))
        return [self.tasks.id_at(row) for row in rows]

    def _selected_spans(self) -> list[tuple[int, int]]:
        if self.model() is None:
            return []
        selection = self.selectionModel().selection()
        found = (selection.at(number) for number in range(selection.size()))
        return [(span.top(), span.bottom()) for span in found]

    def _selected_rows(self) -> int:
        return sum(end + 1 - top for top, end in self._selected_spans())

    def current_id(self) -> str:
        index = self.currentIndex()
        return self.tasks.id_at(index.row()) if index.isValid() else ""

    def select_ids(self, ids: Iterable[str]) -> None:
        """Select these tasks as far as they are shown, the first one current and in sight."""
        rows = self.tasks.rows_of(ids)
        self._select_rows(rows)
        if rows:
            self._make_current(rows[0])

    def _select_rows(self, rows: list[int]) -> None:
        selection = QItemSelection()
        last = len(COLUMNS) - 1
        for start, end in runs(rows):
            model = self.tasks
            selection.select(model.index(start, 0), model.index(end, last))
        self.selectionModel().select(selection, _REPLACE)

    def _make_current(self, row: int) -> None:
        index = self.tasks.index(row, max(0, self.currentIndex().column()))
        self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        self.scrollTo(index, _TOP)

    def _keep_selection(self) -> None:
        self._kept = (self.selected_ids(), self.current_id(), self.tasks.rowCount())

    def _restore_selection(self) -> None:
        ids, current, count = self._kept
        bar = self.verticalScrollBar()
        stood = bar.value() if self.tasks.rowCount() == count else None
        self._quiet = True
        self._select_rows(self.tasks.rows_of(ids))
        at = self.tasks.row_of(current)
        if at >= 0:
            self._make_current(at)
        if stood is not None:  # the same rows in a new order: what moved must not drag the view
            self.doItemsLayout()
            bar.setValue(stood)
        self._quiet = False
        now = self.selected_ids()
        if set(now) != set(ids):
            self.selection_changed.emit(now)
        self._pace_ticks()

    def _tell_selection(self) -> None:
        if not self._quiet:
            self.selection_changed.emit(self.selected_ids())

    # header

    def header(self) -> TaskHeader:
        return self._header

    def restore_header(self, state: QByteArray) -> bool:
        """Columns as they were; a state of another version changes nothing."""
        return self._header.restore(state)

    # keys and mouse

    def keyPressEvent(self, event: QKeyEvent) -> None:
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        plain = not event.modifiers() & ~Qt.KeyboardModifier.ShiftModifier
        if plain and event.key() in (Qt.Key.Key_J, Qt.Key.Key_K):
            self._step(1 if event.key() == Qt.Key.Key_J else -1)
        elif plain and event.key() == Qt.Key.Key_N:
            self.step_attention(-1 if shift else 1)
        elif plain and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.current_id():
            self.activated_task.emit(self.current_id())
        else:
            super().keyPressEvent(event)

    def keyboardSearch(self, search: str) -> None:
        """Letters are commands here; Ctrl+F searches."""

    def _step(self, by: int) -> None:
        count = self.tasks.rowCount()
        if count:
            at = self.currentIndex().row()
            # Qt makes the first row current when the focus comes; it is not yet a choice.
            chosen = at >= 0 and self.selectionModel().hasSelection()
            self._go(min(count - 1, max(0, at + by)) if chosen else max(0, at))

    def step_attention(self, by: int) -> bool:
        """Go to the next (-1: previous) task that needs attention, round the end; False if none."""
        model, count = self.tasks, self.tasks.rowCount()
        start = self.currentIndex().row()
        if start < 0 or not self.selectionModel().hasSelection():
            start = -1 if by > 0 else count
        for away in range(1, count + 1):
            at = (start + by * away) % count
            if model.row_at(at).needs:
                self._go(at)
                return True
        return False

    def _go(self, row: int) -> None:
        index = self.tasks.index(row, max(0, self.currentIndex().column()))
        self.selectionModel().setCurrentIndex(index, _REPLACE)
        self.scrollTo(index, _TOP)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        # A right click opens a menu, which takes the release: it would hold for ever.
        if event.button() == Qt.MouseButton.LeftButton:
            self.tasks.hold(True)
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        self.tasks.hold(False)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.tasks.hold(False)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.tasks.hold(False)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.menu_wanted.emit(menu)
        if menu.isEmpty():
            menu.deleteLater()
            return
        menu.popup(event.globalPos())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in _DRESSES and self._painter is not None:
            self._painter.dress()
            self.verticalHeader().setDefaultSectionSize(row_height(self.fontMetrics().height()))

    # time

    def rows_in_sight(self) -> tuple[int, int]:
        """The first and the last row that can be seen now; (0, -1) when none can."""
        if not self.isVisible():
            return 0, -1
        bottom = self.viewport().height() - 1
        first, last = self.rowAt(0), self.rowAt(bottom)
        return first, last if last >= 0 else self.tasks.rowCount() - 1

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._pace_ticks()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._pace_ticks()

    def _tick(self) -> None:
        self.tasks.tick()
        self._pace_ticks()

    def _pace_ticks(self) -> None:
        """Wake up only as often as something in sight grows older; never for an empty table."""
        every = 0
        if self.isVisible() and self.tasks.has_live_in_sight:
            every = LIVE_TICK_MS
        elif self.tasks.has_running:
            every = HIDDEN_TICK_MS
        elif self.isVisible() and self.tasks.rowCount():
            every = IDLE_TICK_MS
        if not every:
            self._timer.stop()
        elif not self._timer.isActive() or self._timer.interval() != every:
            self._timer.start(every)
