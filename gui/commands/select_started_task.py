"""The task that was just started: selected as soon as the list has it, unless a person went on."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLineEdit

from gui.style.banners import Banner, Choice
from gui.tasks.task_table import TaskTable


class Newcomer(QObject):
    """Waits for one task to come into the table; says so when the filter hides it."""

    def __init__(self, table: TaskTable, bar: Banner, clear_filter: Callable[[], object]) -> None:
        super().__init__(bar)
        self._table, self._bar, self._clear_filter = table, bar, clear_filter
        self._awaited = self._hidden = ""

    def expect(self, task_id: str) -> None:
        """Select this task once it is there."""
        self._awaited = task_id
        self.look()

    def forget(self) -> None:
        """A person has chosen something else: the selection stays with them."""
        self._awaited = ""

    def look(self) -> None:
        """The list has changed: is it there now?"""
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
        """Select it, with the keys: Del and Enter are meant for it, unless somebody types."""
        self._table.select_ids([task_id])
        if not isinstance(self._table.window().focusWidget(), QLineEdit):
            self._table.setFocus()
