"""Model of the task table, which applies task changes and repaints changed visible cells."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from engine.model.records import TaskView
from engine.query import Filter, SortKey
from gui.tasks.columns import COLUMNS
from gui.tasks.row import Row
from gui.tasks.rows_model import RowsModel, runs, wall_ms

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

    def __init__(
        self, parent: QObject | None = None, *, now_ms: Callable[[], float] = wall_ms
    ) -> None:
        super().__init__(now_ms, parent)
        self._look: Callable[[], tuple[int, int]] | None = None
        self._held = False
        self._said: dict[str, list[str]] = {}
        self._told: tuple[dict[str, int], int, int] = ({}, -1, -1)
        self._resort = QTimer(self)
        self._resort.setSingleShot(True)
        self._resort.timeout.connect(self.settle)
        self._due = QTimer(self, singleShot=True, interval=_DUE_MS)
        self._due.timeout.connect(self._judge_due)

    # Interface for the window.

    def put_many(self, views: Iterable[TaskView]) -> list[TaskView]:
        """Apply the latest views: insert, remove by filter, and repaint cells.

        Returns the views with more than progress changed, so that other views can skip the rest.
        """
        order, now = self._order, self._now_ms()
        news = _News([], set(), {})
        told: list[TaskView] = []
        for view in order.sift(views, now):
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
        if before is None or before.haystack is not after.haystack:
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
        """Show only the tasks that match the filter."""
        order, now = self._order, self._now_ms()
        order.set_filter(wanted)
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
        order = self._order
        passing = {row.task_id: row for row in order.passing(self._now_ms())}
        left = order.shown - passing.keys()
        arrived = [row for task_id, row in passing.items() if task_id not in order.shown]
        order.shown |= {row.task_id for row in arrived}
        self._apply(arrived, left, {})

    def set_sort(self, keys: Sequence[SortKey]) -> None:
        """Sort by these columns (key, descending), the most significant first."""
        self._order.set_sort(keys)
        self._rearrange()
        self.order_changed.emit()

    @property
    def sort_keys(self) -> tuple[SortKey, ...]:
        return self._order.sort_keys

    def settle(self) -> None:
        """Sort again now if live values have broken the order."""
        if self._unsorted and not self._held:
            self._rearrange()

    def hold(self, held: bool) -> None:
        """Keep rows in place while the user presses a mouse button on one of them."""
        self._held = held
        if not held and self._unsorted and not self._resort.isActive():
            self._resort.start(0)

    def look_through(self, rows_in_sight: Callable[[], tuple[int, int]]) -> None:
        """Set the callback for the visible rows (first, last), so that others are not repainted."""
        self._look = rows_in_sight

    def acknowledge(self, seen: Mapping[str, Collection[str]], ids: Iterable[str]) -> None:
        """Set the acknowledged reasons of all tasks, and update the changed tasks `ids`."""
        self._order.acknowledged = seen
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
        return any(rows[ids[at]].live for at in range(first, last + 1))

    @property
    def has_young_in_sight(self) -> bool:
        """True while the age of any visible task is shown in seconds."""
        first, last = self._in_sight()
        rows, ids, since = self._order.rows, self._order.ids, self._now_ms() - _YOUNG_MS
        return any((rows[ids[at]].updated_at or 0) > since for at in range(first, last + 1))

    # Changes reported to Qt.

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

    def _tell(self) -> None:
        counts, shown = self._order.counts, len(self._order.ids)
        now, before = (counts, self._order.facets.version, shown), self._told
        self._told = now
        if now[:2] != before[:2]:
            self.counts_changed.emit(counts)
        if now[0] != before[0] or shown != before[2]:
            self.shown_changed.emit(shown, self.total)
