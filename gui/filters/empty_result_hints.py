"""Match counts of inactive filters, and hints for an empty result made from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from PySide6.QtCore import QObject, Signal

from engine.model.display import elide_right
from engine.query import Filter
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.engine_link.sliced_work import SlicedWork
from gui.filters.active_filter import ActiveFilter
from gui.filters.filter_bar import Condition
from gui.style.banners import Choice
from gui.style.theme import plain_keys
from gui.tasks.facets import query_of
from gui.tasks.row import Row, asked
from gui.tasks.task_model import TaskModel

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
        ctx.model.shown_changed.connect(lambda *_: self._look())

    def _look(self) -> None:
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
