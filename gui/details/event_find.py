"""Looking for a text among all events of a task, also those that are not in the table."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from PySide6.QtCore import QObject, Signal

from engine.model.errors import EngineError
from engine.service.engine import Engine
from gui.engine_link.services import Desk

MOST = 100_000  # places; who has that many has to say more


class EventFinder(QObject):
    """Where one text stands in one task's events. `changed` tells of every step of the search."""

    changed = Signal()
    failed = Signal(EngineError)

    def __init__(self, desk: Desk | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._task_id = ""
        self._at = self._size = 0
        self.text = ""
        self.places: list[int] = []  # bytes at which lines begin, ascending
        self.busy = self.stopped = False

    @property
    def percent(self) -> int:
        """How much of the file has been looked through."""
        return min(100, 100 * self._at // self._size) if self._size else 100

    @property
    def too_many(self) -> bool:
        return len(self.places) >= MOST

    @property
    def _name(self) -> str:
        return f"find events {id(self)}"

    def look_for(self, task_id: str, text: str) -> None:
        """Search all of that task's events from their beginning; without a text end searching."""
        self.stop()
        self._task_id, self.text = task_id, text.strip()
        self._at = self._size = 0
        self.places, self.stopped = [], False
        self.changed.emit()
        self.go_on()

    def go_on(self) -> None:
        """Search what the file has grown by; nothing while a search is under way."""
        if self._desk is None or self.busy or self.stopped or not self.text or self.too_many:
            return
        self.busy = True
        self._desk.bridge.ask(self._search, lambda _: None, self._fail, name=self._name)

    def stop(self) -> None:
        """End the search; what was found stays."""
        if self.busy and self._desk is not None:
            self._desk.bridge.call_off(self._name)
            self.busy, self.stopped = False, True
            self.changed.emit()

    def beside(self, place: int, step: int) -> int | None:
        """The next place behind (step 1) or before (-1) this one, round the ends; None of none."""
        if not self.places:
            return None
        at = bisect_right(self.places, place) if step > 0 else bisect_left(self.places, place) - 1
        return self.places[at % len(self.places)]

    def number_of(self, place: int) -> int:
        """The how-manieth of the places this is, from 1 on; 0 where it is none of them."""
        at = bisect_left(self.places, place)
        return at + 1 if at < len(self.places) and self.places[at] == place else 0

    async def _search(self, engine: Engine) -> None:
        task_id, text = self._task_id, self.text
        while True:
            found = await engine.past.find(task_id, text, self._at)
            last = self.places[-1] if self.places else -1
            self.places += [place for place in found.places if place > last]
            ended = found.next_offset == self._at or self.too_many
            self._at, self._size = found.next_offset, found.size
            self.busy = not ended
            self.changed.emit()
            if ended:
                return

    def _fail(self, error: EngineError) -> None:
        self.busy = False
        self.failed.emit(error)
        self.changed.emit()
