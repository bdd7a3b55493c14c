"""Match counts of inactive filters, computed in slices between events."""

from __future__ import annotations

import time
from collections.abc import Mapping

from PySide6.QtCore import QObject, QTimer, Signal

from engine.query import Filter
from gui.tasks.row import Row
from gui.tasks.row_query_subject import asked
from gui.tasks.task_model import TaskModel

_SLICE_S = 0.001
_PAUSE_MS = 20  # Pause in ms between two slices, in which other events are processed
_ROWS = 200  # Rows evaluated at a time: few enough for a slice, enough to share evaluation


class Counting(QObject):
    """Count matches of several filters in turn; `counted` reports each, `done` the end."""

    counted = Signal(str, int)
    done = Signal()

    def __init__(self, model: TaskModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._jobs: list[tuple[str, Filter]] = []
        self._rows: list[Row] = []
        self._at = self._found = self._turns = 0
        self._slices = QTimer(self, interval=_PAUSE_MS)
        self._slices.timeout.connect(self._go_on)

    @property
    def is_busy(self) -> bool:
        return self._slices.isActive()

    @property
    def took_ms(self) -> int:
        """The duration of the last count on an idle machine, including pauses."""
        return self._turns * (_PAUSE_MS + round(_SLICE_S * 1000))

    def count(self, filters: Mapping[str, Filter]) -> None:
        """Count these filters over all current tasks, and abandon the previous count."""
        self._jobs = list(filters.items())
        self._rows = self._model.all_rows() if filters else []
        self._at = self._found = self._turns = 0
        if self._jobs:
            self._slices.start()
        else:
            self.stop()

    def stop(self) -> None:
        self._slices.stop()
        self._jobs, self._rows = [], []

    def _go_on(self) -> None:
        until, now_ms = time.perf_counter() + _SLICE_S, self._model.now_ms()
        self._turns += 1
        while self._jobs:
            name, wanted = self._jobs[0]
            part = self._rows[self._at : self._at + _ROWS]
            self._found += len(wanted.keep(part, now_ms, asked))
            self._at += _ROWS
            if self._at >= len(self._rows):
                found, self._at, self._found = self._found, 0, 0
                self._jobs.pop(0)
                self.counted.emit(name, found)
            if time.perf_counter() >= until:
                break
        if not self._jobs and self._slices.isActive():
            self.stop()
            self.done.emit()
