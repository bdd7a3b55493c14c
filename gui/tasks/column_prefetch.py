"""Read the sort columns of a long list in idle time, so that the first sort by each is fast."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import QObject, QTimer, Signal

from gui.engine_link.bridge import Bridge
from gui.tasks.task_table import TaskTable

FEWEST = 20_000  # A shorter list is sorted fast enough without.
SOON_MS = 1000  # Delay after loading, or after a change of the shown columns.
EXPENSIVE = ("took", "ended", "started", "average")  # Read even while hidden.
TURN_MS = 12  # Pause between two slices, in which clicks and keys are processed.
SLICE_S = 0.002
BUSY_SHARE = 0.05  # Share of a turn used by other work that postpones the slice.
BUSY_MS = 250
HIDDEN_MS = 5000


class ColumnPrefetch(QObject):
    """Read the shown and the expensive columns in slices, while the visible window is idle.

    `turned` is emitted after each attempt.
    """

    turned = Signal()

    def __init__(self, table: TaskTable, bridge: Bridge) -> None:
        super().__init__(table)
        self._table = table
        self._steps: Iterator[None] = iter(())
        self._checked_at = self._worked = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._turn)
        bridge.loaded.connect(self._start)
        table.header().rearranged.connect(self._start)

    @property
    def is_busy(self) -> bool:
        """True while columns remain to be read."""
        return self._timer.isActive()

    def _start(self) -> None:
        model, header = self._table.tasks, self._table.header()
        if self._timer.isActive() or model.total < FEWEST:
            return
        shown = [one.key for one in header.columns if header.is_wanted(one.key)]
        wanted = list(dict.fromkeys((*shown, *EXPENSIVE)))
        if model.lacks_columns(wanted):
            self._steps = model.prepare_columns(wanted)
            self._timer.start(SOON_MS)
            self._note_time()

    def _turn(self) -> None:
        table = self._table
        if not table.isVisible() or table.window().isMinimized():
            self._timer.start(HIDDEN_MS)
        elif self._others_work():
            self._timer.start(BUSY_MS)
        elif self._read_slice():
            self._timer.start(TURN_MS)
        self._note_time()
        self.turned.emit()

    def _note_time(self) -> None:
        self._checked_at, self._worked = time.perf_counter(), time.thread_time()

    def _others_work(self) -> bool:
        """Return whether this thread has done other work since the last check."""
        worked = time.thread_time() - self._worked
        return worked > BUSY_SHARE * (time.perf_counter() - self._checked_at)

    def _read_slice(self) -> bool:
        """Read for one slice and return False once all columns are read."""
        until = time.perf_counter() + SLICE_S
        more = True
        while more and time.perf_counter() < until:
            more = next(self._steps, self) is None  # Each step is None.
        return more
