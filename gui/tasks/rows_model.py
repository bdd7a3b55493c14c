"""Rows in an order that Python keeps, as Qt sees them: what it asks, and how moves are told.

No sort or filter proxy: each `data()` that a proxy asks costs 15-35 µs, a sort of 100,000
rows asks millions, `list.sort` none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, Qt

from engine.model.records import TaskView
from engine.query import Filter, SortKey
from gui.style.item_roles import ALIGNMENT, DISPLAY, ROOT, SPOKEN, SPOKEN_MORE, TOOL_TIP, AnyIndex
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
# More separate runs of removed rows than this: the view is quicker with a reset.
_MANY_RUNS = 64
# More selected rows than this: Qt holds on to each of their cells while rows move (7 s for
# 10,000 rows), the view selects by id again after a reset (0.06 s).
_MANY_SELECTED = 200
_FEW_HELD = 8


def wall_ms() -> float:
    return time.time() * 1000


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as runs of neighbours: 1 2 3 7 → (1, 3), (7, 7)."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _places(wanted: set[str], ids: list[str]) -> dict[str, int]:
    """Where these stand among `ids`. To hash 100,000 names takes 15 ms, to look for one 1."""
    if len(wanted) <= _FEW_HELD:
        return {task_id: ids.index(task_id) for task_id in wanted}
    return {task_id: at for at, task_id in enumerate(ids) if task_id in wanted}


class RowsModel(QAbstractItemModel):
    """The reading side of the task table's model. Positions change, ids do not."""

    def __init__(self, now_ms: Callable[[], float], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._order = TaskOrder()
        self._now_ms = now_ms
        self._unsorted = False
        self._selected: Callable[[], int] | None = None

    def ask_selected(self, how_many: Callable[[], int]) -> None:
        """`how_many` rows are selected in the view decides how a new order is told to it."""
        self._selected = how_many

    @property
    def ids(self) -> list[str]:
        """What passes the filter, in order; not to be changed, and replaced with every order."""
        return self._order.ids

    @property
    def rows(self) -> Mapping[str, Row]:
        """Every known task, also those that the filter hides; some may be a little behind."""
        return self._order.rows

    @property
    def is_filtered(self) -> bool:
        return self._order.is_filtered

    def row_of(self, task_id: str) -> int:
        """Where a task stands in the table; -1 when it is not shown."""
        return self._order.ids.index(task_id) if task_id in self._order.shown else -1

    def rows_of(self, ids: Iterable[str]) -> list[int]:
        """Where these tasks stand, ascending; one pass however many they are."""
        wanted = set(ids) & self._order.shown
        if not wanted:
            return []
        return [at for at, task_id in enumerate(self._order.ids) if task_id in wanted]

    def id_at(self, row: int) -> str:
        return self._order.ids[row]

    def row_at(self, row: int) -> Row:
        """What the table knows of the task in this row; the delegate paints from it."""
        task_id = self._order.ids[row]
        if task_id in self._order.unread:
            self._order.catch_up(task_id, self._now_ms())
        return self._order.rows[task_id]

    def now_ms(self) -> float:
        return self._now_ms()

    def view_of(self, task_id: str) -> TaskView | None:
        return self._order.view_of(task_id)

    def row_by_id(self, task_id: str) -> Row | None:
        """What the table knows of a task, shown or not; None for one that is gone."""
        return self._order.rows.get(task_id)

    def needing(self, start: int, by: int) -> int:
        """The next row from `start` on, by 1 or -1 and round the end, that needs attention;
        -1 when none does."""
        rows, ids = self._order.rows, self._order.ids
        for away in range(1, len(ids) + 1):
            at = (start + by * away) % len(ids)
            if rows[ids[at]].needs:
                return at
        return -1

    def stall_after_ms(self, task_id: str) -> float:
        """How long a silence of this task counts as a stall, by its pace."""
        return self._order.stall_after_ms(task_id)

    def counts(self) -> dict[str, int]:
        """How many tasks each facet has; kept while tasks change, never counted anew."""
        return self._order.counts

    def all_rows(self) -> list[Row]:
        """Every row there is now, whether it is shown or not."""
        return list(self._order.rows.values())

    @property
    def facets(self) -> FacetCounts:
        """How many tasks each kind, host, budget and age has."""
        return self._order.facets

    @property
    def filter(self) -> Filter:
        """What the list is narrowed to now."""
        return self._order.filter

    @property
    def total(self) -> int:
        """All tasks, shown or not."""
        return len(self._order.rows)

    def make_beforehand(self, wanted: Sequence[SortKey]) -> Iterator[None]:
        """Make the order by each of these ready, some 2 ms with each step."""
        return self._order.make_beforehand(wanted)

    @property
    def lacks_an_order(self) -> bool:
        """Has an order that was to be ready still, or again, to be made?"""
        return self._order.lacks_an_order

    def forget_orders(self) -> None:
        """Know no order any more, as when the rows are new."""
        self._order.forget_orders()

    # What Qt asks.

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._order.ids)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def index(self, row: int, column: int, parent: AnyIndex = ROOT) -> QModelIndex:
        if parent.isValid() or not 0 <= row < len(self._order.ids):
            return QModelIndex()
        return self.createIndex(row, column) if 0 <= column < len(COLUMNS) else QModelIndex()

    # its other form, a QObject's parent, is nothing that Qt asks a model for
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

    # How moves are told to Qt.

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
        """Put the same rows in this order; what Qt holds on to (selection, current) moves along."""
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
