"""Rows of the table, their filter, order and facet counts, without Qt.

`rows` holds all tasks, `ids` the filtered ones in order. Positions are not stored: an update
changes no list, and only a moved row needs a search for its place.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from engine.model.records import Status, TaskRecord, TaskView
from engine.model.status import STALL_MIN_MS, Pace
from engine.query import Filter, SortKey, in_order, place
from engine.query.attention_reasons import changes_at
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.facets import FacetCounts
from gui.tasks.row import FACET_BIT, Row, asked, make_row, moved_on
from gui.tasks.sort_columns import SortColumns, orders_of

_MANY = 4  # A quarter of all rows
NEWEST_FIRST: tuple[SortKey, ...] = (("age", False),)


class TaskOrder:
    """Rows by id, the filtered order of ids, and the facets' counts."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.ids: list[str] = []
        self.shown: set[str] = set()
        # Pending progress: an invisible row is not rebuilt for each report (20 µs), but when it
        # becomes visible, is due or is sorted by.
        self.unread: dict[str, TaskView] = {}
        # Acknowledged reasons by task id: `engine.query.attention_reasons.seen`.
        self.acknowledged: Mapping[str, Collection[str]] = {}
        self._judge_anew: set[str] = set()
        self._alarms: list[tuple[float, str]] = []
        self._alarm_of: dict[str, float] = {}
        self._paces: dict[str, Pace] = {}
        self._masks: dict[int, int] = {}  # Number of rows with exactly these facets
        self._counts: dict[str, int] | None = None  # Cached until one of them changes
        self._columns = SortColumns(self.rows)
        self.facets = FacetCounts()
        self.filter = Filter.of("")
        self._narrowed = False
        self.sort_keys: tuple[SortKey, ...] = ()
        self.set_sort(NEWEST_FIRST)

    @property
    def counts(self) -> dict[str, int]:
        """The number of tasks of each facet, by its key."""
        if self._counts is None:
            self._counts = {
                facet.value: sum(number for mask, number in self._masks.items() if mask & bit)
                for facet, bit in FACET_BIT.items()
            }
        return self._counts

    @property
    def is_filtered(self) -> bool:
        return bool(self.filter.parts)

    def sift(self, views: Iterable[TaskView], now_ms: float) -> Iterator[TaskView]:
        """Yield views with more than progress, and keep mere progress as pending.

        This runs 20,000 times a second, so it calls no functions. Callers that apply a view before
        they request the next one may receive a task twice.
        """
        rows, unread, judged = self.rows, self.unread, self._judge_anew
        for view in views:
            entry = view.entry
            task_id = entry.task_id
            row = rows.get(task_id)
            if row is None or row.stalled or view.units is None or task_id in judged:
                yield view
                continue
            at, old = row.stalls_at, row.view
            same = old.orphaned == view.orphaned and old.foreign == view.foreign
            same = same and old.locked == view.locked and old.stale == view.stale
            same = same and old.away == view.away
            # From this time on the task may be stalled, so the row is evaluated.
            if at is None or now_ms >= at or not same:
                yield view
            elif old.entry is entry or old.entry == entry:
                unread[task_id] = view
            else:
                yield view

    def catch_up(self, task_id: str, now_ms: float) -> tuple[Row, Row] | None:
        """Apply pending progress and return the rows before and after, or None without any."""
        view = self.unread.pop(task_id, None)
        if view is None:
            return None
        before, after = self.take(view, now_ms)
        assert before is not None
        return before, after

    def view_of(self, task_id: str) -> TaskView | None:
        unread = self.unread.get(task_id)
        if unread is not None:
            return unread
        row = self.rows.get(task_id)
        return None if row is None else row.view

    def stall_after_ms(self, task_id: str) -> float:
        pace = self._paces.get(task_id)
        return STALL_MIN_MS if pace is None else pace.stall_after_ms

    def take(self, view: TaskView, now_ms: float) -> tuple[Row | None, Row]:
        """Store the latest view of a task and return its rows before and after."""
        task_id = view.entry.task_id
        self.unread.pop(task_id, None)
        before = self.rows.get(task_id)
        pace = self._pace(task_id, view, now_ms)
        after = None
        if before is not None and pace and task_id not in self._judge_anew:
            after = moved_on(before, view, pace, now_ms)
        # Progress delays the alarm; an alarm that expires evaluates the row and sets the next one.
        if after is None or task_id not in self._alarm_of:
            self._watch(view, now_ms)
        if after is None:
            after = make_row(view, pace, now_ms, self.acknowledged.get(task_id, ()))
            self._judge_anew.discard(task_id)
            self._count(before, after)
        self.rows[task_id] = after
        self._columns.note(after)
        return before, after

    def forget(self, task_id: str) -> bool:
        """Drop a removed task, without changing `ids`; False for an unknown task."""
        row = self.rows.pop(task_id, None)
        if row is None:
            return False
        self._columns.forget(task_id)
        self._count(row, None)
        self._paces.pop(task_id, None)
        self.unread.pop(task_id, None)
        self._judge_anew.discard(task_id)
        self._alarm_of.pop(task_id, None)
        return True

    def passes(self, row: Row, now_ms: float) -> bool:
        """Return whether this row matches the filter."""
        return not self.filter.parts or self.filter.passes(asked(row), now_ms)

    def due(self, now_ms: float, most: int) -> list[TaskView]:
        """Return at most `most` tasks whose reasons for attention time alone may have changed.

        Fewer than `most` means that no more are due. The limit exists because each row is rebuilt.
        """
        due: list[TaskView] = []
        while self._alarms and self._alarms[0][0] <= now_ms and len(due) < most:
            at, task_id = heappop(self._alarms)
            if self._alarm_of.get(task_id) != at:
                continue
            del self._alarm_of[task_id]
            due.extend(self.to_judge((task_id,)))
        return due

    def to_judge(self, ids: Iterable[str]) -> list[TaskView]:
        """Return the latest views of these tasks, and mark them for evaluation."""
        known = [task_id for task_id in ids if task_id in self.rows]
        self._judge_anew.update(known)
        return [self.unread.get(task_id, self.rows[task_id].view) for task_id in known]

    @property
    def has_running(self) -> bool:
        return bool(self._paces)

    def set_filter(self, wanted: Filter) -> None:
        # A narrower filter only removes rows, unless time or progress affects the matches.
        was = self.filter
        self._narrowed = wanted.narrows(was) and not (was.ages or was.counts)
        self.filter = wanted

    def set_sort(self, keys: Sequence[SortKey]) -> None:
        """Sort by these columns, ignoring unknown ones; without any, newest first."""
        known = tuple((key, down) for key, down in keys if key in COLUMN_AT)
        self.sort_keys = known or NEWEST_FIRST
        self._orders = orders_of(self.sort_keys)

    def prepare_columns(self, keys: Sequence[str]) -> Iterator[None]:
        """Read these sort columns in steps, so that a later sort is fast."""
        return self._columns.prepare(keys)

    def lacks_columns(self, keys: Sequence[str]) -> bool:
        """Return whether any of these sort columns has not been read."""
        return self._columns.lacks(keys)

    def drop_columns(self) -> None:
        self._columns.drop()

    @property
    def follows_progress(self) -> bool:
        """True if progress alone moves rows."""
        return any(COLUMNS[COLUMN_AT[key]].moves for key, _ in self.sort_keys)

    def narrowed(self, now_ms: float) -> list[str] | None:
        """Return the `ids` that match a narrower filter, or None if others may match too."""
        if not self._narrowed or self.filter.counts:
            return None
        if self.filter.took and len(self.ids) * _MANY > len(self.rows):
            return None  # Durations of all rows together are faster
        rows = map(self.rows.__getitem__, self.ids)
        return [row.task_id for row in self.filter.keep(rows, now_ms, asked)]

    def passing(self, now_ms: float) -> list[Row]:
        """Return all rows that match the filter, in order of arrival."""
        self._read_all(now_ms)
        took = self._columns.took(self._paces, now_ms) if self.filter.took else None
        return self.filter.keep(self.rows.values(), now_ms, asked, took)

    def _read_all(self, now_ms: float) -> None:
        """Apply all pending progress if the order or the filter depends on it."""
        if self.follows_progress or self.filter.counts:
            for task_id in list(self.unread):
                self.catch_up(task_id, now_ms)

    def arranged(self, now_ms: float) -> list[str]:
        """Return the ids of all matching rows in order."""
        if not self.filter.parts:
            self._read_all(now_ms)
            return self._columns.of(self.sort_keys)
        rows = self.passing(now_ms)
        if len(rows) == len(self.rows):
            return self._columns.of(self.sort_keys)
        return self._columns.only(rows, self.sort_keys)

    def replace(self, ids: list[str]) -> None:
        # Building a set is much faster in memory order.
        self.ids, self.shown = ids, set(self.rows if len(ids) == len(self.rows) else ids)

    def in_batch_order(self, rows: Sequence[Row]) -> list[Row]:
        return in_order(rows, self._orders)

    def moved(self, before: Row, after: Row) -> bool:
        """Return whether this change affects the order."""
        return any(order.value(before) != order.value(after) for order in self._orders)

    def place_of(self, row: Row) -> int:
        """Return the position for this row in `ids`, which must be sorted."""
        return bisect_right(self.ids, self._place(row.task_id), key=self._place)

    def follows(self, row: Row) -> bool:
        """Return whether this row belongs after all of `ids`."""
        return not self.ids or self._place(self.ids[-1]) <= self._place(row.task_id)

    def _place(self, task_id: str) -> tuple[object, ...]:
        return (*place(self._orders, self.rows[task_id]), self._columns.arrival[task_id])

    def _pace(self, task_id: str, view: TaskView, now_ms: float) -> Pace | None:
        entry = view.entry
        if not isinstance(entry, TaskRecord) or entry.status != Status.RUNNING:
            self._paces.pop(task_id, None)
            return None
        pace = self._paces.get(task_id)
        if pace is None:
            pace = self._paces[task_id] = Pace(entry.started_at)
        if view.units is not None:
            pace.seen(view.units.done, view.last_event_at or now_ms)
        return pace

    def _watch(self, view: TaskView, now_ms: float) -> None:
        """Set the time at which this task must be evaluated again without a change."""
        task_id = view.entry.task_id
        at = changes_at(view, now_ms, self.stall_after_ms(task_id))
        if at is not None and at < self._alarm_of.get(task_id, math.inf):
            self._alarm_of[task_id] = at
            heappush(self._alarms, (at, task_id))

    def _count(self, before: Row | None, after: Row | None) -> None:
        self.facets.move(before, after)
        masks = self._masks
        was = before.about.facets if before is not None else None
        now = after.about.facets if after is not None else None
        if was == now:
            return
        self._counts = None
        if was is not None:
            masks[was] -= 1
        if now is not None:
            masks[now] = masks.get(now, 0) + 1
