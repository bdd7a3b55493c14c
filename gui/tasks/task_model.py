"""Model of the task table, which applies task changes and repaints changed visible cells.

It uses no sort or filter proxy: each `data()` call of a proxy costs 15-35 µs and a sort of 100,000
rows makes millions of them, while `list.sort` makes none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, Qt, QTimer, Signal

from engine.model.records import TaskView
from engine.query import Filter, SortKey
from engine.text import words
from gui.engine_link.scheduling import SlicedWork
from gui.style.tables import ALIGNMENT, DISPLAY, ROOT, SPOKEN, SPOKEN_MORE, TOOL_TIP, AnyIndex
from gui.style.theme import plain_tip
from gui.tasks.columns import COLUMN_AT, COLUMNS, Column, hint, spoken, time_left
from gui.tasks.facets import FacetCounts
from gui.tasks.row import Row, asked, only_progressed
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
# From this number on, texts that are made on their first use are made in slices.
MANY_ROWS = 20_000
SLICE_MS = 8
MADE_FOR_SORT = frozenset({"task"})  # columns whose texts no row has


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


def _is_same(before: Row, after: Row) -> bool:
    """Return whether a task has changed in nothing but progress."""
    return before.about is after.about and only_progressed(before.view, after.view)


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

    def running_views(self) -> list[TaskView]:
        """Return the latest view of each running task, shown or hidden."""
        return self._order.running_views()

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
            if rows[ids[at]].about.needs:
                return at
        return -1

    def stall_after_ms(self, task_id: str) -> float:
        """Return the silence in ms after which this task counts as stalled, by its pace."""
        return self._order.stall_after_ms(task_id)

    def speed(self, task_id: str) -> str:
        """Return the rate and the time left of a task as the list shows them; "" without any."""
        row = self.rows.get(task_id)
        parts = () if row is None else (words.rate(row.rate), time_left(row, self._now_ms()))
        return " · ".join(part for part in parts if part not in ("", words.NONE))

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

    def lacks_texts(self, wanted: Filter) -> bool:
        """Return whether this filter needs `prepare_texts` first, as it would block the window."""
        return self.total >= MANY_ROWS and self._order.lacks_texts(wanted)

    def prepare_texts(self) -> Iterator[None]:
        """Make the texts that filters search in short steps."""
        return self._order.prepare_texts()

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
        batch = rows if self._unsorted else order.in_batch_order(rows)
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


# Live values trigger a new sort at most this often, using at most a twentieth of the time.
_RESORT_MS = 250
_RESORT_SHARE = 20
_MOST_DUE, _DUE_MS = 24, 40  # Rows evaluated at a time, and the pause in ms before the next ones
_YOUNG_MS = 60_000  # From this age on, ages are shown in minutes
_TICKING = [number for number, column in enumerate(COLUMNS) if column.ticks]


class _News(NamedTuple):
    """Row changes of one batch, by id, with the rows before and after."""

    arrived: list[Row]
    left: set[str]
    changed: dict[str, tuple[Row, Row]]


class TaskModel(RowsModel):
    """All tasks by id, shown as ordered rows; the selection follows ids."""

    counts_changed = Signal(object)
    shown_changed = Signal(int, int)
    order_changed = Signal()
    ticked = Signal()  # ages were repainted

    def __init__(
        self, parent: QObject | None = None, *, now_ms: Callable[[], float] = wall_ms
    ) -> None:
        super().__init__(now_ms, parent)
        self._look: Callable[[], tuple[int, int]] | None = None
        self._held = self._unfiltered = False  # `ids` are those of an earlier filter
        self._said: dict[str, list[str]] = {}
        self._told: tuple[dict[str, int], int, int] = ({}, -1, -1)
        self._may_tell: Callable[[], bool] = lambda: True
        self._resort = QTimer(self)
        self._resort.setSingleShot(True)
        self._resort.timeout.connect(self.settle)
        self._wanted: tuple[SortKey, ...] = ()  # while their columns are read
        self._reading = SlicedWork(self, budget_ms=SLICE_MS)
        self._reading.done.connect(self._sort)
        self._due = QTimer(self, singleShot=True, interval=_DUE_MS)
        self._due.timeout.connect(self._judge_due)

    # Interface for the window.

    def put_many(self, views: Iterable[TaskView]) -> list[TaskView]:
        """Apply the latest views: insert, remove by filter, and repaint cells.

        Returns the views with more than progress changed, so that other views can skip the rest.
        """
        order, now = self._order, self._now_ms()
        views = list(views)
        rows, others = order.add_ended(views, now)
        told = [row.view for row in rows]
        news = _News(order.filter.keep(rows, now, asked), set(), {})
        order.shown.update(row.task_id for row in news.arrived)
        for view in order.sift(others, now):
            self._take(view, now, news)
            told.append(view)
        changed = news.changed | self._caught_up(now)
        if told or changed:
            self._apply(news.arrived, news.left, changed)
        return told

    def _take(self, view: TaskView, now_ms: float, news: _News) -> None:
        order = self._order
        before, after = order.take(view, now_ms)
        task_id = after.task_id
        listed = task_id in order.shown
        # A batch may contain one task twice.
        passes = was_shown = listed and task_id not in news.left
        if before is None or not _is_same(before, after):
            passes = order.passes(after, now_ms)
        if not passes:
            if was_shown:
                news.left.add(task_id)
        elif listed and before is not None:
            news.left.discard(task_id)
            first = news.changed[task_id][0] if task_id in news.changed else before
            news.changed[task_id] = (first, after)
        else:
            news.arrived.append(after)
            order.shown.add(task_id)

    def _caught_up(self, now_ms: float) -> dict[str, tuple[Row, Row]]:
        """Apply the pending progress of visible rows; other rows can wait."""
        order = self._order
        if not order.unread:
            return {}
        first, last = self._in_sight()
        seen = [task_id for task_id in order.ids[first : last + 1] if task_id in order.unread]
        pairs = {task_id: order.catch_up(task_id, now_ms) for task_id in seen}
        self._unsorted = self._unsorted or order.follows_progress
        return {task_id: pair for task_id, pair in pairs.items() if pair is not None}

    def drop_many(self, ids: Iterable[str]) -> None:
        """Remove tasks whose folders were deleted."""
        order = self._order
        gone = {task_id for task_id in ids if task_id in order.rows}
        if not gone:
            return
        shown = gone & order.shown
        self._remove(shown)
        order.shown -= shown
        for task_id in gone:
            order.forget(task_id)
        self._tell()

    def set_filter(self, wanted: Filter) -> None:
        """Show only the tasks that match the filter, after a pressed mouse button."""
        order, now = self._order, self._now_ms()
        order.set_filter(wanted)
        self._unfiltered = self._defers()
        if self._unfiltered:
            return
        ids = None if self._unsorted else order.narrowed(now)
        if ids is None:
            ids, self._unsorted = order.arranged(now), False
        if ids == order.ids:
            return
        self.beginResetModel()
        order.replace(ids)
        self.endResetModel()
        self._tell()

    def filter_again(self) -> None:
        """Evaluate the filter again after time or progress, and add or remove the difference."""
        if self._held:  # Callers repeat this soon
            return
        order = self._order
        passing = {row.task_id: row for row in order.passing(self._now_ms())}
        left = order.shown - passing.keys()
        arrived = [row for task_id, row in passing.items() if task_id not in order.shown]
        order.shown |= {row.task_id for row in arrived}
        self._apply(arrived, left, {})

    def set_sort(self, keys: Sequence[SortKey]) -> None:
        """Sort by these columns (key, descending), the most significant first; ignore unknown ones.

        Where the names of many tasks are needed first, the rows follow after some slices.
        """
        self._reading.cancel()
        self._wanted = tuple((key, down) for key, down in keys if key in COLUMN_AT)
        made = [key for key, _ in self._wanted if key in MADE_FOR_SORT]
        if made and self.total >= MANY_ROWS and self.lacks_columns(made):
            self._reading.start(self.prepare_columns(made))
            self.order_changed.emit()
        else:
            self._sort()

    def _sort(self) -> None:
        keys, self._wanted = self._wanted, ()
        self._order.set_sort(keys)
        if not self._defers():
            self._rearrange()
        self.order_changed.emit()

    @property
    def is_sorting(self) -> bool:
        """True while the names that a new order needs are made."""
        return self._reading.is_active

    @property
    def sort_keys(self) -> tuple[SortKey, ...]:
        return self._wanted or self._order.sort_keys

    def settle(self) -> None:
        """Sort again now if live values have broken the order."""
        if self._unsorted and not self._held:
            self._rearrange()

    def hold(self, held: bool) -> None:
        """Keep rows in place while the user presses a mouse button on one of them."""
        self._held = held
        if not held and self._unsorted and not self._resort.isActive():
            self._resort.start(0)

    def _defers(self) -> bool:
        """Return whether rows are kept in place, and then leave the new order to `hold`."""
        if self._held:
            self._unsorted = True
            self._resort.stop()  # `hold` then sorts without a delay
        return self._held

    def look_through(self, rows_in_sight: Callable[[], tuple[int, int]]) -> None:
        """Set the callback for the visible rows (first, last), so that others are not repainted."""
        self._look = rows_in_sight

    def acknowledge(self, seen: Mapping[str, Collection[str]], ids: Iterable[str]) -> None:
        """Set the acknowledged reasons of all tasks, and update the changed tasks `ids`."""
        self._order.acknowledged = seen
        self.put_many(self._order.to_judge(ids))

    def mark_awaited(self, awaited: Collection[str], ids: Iterable[str]) -> None:
        """Set the tasks of whose end the user is notified, and update the changed tasks `ids`."""
        self._order.awaited = awaited
        self.put_many(self._order.to_judge(ids))

    def tick(self) -> None:
        """Repaint the visible cells whose text has changed with time alone."""
        now = self._now_ms()
        self._judge_due()
        first, last = self._in_sight()
        aged: dict[int, list[int]] = {number: [] for number in _TICKING}
        said: dict[str, list[str]] = {}
        for at in range(first, last + 1):
            row = self.row_at(at)
            said[row.task_id] = texts = [COLUMNS[number].text(row, now) for number in _TICKING]
            before = self._said.get(row.task_id)
            for place, number in enumerate(_TICKING):
                if before is None or before[place] != texts[place]:
                    aged[number].append(at)
        self._said = said
        for number, rows in aged.items():
            for start, end in runs(rows):
                self.dataChanged.emit(self.index(start, number), self.index(end, number))
        self.ticked.emit()

    def _judge_due(self) -> None:
        """Update tasks that time may have changed, in slices: thousands can stall at once."""
        due = self._order.due(self._now_ms(), _MOST_DUE)
        self.put_many(due)
        if len(due) >= _MOST_DUE:
            self._due.start()

    @property
    def has_running(self) -> bool:
        """True while any task runs, visible or not."""
        return self._order.has_running

    @property
    def has_live_in_sight(self) -> bool:
        """True while any visible task is live."""
        first, last = self._in_sight()
        rows, ids = self._order.rows, self._order.ids
        return any(rows[ids[at]].about.live for at in range(first, last + 1))

    @property
    def has_young_in_sight(self) -> bool:
        """True while the age of any visible task is shown in seconds."""
        first, last = self._in_sight()
        rows, ids, since = self._order.rows, self._order.ids, self._now_ms() - _YOUNG_MS
        return any((rows[ids[at]].updated_at or 0) > since for at in range(first, last + 1))

    def used_in_sight(self, columns: Iterable[Column]) -> list[str]:
        """Return the keys of those `columns` that have a text in a visible row."""
        first, last = self._in_sight()
        rows, ids, now = self._order.rows, self._order.ids, self._now_ms()
        shown = [rows[ids[at]] for at in range(first, last + 1)]
        return [one.key for one in columns if any(one.text(row, now) for row in shown)]

    # Changes reported to Qt.

    def _tell(self) -> None:
        if self._may_tell():
            self.tell_counts()

    def _apply(
        self, arrived: list[Row], left: set[str], changed: dict[str, tuple[Row, Row]]
    ) -> None:
        order = self._order
        for task_id in left:
            changed.pop(task_id, None)
        self._remove(left)
        order.shown -= left
        if not self._unsorted:
            self._unsorted = any(order.moved(*pair) for pair in changed.values())
        # A task may have arrived twice in one batch, so the latest row counts.
        self._insert([order.rows[row.task_id] for row in arrived if row.task_id not in left])
        if self._unsorted and not self._resort.isActive() and not self._held:
            self._rearrange()
        self._repaint(changed)
        self._tell()

    def _rearrange(self) -> None:
        if self._unfiltered:
            self.set_filter(self._order.filter)
            return
        began = time.perf_counter()
        ids = self._order.arranged(self._now_ms())
        self._unsorted = False
        took_ms = int((time.perf_counter() - began) * 1000)
        self._resort.start(max(_RESORT_MS, took_ms * _RESORT_SHARE))
        self._arrange(ids)

    def _repaint(self, changed: dict[str, tuple[Row, Row]]) -> None:
        if not changed:
            return
        first, last = self._in_sight()
        ids = self._order.ids
        for at in range(first, last + 1):
            pair = changed.get(ids[at])
            if pair is None:
                continue
            cells = [n for n, column in enumerate(COLUMNS) if column.differs(*pair)]
            for start, end in runs(cells):
                self.dataChanged.emit(self.index(at, start), self.index(at, end))

    def _in_sight(self) -> tuple[int, int]:
        end = len(self._order.ids) - 1
        if self._look is None:
            return 0, end
        first, last = self._look()
        return max(0, first), min(last, end)

    def limit_counts(self, may_tell: Callable[[], bool]) -> None:
        """Emit numbers only while `may_tell` returns True; `tell_counts` emits the last ones."""
        self._may_tell = may_tell

    def tell_counts(self) -> None:
        """Emit the numbers of tasks if they have changed."""
        counts, shown = self._order.counts, len(self._order.ids)
        now, before = (counts, self._order.facets.version, shown), self._told
        self._told = now
        if now[:2] != before[:2]:
            self.counts_changed.emit(counts)
        if now[0] != before[0] or shown != before[2]:
            self.shown_changed.emit(shown, self.total)
