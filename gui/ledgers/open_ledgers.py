"""Additional ledgers of a window: stored in the preferences, and applied to its parts.

Without additional ledgers no part of the window shows anything about them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, Signal

from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.ledger_ids import free_label, is_label, qualified
from engine.model.records import TaskView
from engine.query import term
from engine.service.router.connection_state import Beside, LedgerState
from gui.filters.facet_items import Lost
from gui.i18n.ledger_names import LOST, lost_words, summed_up, title_of
from gui.tasks.facets import OWN, ROOT, group_of

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

KEPT: Final = "ledgers.beside"
MOST: Final = 20
MOST_PATH: Final = 4096


def kept_in(values: list[Any]) -> tuple[Beside, ...]:
    """Read the stored ledgers; invalid entries are ignored."""
    found = [_read(each) for each in values[:MOST]]
    return tuple({one.label: one for one in found if one is not None}.values())


def _read(kept: object) -> Beside | None:
    if not isinstance(kept, Mapping):
        return None
    path, label = kept.get("path"), kept.get("label")
    if not isinstance(path, str) or not isinstance(label, str) or not is_label(label):
        return None
    if not os.path.isabs(path) or "\0" in path or len(path) > MOST_PATH:
        return None
    return Beside(Path(path), label, watch_only=kept.get("watch_only") is not False)


def _written(one: Beside) -> dict[str, Any]:
    return {"path": str(one.path), "label": one.label, "watch_only": one.watch_only}


class SideBySide(QObject):
    """Additional ledgers of one window.

    `changed` is emitted when a ledger is added, removed or changes state; `renamed` before a label
    changes, with the old and the new one. The `…_wanted` signals request a dialog: to add one, to
    change one, the settings page of all.
    """

    changed = Signal()
    renamed = Signal(str, str)
    add_wanted = Signal()
    change_wanted = Signal(str)
    page_wanted = Signal()

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window, self._bridge = window, window.bridge
        self._locked: frozenset[str] = frozenset()
        self._labels: tuple[str, ...] = ()
        self._known: frozenset[str] = frozenset()  # the same as a set; used for every batch
        self._last_seen: dict[str, int] = {}  # number of tasks of each when last readable
        self._visiting: set[str] = set()  # shown until the window closes
        self._bridge.ledgers_changed.connect(self._show)
        window.desk.preferences.changed.connect(self._follow)

    @property
    def states(self) -> tuple[LedgerState, ...]:
        """The state of each additional ledger."""
        return self._bridge.ledgers

    def state_of(self, label: str) -> LedgerState | None:
        return next((one for one in self.states if one.label == label), None)

    @property
    def labels(self) -> frozenset[str]:
        return self._known

    @property
    def own_tasks(self) -> int:
        """The number of listed tasks in the window's own ledger."""
        return self._window.model.facets.of(OWN, 0)

    def may_change(self, view: TaskView) -> bool:
        """Return whether this task may be changed; not in a read-only ledger."""
        return view.ledger not in self._locked

    def free_label(self, path: Path) -> str:
        """Return an unused label for this folder."""
        return free_label([path.name, *(one.name for one in path.parents)], self.labels)

    def id_in_list(self, task_id: str) -> str:
        """Return the listed id of this task; "" if it is not listed."""
        ids = (task_id, *(qualified(task_id, label) for label in self._labels))
        return next((one for one in ids if self._window.model.view_of(one) is not None), "")

    def title(self, root: str) -> str:
        """Return the window's title: its own ledger at `root`, and the others."""
        return title_of(root, self.states)

    def starts_here(self, asked: bool = True) -> str:
        """Return a note where new tasks start, if `asked` and there are several ledgers."""
        if not asked or not self.states:
            return ""
        root = display(self._bridge.look_at_health().root)
        return self.tr("New tasks start in this window’s own ledger, {0}.").format(root)

    # Changes of the set of ledgers.

    def begin(self) -> None:
        """Show the stored ledgers."""
        self._follow(KEPT)
        self._leave_what_is_gone()

    def visit(self, folders: Iterable[Path]) -> None:
        """Show these folders read-only until the window closes."""
        own = Path(self._bridge.look_at_health().root)
        for folder in folders:
            if folder not in {own, *(one.path for one in self.states)}:
                beside = Beside(folder, self.free_label(folder))
                self._visiting.add(beside.label)
                self._bridge.add_ledger(beside)

    def add(self, beside: Beside) -> None:
        """Add this ledger permanently."""
        self._keep([*self._kept(), beside])

    def remove(self, label: str) -> None:
        """Remove the ledger from the window; its folder is unchanged."""
        self._visiting.discard(label)
        self._keep(one for one in self._kept() if one.label != label)
        self._follow(KEPT)

    def visits(self, label: str) -> bool:
        """Return whether it is shown only until the window closes."""
        return label in self._visiting

    def change(self, label: str, wanted: Beside, *, keep: bool = False) -> None:
        """Show this ledger as `wanted`; a temporary one stays temporary unless `keep`."""
        kept = self._kept()
        chosen = self._window.sidebar.chosen
        if wanted.label != label:
            self.renamed.emit(label, wanted.label)
        visits = label in self._visiting
        self._visiting.discard(label)
        if visits and not keep:
            self._visiting.add(wanted.label)
            self._bridge.change_ledger(label, new_label=wanted.label, watch_only=wanted.watch_only)
        elif label not in {one.label for one in kept}:
            self._keep([*kept, wanted])
        else:
            self._keep(wanted if one.label == label else one for one in kept)
        facets = {term(ROOT, label): term(ROOT, wanted.label)}
        self._window.sidebar.select(facets.get(one, one) for one in chosen)

    def _kept(self) -> tuple[Beside, ...]:
        return kept_in(self._window.desk.preferences.get(KEPT, list))

    def _keep(self, beside: Iterable[Beside]) -> None:
        self._window.desk.preferences.set(KEPT, [_written(one) for one in beside])

    def _follow(self, key: str) -> None:
        """Apply the stored ledgers after a change, an import or a reset."""
        if key != KEPT:
            return
        own = Path(self._bridge.look_at_health().root)
        wanted = {one.path: one for one in self._kept() if one.path != own}
        try:
            for state in self.states:
                if state.label not in self._visiting:
                    self._bring(state, wanted.get(state.path))
            for one in wanted.values():
                if one.path not in {state.path for state in self.states}:
                    self._bridge.add_ledger(one)
        except EngineError as error:  # an import from another machine may repeat labels
            self._bridge.failed.emit(error)

    def _bring(self, state: LedgerState, wanted: Beside | None) -> None:
        if wanted is None:
            self._bridge.remove_ledger(state.label)
        elif wanted != state.beside:
            self._bridge.change_ledger(
                state.label, new_label=wanted.label, watch_only=wanted.watch_only
            )

    # Updates of the window's parts.

    def _show(self) -> None:
        """Update every part after a change of the ledgers."""
        window, states = self._window, self.states
        self._show_labels(tuple(one.label for one in states))
        locked = frozenset(one.label for one in states if one.watch_only)
        if locked != self._locked:
            self._locked = locked
            window.scope.ask_leave(self.may_change)
        window.status.show_beside(*summed_up(states))
        window.show_title()
        self._show_lost()
        self.changed.emit()

    def _show_lost(self) -> None:
        """Show lost ledgers in the sidebar without a count, since an old one would be wrong."""
        there = {one.label: one.tasks for one in self.states if one.state not in LOST}
        self._last_seen = {**self._last_seen, **there}
        lost = [one for one in self.states if one.state in LOST]
        known = self._last_seen
        found = {one.label: Lost(*lost_words(one, known.get(one.label, 0))) for one in lost}
        self._window.sidebar.show_lost({term(ROOT, label): said for label, said in found.items()})

    def _show_labels(self, labels: tuple[str, ...]) -> None:
        if labels == self._labels:
            return
        window = self._window
        self._labels = window.model.facets.ledgers = labels
        self._known = frozenset(labels)
        window.table.header().show_several(bool(labels))
        window.copying.show_several(bool(labels))
        self._leave_what_is_gone()
        window.narrowing.apply()  # a filter may name an added or removed ledger
        window.sidebar.show_counts(window.model.counts())

    def _leave_what_is_gone(self) -> None:
        """Remove filter and sort by ledger that no longer apply, as the user could not see them."""
        window, labels = self._window, self._labels
        there = {OWN, *(term(ROOT, label) for label in labels)} if labels else set()
        chosen = window.sidebar.chosen
        window.sidebar.select(one for one in chosen if group_of(one) != ROOT or one in there)
        keys = [key for key in window.model.sort_keys if labels or key[0] != ROOT]
        if keys != list(window.model.sort_keys):
            window.model.set_sort(keys)
