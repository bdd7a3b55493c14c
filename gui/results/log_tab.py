"""The events of the task that the viewer shows, as they come."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.model.records import History, TaskRecord, TaskView
from engine.results.units import Unit
from gui.details.events import Events
from gui.engine_link.event_follower import EventFollower, Offset
from gui.engine_link.event_rows import EventPart, EventRow, event_row
from gui.engine_link.services import Desk
from gui.results.viewer_tab import ViewerTab


class Log(ViewerTab):
    """Reads on its own: the details of the window may show another task."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id, self._ended = "", False
        self.events = Events(self, desk, self._look)
        self._follower = EventFollower(self._read, lambda _: self._ended, self._take)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.events)
        self.setFocusProxy(self.events.table)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        entry = view.entry
        self._ended = isinstance(entry, TaskRecord) and entry.is_terminal
        if view.task_id != self._task_id:
            self._task_id = view.task_id
            self.events.start_over(view.task_id)
            self._look(view.task_id, -1)

    def _look(self, task_id: str, place: int) -> None:
        """Read the newest events, or those around this byte of the file."""
        reads = self._follower
        work = reads.follow(task_id) if place < 0 else reads.look_at(task_id, place)
        self.desk.bridge.spawn_once(work, name=self._name)

    def leave(self) -> None:
        self.events.finder.stop()
        self.desk.bridge.call_off(self._name)
        self._task_id = ""

    @property
    def _name(self) -> str:
        return f"log {id(self)}"

    async def _read(self, one: str, before: Offset, since: Offset) -> History[EventRow]:
        engine = self.desk.bridge.engine
        return await engine.history(one, event_row, before=before, since=since)

    def _take(self, task_id: str, part: EventPart) -> None:
        if task_id == self._task_id:
            self.events.add(part)
