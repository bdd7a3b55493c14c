"""How often the table wakes up: only as often as something in it grows older."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

from gui.tasks.task_model import TaskModel

LIVE_TICK_MS = 1000
YOUNG_TICK_MS = 5_000
HIDDEN_TICK_MS = 10_000
IDLE_TICK_MS = 60_000


class Ticked(Protocol):
    """A table with a model of tasks, in sight or not."""

    @property
    def tasks(self) -> TaskModel: ...

    def isVisible(self) -> bool: ...


class Pulse(QTimer):
    """Lets the model of `table` tick; `pace` looks anew how often that is worth it."""

    def __init__(self, table: Ticked) -> None:
        assert isinstance(table, QWidget)
        super().__init__(table)
        self._table = table
        self.timeout.connect(self._tick)

    def _tick(self) -> None:
        self._table.tasks.tick()
        self.pace()

    def pace(self) -> None:
        """Never for an empty table; once a second only while what is alive is in sight."""
        table, every = self._table, 0
        if table.isVisible() and table.tasks.has_live_in_sight:
            every = LIVE_TICK_MS
        elif table.isVisible() and table.tasks.has_young_in_sight:
            every = YOUNG_TICK_MS
        elif table.tasks.has_running:
            every = HIDDEN_TICK_MS
        elif table.isVisible() and table.tasks.rowCount():
            every = IDLE_TICK_MS
        if not every:
            self.stop()
        elif not self.isActive() or self.interval() != every:
            self.start(every)
