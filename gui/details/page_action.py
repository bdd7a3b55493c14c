"""Action that shows a running task's page in the Page tab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.model.kind_traits import traits_of
from engine.model.records import Status, TaskView, Unreadable

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow


def has_page(view: TaskView) -> bool:
    """Return whether tasks of this kind use a browser of this program."""
    return traits_of(getattr(view.entry, "kind", "")).in_browser


def can_be_watched(view: TaskView) -> bool:
    """Return whether this process runs the task in a browser that can be shown."""
    entry = view.entry
    if isinstance(entry, Unreadable) or not view.ours:
        return False
    return traits_of(entry.kind).watch_page and entry.status == Status.RUNNING


def attach(window: MainWindow) -> QObject:
    """Add `watch_page`, enabled for a single selected task that this window runs."""
    return PageWatching(window)


class PageWatching(QObject):
    """Enable the action for tasks with a page."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        words, short = self.tr("&Watch the page"), self.tr("Watch the page")
        self._act = window.acts.add("watch_page", words, ["Ctrl+Shift+W"], "watch", short)
        self._act.triggered.connect(self._show)
        self._chosen = ""
        window.table.selection_changed.connect(self._choose)
        window.bridge.batch.connect(self._show_ability)  # no lambda: it would outlive the window
        self._show_ability()

    def _choose(self, ids: Sequence[str]) -> None:
        self._chosen = ids[0] if len(ids) == 1 else ""
        self._show_ability()

    def _show(self) -> None:
        self._window.acts["details"].setChecked(True)
        self._window.details.restore_state("page")

    def _show_ability(self, _: object = None) -> None:
        view = self._window.model.view_of(self._chosen) if self._chosen else None
        self._act.setEnabled(view is not None and can_be_watched(view))
