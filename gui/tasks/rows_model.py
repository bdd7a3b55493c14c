"""Read-only side of the table model, over rows that Python keeps in order.

It uses no sort or filter proxy: each `data()` call of a proxy costs 15-35 µs and a sort of 100,000
rows makes millions of them, while `list.sort` makes none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, Qt

from engine.model.records import TaskView
from engine.query import Filter
from gui.style.tables import ALIGNMENT, DISPLAY, ROOT, SPOKEN, SPOKEN_MORE, TOOL_TIP, AnyIndex
from gui.style.theme import plain_tip
from gui.tasks.columns import COLUMNS, hint, spoken
from gui.tasks.facets import FacetCounts
from gui.tasks.row import Row
from gui.tasks.task_order import TaskOrder

_FLAGS = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemNeverHasChildren
_NO_FLAGS = Qt.ItemFlag.NoItemFlags
ID_ROLE = int(Qt.ItemDataRole.UserRole)
_ALIGN = {
    "left": Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
    "right": Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
    "center": Qt.AlignmentFlag.AlignCenter,
}
# More single insertions than this cost more than one batch at the end and one sort.
_FEW = 16
# With more separate runs of removed rows than this, a reset of the view is faster.
_MANY_RUNS = 64
# With more selected rows than this, a reset is faster: Qt tracks each selected cell while rows move
# (7 s for 10,000 rows), while selecting by id after a reset takes 0.06 s.
_MANY_SELECTED = 200
_FEW_HELD = 8


def wall_ms() -> float:
    return time.time() * 1000


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as runs of neighbours: 1 2 3 7 → (1, 3), (7, 7)."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _places(wanted: set[str], ids: list[str]) -> dict[str, int]:
    """Return the positions of `wanted` in `ids`.

    Hashing 100,000 names takes 15 ms, searching one takes 1 ms.
    """
    if len(wanted) <= _FEW_HELD:
        return {task_id: ids.index(task_id) for task_id in wanted}
    return {task_id: at for at, task_id in enumerate(ids) if task_id in wanted}


class RowsModel(QAbstractItemModel):
    """Read-only part of the table model, keyed by task id because positions change."""

    def __init__(self, now_ms: Callable[[], float], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._order = TaskOrder()
        self._now_ms = now_ms
        self._unsorted = False
        self._selected: Callable[[], int] | None = None

    def ask_selected(self, how_many: Callable[[], int]) -> None:
        """Set the callback for the number of selected rows, which decides how to reorder."""
        self._selected = how_many

    @property
    def ids(self) -> list[str]:
        """The ids of the filtered rows in order;

        never modified in place, replaced by every sort.
        """
        return self._order.ids

    @property
    def rows(self) -> Mapping[str, Row]:
        """All known rows, including hidden ones; some may lag behind their progress."""
        return self._order.rows

    @property
    def is_filtered(self) -> bool:
        return self._order.is_filtered

    def row_of(self, task_id: str) -> int:
        """Return the position of a task in the table, or -1 when it is hidden."""
        return self._order.ids.index(task_id) if task_id in self._order.shown else -1

    def rows_of(self, ids: Iterable[str]) -> list[int]:
        """Return the positions of these tasks in ascending order, in one pass."""
        wanted = set(ids) & self._order.shown
        if not wanted:
            return []
        return [at for at, task_id in enumerate(self._order.ids) if task_id in wanted]

    def id_at(self, row: int) -> str:
        return self._order.ids[row]

    def row_at(self, row: int) -> Row:
        """Return the row at this position, with its latest progress, for the delegate."""
        task_id = self._order.ids[row]
        if task_id in self._order.unread:
            self._order.catch_up(task_id, self._now_ms())
        return self._order.rows[task_id]

    def now_ms(self) -> float:
        return self._now_ms()

    def view_of(self, task_id: str) -> TaskView | None:
        return self._order.view_of(task_id)

    def row_by_id(self, task_id: str) -> Row | None:
        """Return the row of a task, shown or hidden, or None after its removal."""
        return self._order.rows.get(task_id)

    def needing(self, start: int, by: int) -> int:
        """Return the next row that needs attention, from `start` in steps of `by`, wrapping around.

        Returns -1 when no row needs attention.
        """
        rows, ids = self._order.rows, self._order.ids
        for away in range(1, len(ids) + 1):
            at = (start + by * away) % len(ids)
            if rows[ids[at]].needs:
                return at
        return -1

    def stall_after_ms(self, task_id: str) -> float:
        """Return the silence in ms after which this task counts as stalled, by its pace."""
        return self._order.stall_after_ms(task_id)

    def counts(self) -> dict[str, int]:
        """Return the number of tasks of each state facet, updated incrementally."""
        return self._order.counts

    def all_rows(self) -> list[Row]:
        """Return all rows, shown or hidden."""
        return list(self._order.rows.values())

    @property
    def facets(self) -> FacetCounts:
        """The task counts of each kind, host, budget and age."""
        return self._order.facets

    @property
    def filter(self) -> Filter:
        """The active filter."""
        return self._order.filter

    @property
    def total(self) -> int:
        """The number of all tasks, shown or hidden."""
        return len(self._order.rows)

    def prepare_columns(self, keys: Sequence[str]) -> Iterator[None]:
        """Read these sort columns in short steps."""
        return self._order.prepare_columns(keys)

    def lacks_columns(self, keys: Sequence[str]) -> bool:
        """Return whether any of these sort columns has not been read."""
        return self._order.lacks_columns(keys)

    def drop_columns(self) -> None:
        """Drop all sort columns, which the next sort reads again."""
        self._order.drop_columns()

    # Methods that Qt calls.

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._order.ids)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def index(self, row: int, column: int, parent: AnyIndex = ROOT) -> QModelIndex:
        if parent.isValid() or not 0 <= row < len(self._order.ids):
            return QModelIndex()
        return self.createIndex(row, column) if 0 <= column < len(COLUMNS) else QModelIndex()

    # Qt never calls the other overload, the parent of a QObject, on a model.
    def parent(self, child: AnyIndex = ROOT) -> QModelIndex:  # type: ignore[override]
        return QModelIndex()

    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        return _FLAGS if index.isValid() else _NO_FLAGS

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        row, column = self.row_at(index.row()), COLUMNS[index.column()]
        if role == DISPLAY:
            return column.text(row, self._now_ms())
        if role == ID_ROLE:
            return row.task_id
        if role == TOOL_TIP:
            return plain_tip(hint(row, column, self._now_ms()))
        if role == SPOKEN:
            return spoken(row, column, self._now_ms())
        if role == SPOKEN_MORE:
            return COLUMNS[0].text(row, self._now_ms())
        return _ALIGN[column.align] if role == ALIGNMENT else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        column = COLUMNS[section]
        if role == DISPLAY:
            return column.title
        if role in (TOOL_TIP, SPOKEN):
            return column.long_title
        return _ALIGN[column.align] if role == ALIGNMENT else None

    # Changes of rows, reported to Qt.

    def _insert(self, rows: list[Row]) -> None:
        if not rows:
            return
        order = self._order
        if len(rows) <= _FEW and not self._unsorted:
            for row in rows:
                at = order.place_of(row)
                self.beginInsertRows(ROOT, at, at)
                order.ids.insert(at, row.task_id)
                self.endInsertRows()
            return
        batch = order.in_batch_order(rows)
        self._unsorted = self._unsorted or not order.follows(batch[0])
        start = len(order.ids)
        self.beginInsertRows(ROOT, start, start + len(batch) - 1)
        order.ids.extend(row.task_id for row in batch)
        self.endInsertRows()

    def _remove(self, gone: set[str]) -> None:
        if not gone:
            return
        order = self._order
        spans = runs([at for at, task_id in enumerate(order.ids) if task_id in gone])
        if len(spans) > _MANY_RUNS:
            self.beginResetModel()
            order.ids = [task_id for task_id in order.ids if task_id not in gone]
            self.endResetModel()
            return
        for start, end in reversed(spans):
            self.beginRemoveRows(ROOT, start, end)
            del order.ids[start : end + 1]
            self.endRemoveRows()

    def _arrange(self, ids: list[str]) -> None:
        """Reorder the same rows, and move persistent indexes (selection, current) along."""
        before = self._order.ids
        if ids == before:
            return
        if self._selected is not None and self._selected() > _MANY_SELECTED:
            self.beginResetModel()
            self._order.ids = ids
            self.endResetModel()
            return
        self.layoutAboutToBeChanged.emit()
        held = self.persistentIndexList()
        wanted = {before[index.row()] for index in held}
        moved = _places(wanted, ids)
        targets = [self.createIndex(moved[before[at.row()]], at.column()) for at in held]
        self._order.ids = ids
        self.changePersistentIndexList(held, targets)
        self.layoutChanged.emit()
