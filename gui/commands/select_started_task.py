"""Select a started task once it is listed, unless the user selected another."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLineEdit

from gui.style.banners import Banner, Choice
from gui.tasks.task_table import TaskTable


class StartedTaskSelector(QObject):
    """Wait for one task to be listed, and report it when the filter hides it."""

    def __init__(self, table: TaskTable, bar: Banner, clear_filter: Callable[[], object]) -> None:
        super().__init__(bar)
        self._table, self._bar, self._clear_filter = table, bar, clear_filter
        self._awaited = self._hidden = ""

    def expect(self, task_id: str) -> None:
        """Select this task once it is listed."""
        self._awaited = task_id
        self.look()

    def forget(self) -> None:
        """Stop waiting, because the user made another selection."""
        self._awaited = ""

    def look(self) -> None:
        """Check whether the task is listed now."""
        task_id, model = self._awaited, self._table.tasks
        if not task_id or model.view_of(task_id) is None:
            return
        self._awaited = ""
        if model.row_of(task_id) >= 0:
            self._stand_on(task_id)
            return
        self._hidden = task_id
        title = self.tr("Started; hidden by the filter.")
        self._bar.tell(title, "", (Choice(self.tr("Show"), self._show),), "accent")

    def _show(self) -> None:
        self._bar.setVisible(False)
        self._clear_filter()
        self._stand_on(self._hidden)

    def _stand_on(self, task_id: str) -> None:
        """Select and focus the task for Del and Enter, unless a text field has the focus."""
        self._table.select_ids([task_id])
        if not isinstance(self._table.window().focusWidget(), QLineEdit):
            self._table.setFocus()
