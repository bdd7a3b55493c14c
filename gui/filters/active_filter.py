"""The active filter of the list: selected facets and the query of the filter box."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from engine.model.ledger_ids import HERE
from engine.query import Filter, QueryError, unknown_values
from gui.filters.filter_bar import Condition, FilterBar
from gui.filters.sidebar import Sidebar
from gui.tasks.facets import ROOT, query_of
from gui.tasks.task_model import TaskModel

# Filters by age or progress are evaluated again at this interval, within a fiftieth of the time.
AGAIN_MS = 2000
_AGAIN_SHARE = 50


class ActiveFilter(QObject):
    """Combine facets and typed query into one filter; an invalid query changes nothing."""

    changed = Signal()

    def __init__(
        self, model: TaskModel, sidebar: Sidebar, bar: FilterBar, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._model, self._sidebar, self._bar = model, sidebar, bar
        self._typed = Filter.of("")
        self._held = False
        self._again = QTimer(self, singleShot=True)
        self._again.timeout.connect(self._filter_again)
        sidebar.facet_changed.connect(lambda _: self.apply())
        bar.text_changed.connect(lambda _: self.apply())
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
        """The selected facets."""
        return self._sidebar.chosen

    def show(self, text: str, facets: Iterable[str]) -> None:
        """Replace the filter by this query and these facets."""
        self._held = True  # Facets and query change together, so the list is filtered once
        self._sidebar.select(facets)
        self._bar.set_text(text)
        self._held = False
        self.apply()

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
        self._bar.show_conditions(self._conditions())
        wanted = joined(query_of(self._sidebar.chosen), self._typed.text)
        if wanted.text == self._model.filter.text:
            return
        self._model.set_filter(wanted)
        self._pace(0)
        self.changed.emit()

    def clear(self) -> None:
        """Clear the filter."""
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
