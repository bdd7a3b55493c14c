"""Explanation of disabled actions for tasks of read-only ledgers."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject

from engine.model.display import display
from gui.context.window_context import WindowContext

CHANGES: Final = (
    *("cancel", "stop", "force_stop", "force", "resume"),
    *("delete", "delete_for_good"),
)
MOST_LOOKED_AT: Final = 500


def attach(ctx: WindowContext) -> WatchOnly:
    """Attach the explanation; after the parts that disable the actions."""
    return WatchOnly(ctx)


class WatchOnly(QObject):
    """Explain disabled actions only: a selection may contain tasks of other ledgers."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        ctx.scope.changed.connect(self._explain)
        ctx.ledgers.changed.connect(self._explain)

    def _explain(self) -> None:
        reason, acts = self._reason(), self._ctx.actions
        keys = [key for key in CHANGES if not acts[key].isEnabled()] if reason else []
        acts.explain(dict.fromkeys(keys, reason))

    def _reason(self) -> str:
        """Return why the first read-only task of the selection cannot be changed, or ""."""
        ctx = self._ctx
        if not ctx.ledgers.states:
            return ""
        chosen = map(ctx.model.view_of, ctx.scope.ids()[:MOST_LOOKED_AT])
        locked = (view for view in chosen if view and not ctx.scope.may_change(view))
        view = next(locked, None)
        state = ctx.ledgers.state_of(view.ledger) if view is not None else None
        if state is None:
            return ""
        words = self.tr("“{0}” is only watched: nothing is changed in {1}.")
        return words.format(state.label, display(str(state.path)))
