"""Show the ledgers beside the window's own in its list, side, status bar and title."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from engine.query import term
from engine.service.router.ledger_paths import LedgerState
from gui.context.window_context import WindowContext
from gui.filters.active_filter import ActiveFilter
from gui.filters.facet_tree import Lost
from gui.filters.sidebar import Sidebar
from gui.i18n.ledger_names import LOST, lost_words, summed_up
from gui.tasks.facets import OWN, ROOT, group_of

ShowSummary = Callable[..., object]


class LedgerDisplay(QObject):
    """Update what names a ledger whenever one comes, goes, or is in another state."""

    def __init__(
        self,
        ctx: WindowContext,
        sidebar: Sidebar,
        narrowing: ActiveFilter,
        show_summary: ShowSummary,
        copy_with_ledger: Callable[[bool], object],
    ) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._sidebar, self._narrowing = ctx, sidebar, narrowing
        self._show_summary, self._copy_with_ledger = show_summary, copy_with_ledger
        self._labels: tuple[str, ...] = ()
        self._watched: frozenset[str] = frozenset()
        self._last_seen: dict[str, int] = {}  # number of tasks of each when last readable
        self._chosen: tuple[str, ...] = ()  # in the sidebar, before a ledger gets another label
        ctx.ledgers.changed.connect(self._show)
        ctx.ledgers.change_begun.connect(self._keep_choice)
        ctx.ledgers.change_ended.connect(self._restore_choice)

    def _show(self) -> None:
        ledgers = self._ctx.ledgers
        self._show_labels(tuple(one.label for one in ledgers.states))
        if ledgers.watched != self._watched:
            self._watched = ledgers.watched
            self._ctx.scope.ask_leave(ledgers.may_change)
        self._show_summary(*summed_up(ledgers.states))
        self._show_lost(ledgers.states)

    def _show_lost(self, states: tuple[LedgerState, ...]) -> None:
        """Show lost ledgers in the sidebar without a count, since an old one would be wrong."""
        there = {one.label: one.tasks for one in states if one.state not in LOST}
        self._last_seen = {**self._last_seen, **there}
        lost = [one for one in states if one.state in LOST]
        known = self._last_seen
        found = {one.label: Lost(*lost_words(one, known.get(one.label, 0))) for one in lost}
        self._sidebar.show_lost({term(ROOT, label): said for label, said in found.items()})

    def _show_labels(self, labels: tuple[str, ...]) -> None:
        if labels != self._labels:
            self._labels = labels
            self._ctx.model.facets.name_ledgers(labels)
            self._ctx.table.header().show_several(bool(labels))
            self._copy_with_ledger(bool(labels))
            self._drop_what_is_gone()
            self._narrowing.apply()  # a filter may name an added or removed ledger
            self._sidebar.show_counts(self._ctx.model.counts())

    def _drop_what_is_gone(self) -> None:
        """Remove filter and sort by ledger that no longer apply, as the user could not see them."""
        model, labels = self._ctx.model, self._labels
        there = {OWN, *(term(ROOT, label) for label in labels)} if labels else set()
        chosen = self._sidebar.chosen
        self._sidebar.select(one for one in chosen if group_of(one) != ROOT or one in there)
        keys = [key for key in model.sort_keys if labels or key[0] != ROOT]
        if keys != list(model.sort_keys):
            model.set_sort(keys)

    def begin(self) -> None:
        """Show the ledgers that were kept, and drop what the last start left of others."""
        self._ctx.ledgers.begin()
        self._drop_what_is_gone()

    def _keep_choice(self) -> None:
        self._chosen = tuple(self._sidebar.chosen)

    def _restore_choice(self, label: str, wanted: str) -> None:
        facets = {term(ROOT, label): term(ROOT, wanted)}
        self._sidebar.select(facets.get(one, one) for one in self._chosen)
