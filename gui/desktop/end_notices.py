"""Tasks whose end the user wants to be notified of, remembered between two starts of the window."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QObject

from engine.model.ledger_ids import ledger_label, plain_id, qualified
from engine.model.records import TaskRecord, TaskView
from gui.context.window_context import WindowContext

MOST = 1_000  # Ids that are remembered; the oldest go first
_MOST_LOOKED_AT = 500  # Tasks examined for the state of the action
_MEMORY = "notify-end"


class EndNotices(QObject):
    """Action `notify_end` for the selected tasks; `take_ended` returns those that have ended.

    They are kept by ledger and task id, so a task that ends while no window is open is reported
    at the next start.
    """

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._model, self._scope = ctx, ctx.model, ctx.scope
        root = ctx.bridge.look_at_health().root
        self._key = f"{_MEMORY}-{root.encode().hex()}"
        self._ids: dict[str, None] = dict.fromkeys(ctx.memory.names(self._key))
        self._back = False
        self._act = ctx.actions.add("notify_end", self.tr("Notify me at t&he end"), [], "bell")
        self._act.triggered.connect(lambda _=False: self._switch())
        self._model.mark_awaited(self._ids.keys(), ())
        self._scope.changed.connect(self._show_ability)
        ctx.ledgers.renamed.connect(self._move)
        self._show_ability()

    def take_ended(self, views: Iterable[TaskView], gone: Iterable[str]) -> list[TaskView]:
        """Return the awaited tasks of a batch that have ended, each once, and drop the `gone`."""
        if not self._ids:
            return []
        ended = [view for view in views if view.task_id in self._ids and not _is_live(view)]
        dropped = [one for one in gone if one in self._ids]
        if ended or dropped:
            for task_id in (*(view.task_id for view in ended), *dropped):
                self._ids.pop(task_id, None)
            self._save([view.task_id for view in ended])
        return ended

    def _switch(self) -> None:
        live = [view.task_id for view in self._scope.views() if _is_live(view)]
        for task_id in live:
            if self._back:
                self._ids.pop(task_id, None)
            else:
                self._ids[task_id] = None
        self._save(live)

    def _save(self, changed: Iterable[str]) -> None:
        while len(self._ids) > MOST:
            del self._ids[next(iter(self._ids))]
        self._ctx.memory.keep_names(self._key, tuple(self._ids))
        self._ctx.memory.save()
        self._model.mark_awaited(self._ids.keys(), changed)
        self._show_ability()

    def _move(self, label: str, wanted: str) -> None:
        """Follow the new label of a ledger."""
        self._ids = {
            qualified(plain_id(one), wanted) if ledger_label(one) == label else one: None
            for one in self._ids
        }
        self._save(())

    def _show_ability(self) -> None:
        found = map(self._model.view_of, self._scope.ids()[:_MOST_LOOKED_AT])
        live = [view.task_id for view in found if view is not None and _is_live(view)]
        self._back = bool(live) and all(one in self._ids for one in live)
        words = (
            self.tr("Do not notify me at t&he end")
            if self._back
            else self.tr("Notify me at t&he end")
        )
        self._act.setText(words)
        self._act.setIconText(words.replace("&", ""))
        why_not = self.tr("Only the end of a task that has not ended can be awaited.")
        self._ctx.actions.allow_chosen("notify_end", bool(live), why_not, chosen=len(self._scope))


def _is_live(view: TaskView) -> bool:
    return isinstance(view.entry, TaskRecord) and not view.entry.is_terminal
