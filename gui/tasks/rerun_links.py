"""Index of re-runs by parent task, filled as tasks arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.model.records import TaskRecord, TaskView
from engine.service.feed import Batch

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow


def attach(window: MainWindow) -> Kinship:
    """Show the parent and the re-runs of a task in the details, with links to them."""
    return Kinship(window)


class Kinship(QObject):
    """Map each task to its re-runs, oldest first, and follow links between them."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._reruns: dict[str, dict[str, float]] = {}
        window.bridge.batch.connect(self._hear)
        window.details.shown.connect(self._tell)
        window.details.wants_task.connect(self._lead_to)
        window.details.overview.duplicate.connect(self._duplicate)

    def reruns_of(self, task_id: str) -> list[str]:
        """Return the ids of the re-runs of a task that still exist, oldest first."""
        found = self._reruns.get(task_id, {})
        there = (one for one in found if self._window.model.view_of(one))
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
            self._tell(self._window.model.view_of(self._window.details.task_id))

    def _tell(self, view: TaskView | None) -> None:
        if view is None:
            return
        entry = view.entry
        engine = entry.engine if isinstance(entry, TaskRecord) else None
        parent = (engine.parent_task_id or "") if engine is not None else ""
        known = bool(parent) and self._window.model.view_of(parent) is not None
        links = self._window.details.overview.links
        links.show_kin(parent, known, self.reruns_of(view.task_id))
        can_duplicate = "duplicate" in set(self._window.acts)
        self._window.details.overview.offer_duplicate(can_duplicate)

    def _lead_to(self, task_id: str) -> None:
        """Select a task, and clear the filter if it hides the task."""
        window = self._window
        if window.model.view_of(task_id) is None:
            return
        window.table.select_ids([task_id])
        if window.table.selected_ids() != [task_id]:
            window.clear_filter()
            window.table.select_ids([task_id])

    def _duplicate(self) -> None:
        if "duplicate" in set(self._window.acts):
            self._window.acts["duplicate"].trigger()
