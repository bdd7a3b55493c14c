"""Explanation of disabled actions for tasks of read-only ledgers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from engine.model.display import display

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

CHANGES: Final = (
    *("cancel", "stop", "force_stop", "force", "resume"),
    *("delete", "delete_for_good"),
)
MOST_LOOKED_AT: Final = 500


def attach(window: MainWindow) -> WatchOnly:
    """Attach the explanation; after the parts that disable the actions."""
    return WatchOnly(window)


class WatchOnly(QObject):
    """Explain disabled actions only: a selection may contain tasks of other ledgers."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        window.scope.changed.connect(self._explain)
        window.beside.changed.connect(self._explain)

    def _explain(self) -> None:
        reason, acts = self._reason(), self._window.acts
        keys = [key for key in CHANGES if not acts[key].isEnabled()] if reason else []
        acts.explain(dict.fromkeys(keys, reason))

    def _reason(self) -> str:
        """Return why the first read-only task of the selection cannot be changed, or ""."""
        window = self._window
        if not window.beside.states:
            return ""
        chosen = map(window.model.view_of, window.scope.ids()[:MOST_LOOKED_AT])
        locked = (view for view in chosen if view and not window.scope.may_change(view))
        view = next(locked, None)
        state = window.beside.state_of(view.ledger) if view is not None else None
        if state is None:
            return ""
        words = self.tr("“{0}” is only watched: nothing is changed in {1}.")
        return words.format(state.label, display(str(state.path)))
