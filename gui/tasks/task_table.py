"""The task table: sorting by header, selection by id, keys for tasks that need attention.

It is a `QTableView`, not a `QTreeView`: after every insertion and sort a tree requests index and
flags of each row (1.0 s at 100,000 rows, measured), a table only of visible rows (0.03 s).
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from PySide6.QtCore import (
    QAbstractItemModel,
    QByteArray,
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPoint,
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
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QMenu, QTableView, QWidget

from engine.text import words
from gui.style.menu import Menu
from gui.style.tables import AnyIndex, row_height
from gui.tasks.cell_painting import RowDelegate
from gui.tasks.columns import COLUMNS
from gui.tasks.task_header import TaskHeader
from gui.tasks.task_model import TaskModel, runs

_ROWS = QItemSelectionModel.SelectionFlag.Rows
_REPLACE = QItemSelectionModel.SelectionFlag.ClearAndSelect | _ROWS
_DRESSES = (QEvent.Type.PaletteChange, QEvent.Type.FontChange, QEvent.Type.StyleChange)
_MOVES = frozenset(
    {Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Home, Qt.Key.Key_End}
    | {Qt.Key.Key_PageUp, Qt.Key.Key_PageDown}
)
_LINES = (Qt.Key.Key_Up, Qt.Key.Key_Down)
_SIDEWAYS = (Qt.Key.Key_Left, Qt.Key.Key_Right)
_ENDS = (QAbstractItemView.CursorAction.MoveHome, QAbstractItemView.CursorAction.MoveEnd)
_TOP = QAbstractItemView.ScrollHint.EnsureVisible


_FOLLOWERS = 50  # Rows around the leaving ones that may be selected in their place


class RowChoice(QTableView):
    """Table view that selects by task id, because positions change.

    `all_chosen` means that every row that matches the filter is selected. All rows are painted as
    selected then, but Qt holds no selection, because it would track each of 100,000 moving indexes.
    """

    selection_changed = Signal(list)
    all_chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kept: tuple[list[str], str, int] = ([], "", 0)
        self._leaving: frozenset[str] = frozenset()  # Tasks that an action may take off the list
        self._followers: list[str] = []  # The rows to select in their place, nearest first
        self._quiet = False
        self._all_of: str | None = None

    @property
    def tasks(self) -> TaskModel:
        """The task model of the view, which accepts no other model."""
        model = self.model()
        assert isinstance(model, TaskModel)
        return model

    def follow_choice(self, model: TaskModel) -> None:
        """Keep the selection when `model` reorders its rows; call it after `setModel`."""
        model.ask_selected(self._selected_rows)
        model.modelAboutToBeReset.connect(self._keep_selection)
        model.modelReset.connect(self._restore_selection)
        model.shown_changed.connect(lambda *_: self._move_on())
        self.selectionModel().selectionChanged.connect(self._tell_selection)

    @property
    def all_marked(self) -> bool:
        """True while all rows that match the filter are selected."""
        return self._all_of is not None

    def is_marked(self, index: AnyIndex) -> bool:
        """Return whether the row of this cell is painted as selected."""
        return self.all_marked or self.selectionModel().isSelected(index)

    def selectAll(self) -> None:
        """Select all rows that match the filter, now and later."""
        self._quiet = True
        super().clearSelection()
        self._quiet = False
        self._all_of = self.tasks.filter.text
        self.viewport().update()
        self.all_chosen.emit()

    def clearSelection(self) -> None:
        self._leaving = frozenset()
        super().clearSelection()
        if self.all_marked:
            self._tell_selection()

    def take_one_by_one(self) -> None:
        """Turn a selection of all rows into single rows, so that some can be deselected."""
        if self.all_marked:
            self._quiet = True
            super().selectAll()
            self._quiet, self._all_of = False, None

    def keep_chosen(self, ids: Iterable[str]) -> None:
        """Replace a selection of all rows by `ids`, so that rows added later stay unselected."""
        if self.all_marked:
            self._select_rows(self.tasks.rows_of(ids))

    def is_chosen_at(self, at: QPoint) -> bool:
        """Return whether the row at this point of the viewport is selected."""
        index = self.indexAt(at)
        return index.isValid() and self.is_marked(index)

    def selected_ids(self) -> list[str]:
        """Return the ids of the selected tasks from top to bottom."""
        if self.all_marked:
            return list(self.tasks.ids)
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
        """Select the shown tasks of `ids`, and make the first one current and visible."""
        rows = self.tasks.rows_of(ids)
        self._select_rows(rows)
        if rows:
            self._make_current(rows[0])

    def show_current(self) -> None:
        """Scroll to the current row, as after the list became shorter."""
        if self.currentIndex().isValid():
            self.scrollTo(self.currentIndex(), QAbstractItemView.ScrollHint.EnsureVisible)

    def move_on_after(self, ids: Iterable[str]) -> None:
        """Select the next row when the selected `ids` have left the list by an action."""
        leaving, model = frozenset(ids), self.tasks
        rows = model.rows_of(leaving)
        if not rows or self.all_marked:
            return
        after = range(max(rows) + 1, min(model.rowCount(), max(rows) + 1 + _FOLLOWERS))
        before = range(min(rows) - 1, max(-1, min(rows) - 1 - _FOLLOWERS), -1)
        self._leaving, self._followers = leaving, [model.id_at(row) for row in (*after, *before)]

    def _move_on(self) -> None:
        if not self._leaving or self.tasks.rows_of(self._leaving):
            return
        self._leaving = frozenset()
        if self.all_marked or self.selectionModel().hasSelection():
            return
        follower = next((one for one in self._followers if self.tasks.row_of(one) >= 0), None)
        if follower is not None:
            self.select_ids([follower])

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
        if not self.all_marked:
            self._kept = (self.selected_ids(), self.current_id(), self.tasks.rowCount())

    def _restore_selection(self) -> None:
        if self.all_marked:
            if self._all_of != self.tasks.filter.text:  # The selection referred to another filter
                self.clearSelection()
            return
        ids, current, count = self._kept
        bar = self.verticalScrollBar()
        stood = bar.value() if self.tasks.rowCount() == count else None
        self._quiet = True
        self._select_rows(self.tasks.rows_of(ids))
        at = self.tasks.row_of(current)
        if at >= 0:
            self._make_current(at)
        if stood is not None:  # The same rows in a new order must not scroll the view
            self.doItemsLayout()
            bar.setValue(stood)
        self._quiet = False
        now = self.selected_ids()
        if set(now) != set(ids):
            self.selection_changed.emit(now)

    def _tell_selection(self) -> None:
        if not self._quiet:
            self._all_of = None
            self.viewport().update()
            chosen = self.selected_ids()
            if not self._leaving.issuperset(chosen):
                self._leaving = frozenset()  # The user has selected another row meanwhile
            self.selection_changed.emit(chosen)


# Intervals of the table's timer, which fires only as often as a visible text grows older.

LIVE_TICK_MS = 1000
YOUNG_TICK_MS = 5_000
HIDDEN_TICK_MS = 10_000
IDLE_TICK_MS = 60_000
USED_S = 5.0  # A rare column stays for so long without a value in sight, so that none flickers
RARE_COLUMNS = tuple(column for column in COLUMNS if column.rare)


class Pulse(QTimer):
    """Timer that ticks the model of `table` at an interval that `pace` adapts."""

    def __init__(self, table: TaskTable) -> None:
        super().__init__(table)
        self._table = table
        self._used_at: dict[str, float] = {}  # Of a rare column, when a visible row had a value
        # In a turn of its own: Qt does not expect columns to come and go while rows do.
        self._columns = QTimer(self, singleShot=True)
        self._columns.timeout.connect(lambda: table.header().show_used(self._used_columns()))
        self.timeout.connect(self._tick)

    def _tick(self) -> None:
        self._table.tasks.tick()
        self.pace()

    def pace(self) -> None:
        """Set the interval: stopped for an empty table, one second while visible tasks are live."""
        table, every = self._table, 0
        self._columns.start()
        if table.isVisible() and table.tasks.has_live_in_sight:
            every = LIVE_TICK_MS
        elif table.isVisible() and table.tasks.has_young_in_sight:
            every = YOUNG_TICK_MS
        elif table.tasks.has_running:
            every = HIDDEN_TICK_MS
        elif table.isVisible() and table.tasks.rowCount():
            every = IDLE_TICK_MS
        if not every:
            self.stop()
        elif not self.isActive() or self.interval() != every:
            self.start(every)

    def _used_columns(self) -> frozenset[str]:
        """Return the rare columns that visible rows have a value for, or had a moment ago."""
        now = time.monotonic()
        for key in self._table.tasks.used_in_sight(RARE_COLUMNS):
            self._used_at[key] = now
        return frozenset(key for key, at in self._used_at.items() if now - at < USED_S)


class TaskTable(RowChoice):
    """View of a `TaskModel`. `menu_wanted` carries the context menu before it opens."""

    activated_task = Signal(str)
    menu_wanted = Signal(QMenu)

    def __init__(self, parent: QWidget | None = None) -> None:
        self._painter: RowDelegate | None = None
        super().__init__(parent)
        self._sideways = False
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
        self._row_more = 0
        self.space_rows(0)
        rows.hide()
        self.activated.connect(
            lambda index: self.activated_task.emit(self.tasks.id_at(index.row()))
        )
        self.pulse = Pulse(self)

    def setModel(self, model: QAbstractItemModel | None) -> None:
        assert isinstance(model, TaskModel)
        super().setModel(model)
        self._painter = RowDelegate(model, self, self.is_marked)
        self.setItemDelegate(self._painter)
        # With a shared selection model the header would check all rows of each column at every
        # repaint (0.7 s with 10,000 rows selected).
        self.header().setSelectionModel(QItemSelectionModel(model, self.header()))
        model.look_through(self.rows_in_sight)
        self.follow_choice(model)
        model.modelReset.connect(self.pulse.pace)
        model.counts_changed.connect(lambda _: self.pulse.pace())
        model.shown_changed.connect(lambda *_: self.pulse.pace())
        self.verticalScrollBar().valueChanged.connect(lambda _: self.pulse.pace())
        model.order_changed.connect(lambda: self._header.show_order(model.sort_keys))
        self._header.order_wanted.connect(model.set_sort)
        self._header.contents_wanted.connect(self._show_contents)
        self._header.set_widths()
        self._header.show_order(model.sort_keys)

    # Header

    def header(self) -> TaskHeader:
        return self._header

    def restore_header(self, state: QByteArray) -> bool:
        """Restore saved columns; a state of another version changes nothing."""
        return self._header.restore(state)

    def _show_contents(self, number: int) -> None:
        """Fit the width of a column to its visible cells."""
        if self._painter is not None:
            first, last = self.rows_in_sight()
            self._header.give_width(number, self._painter.width_of(number, first, last))

    def scrollTo(self, index: AnyIndex, hint: QAbstractItemView.ScrollHint = _TOP) -> None:
        """Scroll vertically only, except for the left and right keys, because rows are selected."""
        bar = self.horizontalScrollBar()
        stood = bar.value()
        super().scrollTo(index, hint)
        if not self._sideways:
            bar.setValue(stood)

    # Keys and mouse

    def keyPressEvent(self, event: QKeyEvent) -> None:
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        plain = not event.modifiers() & ~Qt.KeyboardModifier.ShiftModifier
        if shift and event.key() == Qt.Key.Key_F10 and self.currentIndex().isValid():
            self._open_menu_by_key()  # not every desktop takes it for the menu key
        elif plain and event.key() in (Qt.Key.Key_J, Qt.Key.Key_K):
            self._step(1 if event.key() == Qt.Key.Key_J else -1)
        elif plain and event.key() == Qt.Key.Key_N:
            self.step_attention(-1 if shift else 1)
        elif plain and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.current_id():
            self.activated_task.emit(self.current_id())
        elif plain and event.key() in _LINES and self._nothing_chosen():
            # With the focus the first row becomes current, and Qt would move on to the second.
            self._step(0)
        else:
            if event.key() == Qt.Key.Key_Space and not plain:
                self.take_one_by_one()
            self._sideways = event.key() in _SIDEWAYS
            super().keyPressEvent(event)
            self._sideways = False
            if event.key() in _MOVES and not self.selectionModel().hasSelection():
                self._step(0)  # Qt selects nothing when the only row is already current

    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        """Move to the first or last task on Home and End, where Qt moves within the row."""
        if action in _ENDS:
            modifiers |= Qt.KeyboardModifier.ControlModifier
        return super().moveCursor(action, modifiers)

    def keyboardSearch(self, search: str) -> None:
        """Ignore typed letters, which are commands here; Ctrl+F searches."""

    def _step(self, by: int) -> None:
        count = self.tasks.rowCount()
        if count:
            at = self.currentIndex().row()
            # Qt makes the first row current on focus without selecting it.
            chosen = at >= 0 and self.selectionModel().hasSelection()
            self._go(min(count - 1, max(0, at + by)) if chosen else max(0, at))

    def step_attention(self, by: int) -> bool:
        """Select the next (-1:

        previous) task that needs attention, wrapping; False if there is none.
        """
        start = self.currentIndex().row()
        if start < 0 or not self.selectionModel().hasSelection():
            start = -1 if by > 0 else self.tasks.rowCount()
        at = self.tasks.needing(start, by)
        if at >= 0:
            self._go(at)
        return at >= 0

    def _nothing_chosen(self) -> bool:
        return not self.all_marked and not self.selectionModel().hasSelection()

    def _go(self, row: int) -> None:
        index = self.tasks.index(row, max(0, self.currentIndex().column()))
        self.selectionModel().setCurrentIndex(index, _REPLACE)
        self.scrollTo(index, _TOP)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        # A right click opens a menu that consumes the release event, so the hold would never end.
        if event.button() == Qt.MouseButton.LeftButton:
            self.tasks.hold(True)
        elif event.button() == Qt.MouseButton.RightButton and self.all_marked:
            return  # The menu applies to all selected rows
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.take_one_by_one()
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        self.tasks.hold(False)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.tasks.hold(False)

    def _open_menu_by_key(self) -> None:
        at = self.visualRect(self.currentIndex()).bottomLeft()
        reason, place = QContextMenuEvent.Reason.Keyboard, self.viewport().mapToGlobal(at)
        self.contextMenuEvent(QContextMenuEvent(reason, at, place))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.tasks.hold(False)
        menu = Menu(self)
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
            self.space_rows(self._row_more)  # Keep the chosen spacing under another theme

    def space_rows(self, more: int) -> None:
        """Set the row height to the font's height plus `more` pixels, also for later fonts."""
        self._row_more = more
        height = row_height(self.fontMetrics().height()) + more
        self.verticalHeader().setDefaultSectionSize(height)

    # Time

    def rows_in_sight(self) -> tuple[int, int]:
        """Return the first and the last visible row, or (0, -1) when none is visible."""
        if not self.isVisible():
            return 0, -1
        bottom = self.viewport().height() - 1
        first, last = self.rowAt(0), self.rowAt(bottom)
        return first, last if last >= 0 else self.tasks.rowCount() - 1

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.pulse.pace()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.pulse.pace()
