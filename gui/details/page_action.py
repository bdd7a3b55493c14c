"""Action that shows a running task's page in the Page tab."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject

from gui.context.window_context import WindowContext
from gui.details.page_tab import can_be_watched
from gui.details.panel import Details


def attach(ctx: WindowContext, details: Details) -> QObject:
    """Add `watch_page`, enabled for a single selected task that this window runs."""
    return PageWatching(ctx, details)


class PageWatching(QObject):
    """Enable the action for tasks with a page."""

    def __init__(self, ctx: WindowContext, details: Details) -> None:
        super().__init__(ctx.parent)
        self._details = details
        self._ctx = ctx
        words, short = self.tr("&Watch the page"), self.tr("Watch the page")
        self._act = ctx.actions.add("watch_page", words, ["Ctrl+Shift+W"], "watch", short)
        self._act.triggered.connect(self._show)
        self._chosen = ""
        ctx.table.selection_changed.connect(self._choose)
        ctx.bridge.batch.connect(self._show_ability)  # no lambda: it would outlive the window
        self._show_ability()

    def _choose(self, ids: Sequence[str]) -> None:
        self._chosen = ids[0] if len(ids) == 1 else ""
        self._show_ability()

    def _show(self) -> None:
        self._ctx.actions["details"].setChecked(True)
        self._details.restore_state("page")

    def _show_ability(self, _: object = None) -> None:
        view = self._ctx.model.view_of(self._chosen) if self._chosen else None
        self._act.setEnabled(view is not None and can_be_watched(view))
