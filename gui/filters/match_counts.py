"""How many tasks pass filters that are not in force: counted in slices, never in one go."""

from __future__ import annotations

import time
from collections.abc import Mapping

from PySide6.QtCore import QObject, QTimer, Signal

from engine.query import Filter
from gui.tasks.row import Row
from gui.tasks.row_query_subject import asked
from gui.tasks.task_model import TaskModel

_SLICE_S = 0.001
_PAUSE_MS = 20  # between two slices, in which everything else goes on
_ROWS = 200  # at a time; few enough for a slice, many enough to be asked together


class Counting(QObject):
    """Counts for several filters, one after another; `counted` tells each, `done` the end."""

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
        """How long the last count took, pauses included, where the machine did not rest."""
        return self._turns * (_PAUSE_MS + round(_SLICE_S * 1000))

    def count(self, filters: Mapping[str, Filter]) -> None:
        """Count these over all tasks there are now; what was being counted is forgotten."""
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
