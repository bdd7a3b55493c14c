"""Additional ledgers of a window: stored in the preferences, and queried by its parts.

Without additional ledgers no part of the window shows anything about them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QObject, Signal

from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.ledger_ids import free_label, is_label, qualified
from engine.model.records import TaskView
from engine.service.router.ledger_paths import Beside, LedgerState
from gui.context.preferences import Preferences
from gui.engine_link.bridge import Bridge
from gui.i18n.names import title_of
from gui.style.theme import from_home
from gui.tasks.facets import OWN
from gui.tasks.task_model import TaskModel

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
    changes, with the old and the new one; `change_begun` and `change_ended` enclose a change of
    one ledger. The `…_wanted` signals request a dialog: to add one, to change one, the settings
    page of all.
    """

    changed = Signal()
    renamed = Signal(str, str)
    change_begun = Signal()
    change_ended = Signal(str, str)
    add_wanted = Signal()
    change_wanted = Signal(str)
    page_wanted = Signal()

    def __init__(
        self, bridge: Bridge, preferences: Preferences, model: TaskModel, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bridge, self._preferences, self._model = bridge, preferences, model
        self._labels: tuple[str, ...] = ()
        self._known: frozenset[str] = frozenset()  # the same as a set; used for every batch
        self.watched: frozenset[str] = frozenset()  # labels of the read-only ledgers
        self._visiting: set[str] = set()  # shown until the window closes
        self._bridge.ledgers_changed.connect(self._take_states)
        preferences.changed.connect(self._follow)

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
        """How many tasks of the list are in the window's own ledger."""
        return self._model.facets.of(OWN, 0)

    def may_change(self, view: TaskView) -> bool:
        """Return whether this task may be changed; not in a read-only ledger."""
        return view.ledger not in self.watched

    def free_label(self, path: Path) -> str:
        """Return an unused label for this folder."""
        return free_label([path.name, *(one.name for one in path.parents)], self.labels)

    def id_in_list(self, task_id: str) -> str:
        ids = (task_id, *(qualified(task_id, label) for label in self._labels))
        return next((one for one in ids if self._model.view_of(one) is not None), "")

    def title(self, root: str) -> str:
        """Return the window's title: its own ledger at `root`, and the others."""
        return title_of(from_home(root), self.states)

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
        self.change_begun.emit()
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
        self.change_ended.emit(label, wanted.label)

    def _kept(self) -> tuple[Beside, ...]:
        return kept_in(self._preferences.get(KEPT, list))

    def _keep(self, beside: Iterable[Beside]) -> None:
        self._preferences.set(KEPT, [_written(one) for one in beside])

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

    def _take_states(self) -> None:
        self._labels = tuple(one.label for one in self.states)
        self._known = frozenset(self._labels)
        self.watched = frozenset(one.label for one in self.states if one.watch_only)
        self.changed.emit()
