"""The filter that is active: from box and sidebar, from a cell, and hints for an empty result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent

from engine.model.display import display, elide_right
from engine.model.ledger_ids import HERE, plain_id
from engine.model.records import ROUTES, EngineFields, TaskRecord
from engine.model.status import Standing
from engine.query import Filter, QueryError, term, unknown_values
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.engine_link.scheduling import SlicedWork
from gui.filters.filter_bar import Condition, FilterBar
from gui.filters.sidebar import Sidebar
from gui.style.banners import Choice
from gui.style.theme import plain_keys
from gui.tasks.columns import COLUMNS
from gui.tasks.facets import AGES, OLDER, ROOT, query_of
from gui.tasks.row import Row, asked
from gui.tasks.task_model import SLICE_MS, TaskModel

# Filters by age or progress are evaluated again at this interval, within a fiftieth of the time.
AGAIN_MS = 2000
_AGAIN_SHARE = 50


class ActiveFilter(QObject):
    """Combine facets and typed query into one filter; an invalid query changes nothing.

    `stale_changed` reports that it is older than the typed query, which is invalid.
    """

    changed = Signal()
    stale_changed = Signal(bool)

    def __init__(
        self, model: TaskModel, sidebar: Sidebar, bar: FilterBar, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._model, self._sidebar, self._bar = model, sidebar, bar
        self._typed = Filter.of("")
        self._held = False
        self._shown = ""  # the query of the last view, which no one has typed
        self._wanted = self._typed
        self._preparing = SlicedWork(self, budget_ms=SLICE_MS)  # before the first search
        self._preparing.done.connect(self._set_filter)
        self._again = QTimer(self, singleShot=True)
        self._again.timeout.connect(self._filter_again)
        sidebar.replaced.connect(self._leave_view)
        sidebar.all_wanted.connect(self.clear)
        sidebar.facet_changed.connect(lambda _: self.apply())
        bar.text_changed.connect(lambda _: self.apply())
        bar.stale_changed.connect(self.stale_changed)
        sidebar.follow(model.facets, model.now_ms)
        bar.offer_values(lambda: model.facets.values)
        bar.chips.clear_wanted.connect(self.clear)

    @property
    def text(self) -> str:
        """The whole filter as one query, as `octask list --query` accepts it."""
        return self._model.filter.text

    @property
    def typed(self) -> str:
        """The last valid typed query."""
        return self._typed.text

    @property
    def parts(self) -> tuple[str, ...]:
        """The typed conditions."""
        return self._typed.parts

    @property
    def facets(self) -> tuple[str, ...]:
        return self._sidebar.chosen

    def show(self, text: str, facets: Iterable[str]) -> None:
        """Replace the filter by this query and these facets, until a facet is chosen instead."""
        self._shown = text
        self._held = True  # Facets and query change together, so the list is filtered once
        self._sidebar.select(facets)
        self._bar.set_text(text)
        self._held = False
        self.apply()

    def _leave_view(self) -> None:
        """End the query of a view; a query that was typed stays beside the facets."""
        text, self._shown = self._shown, ""
        if text and self._bar.text == text:
            self._bar.set_text("")

    def apply(self) -> None:
        """Filter by the selected facets and the typed query."""
        if self._held:
            return
        try:
            self._typed = Filter.of(self._bar.text)
            there = {ROOT: (HERE, *self._model.facets.ledgers)}
            self._bar.show_mistakes(unknown_values(self._bar.text, there), applied=True)
        except QueryError as error:
            self._bar.show_mistakes(error.all)
        self._preparing.cancel()
        self._bar.show_pending(False)
        self._bar.show_conditions(self._conditions())
        self._wanted = joined(query_of(self._sidebar.chosen), self._typed.text)
        if self._wanted.text == self._model.filter.text:
            return
        if self._model.lacks_texts(self._wanted):
            self._preparing.start(self._model.prepare_texts())
            self._bar.show_pending(True)
        else:
            self._set_filter()

    def _set_filter(self) -> None:
        self._bar.show_pending(False)
        self._model.set_filter(self._wanted)
        self._pace(0)
        self.changed.emit()

    def settle(self) -> None:
        """Apply at once a filter whose texts are still being made in slices."""
        self._preparing.finish()

    def clear(self) -> None:
        self.show("", ())

    def add(self, condition: str) -> None:
        """Add a condition of the filter language to the filter."""
        if condition not in self._typed.parts:
            parts = (*self._typed.parts, condition)
            self._bar.set_text(" ".join(parts) if self._typed.text else condition)

    @property
    def conditions(self) -> list[Condition]:
        """All conditions of the filter, each with a callback that removes it."""
        facets = [
            Condition(self._sidebar.name_of(facet), query_of([facet]), partial(self._drop, facet))
            for facet in self._sidebar.chosen
        ]
        typed = self._typed.parts
        parts = [Condition(part, part, partial(self._cut, part)) for part in typed]
        return [*facets, *parts]

    def _conditions(self) -> list[Condition]:
        """Return the conditions shown as chips; plain words are visible in the box already."""
        only_words = not self._sidebar.chosen and not self._typed.conditions
        return [] if only_words else self.conditions

    def _drop(self, facet: str) -> None:
        self._sidebar.select([each for each in self._sidebar.chosen if each != facet])

    def _cut(self, part: str) -> None:
        self._bar.set_text(" ".join(each for each in self._typed.parts if each != part))

    def _filter_again(self) -> None:
        began = time.perf_counter()
        self._model.filter_again()
        self._pace(int((time.perf_counter() - began) * 1000))

    def _pace(self, took_ms: int) -> None:
        wanted = self._model.filter
        if wanted.ages or wanted.counts:
            self._again.start(max(AGAIN_MS, took_ms * _AGAIN_SHARE))
        else:
            self._again.stop()


def joined(*queries: str) -> Filter:
    """Return the filter that requires all of these queries."""
    return Filter.of(" ".join(f"({query})" for query in queries if query))


_SLICE_MS = 1
_PAUSE_MS = 20  # Pause in ms between two slices, in which other events are processed
_ROWS = 200  # Rows evaluated at a time: few enough for a slice, enough to share evaluation


class Counting(QObject):
    """Count matches of several filters in turn; `counted` reports each, `done` the end."""

    counted = Signal(str, int)
    done = Signal()

    def __init__(self, model: TaskModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._work = SlicedWork(self, budget_ms=_SLICE_MS, pause_ms=_PAUSE_MS)
        self._work.done.connect(self.done)

    @property
    def is_busy(self) -> bool:
        return self._work.is_active

    @property
    def took_ms(self) -> int:
        """The duration of the last count on an idle machine, including pauses."""
        return self._work.slices * (_PAUSE_MS + _SLICE_MS)

    def count(self, filters: Mapping[str, Filter]) -> None:
        """Count these filters over all current tasks, and abandon the previous count."""
        if filters:
            self._work.start(self._count(filters, self._model.all_rows()))
        else:
            self.stop()

    def stop(self) -> None:
        self._work.cancel()

    def _count(self, filters: Mapping[str, Filter], rows: list[Row]) -> Iterator[None]:
        for name, wanted in filters.items():
            found = 0
            for at in range(0, len(rows), _ROWS):
                yield
                part = rows[at : at + _ROWS]
                found += len(wanted.keep(part, self._model.now_ms(), asked))
            self.counted.emit(name, found)


_CHARS = 16
MOST = 2  # Most buttons next to the one that clears the filter
ShowNearest = Callable[[tuple[Choice, ...]], object]


class EmptyResultHints(QObject):
    """Count the matches without each condition when the filter has no result."""

    def __init__(
        self, ctx: WindowContext, narrowing: ActiveFilter, show_nearest: ShowNearest
    ) -> None:
        super().__init__(ctx.parent)
        self._narrowing, self._show_nearest = narrowing, show_nearest
        self._ctx = ctx
        self._asked = ""
        self._found: dict[str, int] = {}
        self._conditions: dict[str, Condition] = {}
        self._counting = Counting(ctx.model, self)
        self._counting.counted.connect(self._found.__setitem__)
        self._counting.done.connect(self._tell)
        narrowing.changed.connect(self._look)
        narrowing.stale_changed.connect(self._show_stale)
        self._stale = False
        ctx.model.shown_changed.connect(lambda *_: self._look())

    def _show_stale(self, stale: bool) -> None:
        """Withdraw the hints for an older query, which would replace the typed one."""
        self._stale, self._asked = stale, ""
        if stale:
            self._counting.stop()
            self._show_nearest(())
        else:
            self._look()

    def _look(self) -> None:
        if self._stale:
            return
        model = self._ctx.model
        if model.rowCount() or not model.total or not model.is_filtered:
            self._asked = ""
            self._counting.stop()
            return
        if model.filter.text == self._asked:
            return
        self._asked = model.filter.text
        self._show_nearest(())
        conditions = self._narrowing.conditions
        self._conditions = {one.query: one for one in conditions}
        self._found.clear()
        if len(conditions) > 1:
            queries = {one.query: self._without(one) for one in conditions}
            self._counting.count(queries)

    def _without(self, one: Condition) -> Filter:
        """Return the filter without this condition."""
        narrowing = self._narrowing
        facets = [facet for facet in narrowing.facets if query_of([facet]) != one.query]
        typed = " ".join(part for part in narrowing.parts if part != one.query)
        return Filter.of(f"{query_of(facets)} {typed}")

    def _tell(self) -> None:
        best = sorted(self._found, key=lambda query: -self._found[query])[:MOST]
        self._show_nearest(tuple(self._choice(query) for query in best if self._found[query]))

    def _choice(self, query: str) -> Choice:
        one = self._conditions[query]
        words = self.tr("{1} without ‘{0}’")
        name = plain_keys(elide_right(one.name, _CHARS))
        return Choice(words.format(name, count(self._found[query])), one.remove)


_CONDITION_CHARS = 40
_MOST_VALUE = 1000
_NO_FIELDS = EngineFields()
_NO_RECORD = TaskRecord(task_id="")


def condition_of(row: Row, column: str, now_ms: float) -> str:
    """Return the condition for the value of this column, or an empty string without one."""
    make = _CELLS.get(column)
    return make(row, now_ms) if make is not None else ""


def _record(row: Row) -> TaskRecord | None:
    entry = row.view.entry
    return entry if isinstance(entry, TaskRecord) else None


def _status(row: Row, _: float) -> str:
    if row.standing is not Standing.UNKNOWN:
        return f"status:{row.standing.value}"
    status = row.about.status
    return term("status", status, quoted=True) if 0 < len(status) <= _MOST_VALUE else ""


def _task(row: Row, _: float) -> str:
    record = _record(row)
    return _term("url", record.url) if record is not None else ""


def _error(row: Row, _: float) -> str:
    record = _record(row)
    if record is None or record.error is None:
        return ""
    return _term("code", record.error.code or "") or _term("error", record.error.message)


def _budget(row: Row, _: float) -> str:
    return {"ok": "budget:ok", "warning": "budget:near", "exceeded": "budget:exceeded"}.get(
        row.about.budget, ""
    )


def _owner(row: Row, _: float) -> str:
    view = row.view
    if view.ours or view.foreign:
        return "owner:ours" if view.ours else "owner:foreign"
    return "owner:gone" if view.orphaned else ""


def _client(row: Row, _: float) -> str:
    about = row.about
    if about.client:
        return _term("client", about.client)
    return _term("route", about.route) if about.route in ROUTES else ""


def _fields(row: Row) -> EngineFields:
    record = _record(row)
    return (record.engine if record is not None else None) or _NO_FIELDS


def _within(field: str, at: float | None, now_ms: float) -> str:
    """Return the shortest preset age range that includes `at`."""
    if at is None:
        return ""
    spans = ((key.partition(":")[2], ms) for key, ms in AGES.items())
    found = next((span for span, ms in spans if now_ms - at < ms), OLDER.partition(":")[2])
    return f"{field}:{found}"


def _term(key: str, value: str) -> str:
    return term(key, value) if 0 < len(value) <= _MOST_VALUE else ""


_CELLS: Final[dict[str, Callable[[Row, float], str]]] = {
    "attention": lambda row, _: "status:attention" if row.needs else "",
    "status": _status,
    "task": _task,
    "kind": lambda row, _: _term("kind", row.about.kind),
    "progress": lambda row, _: "" if row.done is None else f"done:{row.done}",
    "budget": _budget,
    "age": lambda row, now: _within("age", row.created_at, now),
    "updated": lambda row, now: _within("updated", row.updated_at, now),
    "id": lambda row, _: _term("id", plain_id(row.task_id)),
    "root": lambda row, _: _term("root", row.about.ledger or HERE),
    "host": lambda row, _: _term("host", row.about.host),
    "error": _error,
    "failures": lambda row, _: "failed:>0" if row.view.units and row.view.units.failed else "",
    "contract": lambda row, _: "has:contract" if _fields(row).contract_id is not None else "",
    "forced": lambda row, _: "forced:yes" if _fields(row).forced_at is not None else "forced:no",
    "phase": lambda row, _: _term("phase", (_record(row) or _NO_RECORD).phase or ""),
    "owner": _owner,
    "client": _client,
    "parent": lambda row, _: _term("parent", plain_id(_fields(row).parent_task_id or "")),
}


class CellFilter(QObject):
    """Alt+click on a cell filters by its value, Alt+Shift+click excludes it."""

    def __init__(self, ctx: WindowContext, narrowing: ActiveFilter) -> None:
        super().__init__(ctx.parent)
        self._narrowing = narrowing
        self._ctx = ctx
        self._action = ctx.actions.add("filter_by_value", self.tr("Filter by this &value"))
        self._action.setShortcut("Alt+F3")
        self._action.triggered.connect(lambda _=False: self._filter_by_current())
        ctx.actions.keep_to(ctx.table, "filter_by_value")
        ctx.table.viewport().installEventFilter(self)
        # The table has its final model and selection model by now.
        ctx.table.selectionModel().currentChanged.connect(lambda *_: self._name())
        self._name()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QMouseEvent) or event.button() != Qt.MouseButton.LeftButton:
            return False
        if not event.modifiers() & Qt.KeyboardModifier.AltModifier:
            return False
        if event.type() == QEvent.Type.MouseButtonPress:
            index = self._ctx.table.indexAt(event.position().toPoint())
            others = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._add(self._condition(index), others=others)
        # The release and the second press of a double click must not select a row either.
        return True

    def _condition(self, index: QModelIndex | QPersistentModelIndex) -> str:
        if not index.isValid():
            return ""
        model = self._ctx.model
        return condition_of(model.row_at(index.row()), COLUMNS[index.column()].key, model.now_ms())

    def _filter_by_current(self) -> None:
        self._add(self._condition(self._ctx.table.currentIndex()), others=False)

    def _add(self, condition: str, *, others: bool) -> None:
        if condition:
            self._narrowing.add(f"-{condition}" if others else condition)

    def _name(self) -> None:
        """Show the condition in the menu text."""
        condition = self._condition(self._ctx.table.currentIndex())
        self._action.setEnabled(bool(condition))
        shown = elide_right(display(condition), _CONDITION_CHARS).replace("&", "&&")
        text = (
            self.tr("Filter b&y {0}").format(shown) if shown else self.tr("Filter by this &value")
        )
        self._action.setText(text)
