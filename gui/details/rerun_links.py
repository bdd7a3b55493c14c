"""Index of re-runs by parent task, filled as tasks arrive."""

from __future__ import annotations

from PySide6.QtCore import QObject

from engine.model.records import TaskRecord, TaskView
from engine.service.feed import Batch
from gui.context.window_context import WindowContext
from gui.details.panel import Details


class RerunLinks(QObject):
    """Map each task to its re-runs, oldest first, and follow links between them."""

    def __init__(self, ctx: WindowContext, details: Details) -> None:
        super().__init__(ctx.parent)
        self._details = details
        self._ctx = ctx
        self._reruns: dict[str, dict[str, float]] = {}
        ctx.bridge.batch.connect(self._hear)
        details.shown.connect(self._tell)
        details.wants_task.connect(self._lead_to)
        details.overview.duplicate.connect(self._duplicate)

    def reruns_of(self, task_id: str) -> list[str]:
        """Return the ids of the re-runs of a task that still exist, oldest first."""
        found = self._reruns.get(task_id, {})
        there = (one for one in found if self._ctx.model.view_of(one))
        return sorted(there, key=lambda one: found[one])

    def _hear(self, batch: Batch) -> None:
        changed = False
        for view in batch.views:
            entry = view.entry
            if isinstance(entry, TaskRecord) and entry.engine and entry.engine.parent_task_id:
                family = self._reruns.setdefault(entry.engine.parent_task_id, {})
                changed |= view.task_id not in family
                family[view.task_id] = entry.created_at
        if changed or batch.gone:
            self._tell(self._ctx.model.view_of(self._details.task_id))

    def _tell(self, view: TaskView | None) -> None:
        if view is None:
            return
        entry = view.entry
        engine = entry.engine if isinstance(entry, TaskRecord) else None
        parent = (engine.parent_task_id or "") if engine is not None else ""
        known = bool(parent) and self._ctx.model.view_of(parent) is not None
        links = self._details.overview.links
        links.show_related(parent, known, self.reruns_of(view.task_id))
        can_duplicate = "duplicate" in set(self._ctx.actions)
        self._details.overview.offer_duplicate(can_duplicate)

    def _lead_to(self, task_id: str) -> None:
        """Select a task, and clear the filter if it hides the task."""
        ctx = self._ctx
        if ctx.model.view_of(task_id) is None:
            return
        ctx.table.select_ids([task_id])
        if ctx.table.selected_ids() != [task_id]:
            ctx.clear_filter()
            ctx.table.select_ids([task_id])

    def _duplicate(self) -> None:
        if "duplicate" in set(self._ctx.actions):
            self._ctx.actions["duplicate"].trigger()
