"""Selection of table rows, kept by task id, or extended to all filtered rows."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QPoint, Signal
from PySide6.QtWidgets import QAbstractItemView, QTableView, QWidget

from gui.tasks.columns import COLUMNS
from gui.tasks.task_model import TaskModel, runs

_ROWS = QItemSelectionModel.SelectionFlag.Rows
REPLACE = QItemSelectionModel.SelectionFlag.ClearAndSelect | _ROWS
_TOP = QAbstractItemView.ScrollHint.EnsureVisible


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
        self.selectionModel().selectionChanged.connect(self._tell_selection)

    @property
    def all_marked(self) -> bool:
        """True while all rows that match the filter are selected."""
        return self._all_of is not None

    def selectAll(self) -> None:
        """Select all rows that match the filter, now and later."""
        self._quiet = True
        super().clearSelection()
        self._quiet = False
        self._all_of = self.tasks.filter.text
        self.viewport().update()
        self.all_chosen.emit()

    def clearSelection(self) -> None:
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
        return index.isValid() and (self.all_marked or self.selectionModel().isSelected(index))

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

    def _select_rows(self, rows: list[int]) -> None:
        selection = QItemSelection()
        last = len(COLUMNS) - 1
        for start, end in runs(rows):
            model = self.tasks
            selection.select(model.index(start, 0), model.index(end, last))
        self.selectionModel().select(selection, REPLACE)

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
            self.selection_changed.emit(self.selected_ids())
