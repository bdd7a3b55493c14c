"""Hints for an empty result: the number of tasks that match without each condition."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from engine.model.display import elide_right
from engine.query import Filter
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.filters.active_filter import ActiveFilter
from gui.filters.filter_chips import Condition
from gui.filters.match_counts import Counting
from gui.style.banners import Choice
from gui.style.theme import plain_keys
from gui.tasks.facets import query_of

MOST = 2  # buttons beside the one that clears the filter
_CHARS = 16

MOST = 2  # Most buttons next to the one that clears the filter
ShowNearest = Callable[[tuple[Choice, ...]], object]


def attach(ctx: WindowContext, narrowing: ActiveFilter, show_nearest: ShowNearest) -> None:
    EmptyResultHints(ctx, narrowing, show_nearest)


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
