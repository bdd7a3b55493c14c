"""Work on the event loop in slices, so that thousands of rows never block the window."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import QObject, QTimer, Signal


class SlicedWork(QObject):
    """Run the steps of an iterator in slices of `budget_ms`, `pause_ms` apart.

    The clock is read after each step. `paused` is emitted after a slice that leaves work, `done`
    after the last step. A budget of 0 makes each step a slice.
    """

    paused = Signal()
    done = Signal()

    def __init__(self, parent: QObject, *, budget_ms: float, pause_ms: int = 0) -> None:
        super().__init__(parent)
        self.slices = 0  # Number of slices since the last start
        self._budget_s = budget_ms / 1000
        self._steps: Iterator[object] | None = None
        self._timer = QTimer(self, interval=pause_ms)
        self._timer.timeout.connect(self.advance)

    @property
    def is_active(self) -> bool:
        """True until the last step, or until the work is cancelled."""
        return self._steps is not None

    def start(self, steps: Iterator[object]) -> None:
        """Replace the current work by `steps`, whose first slice runs after a pause."""
        self._steps, self.slices = steps, 0
        self._timer.start()

    def cancel(self) -> None:
        """Drop the remaining steps, without a signal."""
        self._timer.stop()
        self._steps = None

    def advance(self) -> None:
        """Run one slice now."""
        self._run(time.perf_counter() + self._budget_s)

    def finish(self) -> None:
        """Run all remaining steps now."""
        self._run(float("inf"))

    def _run(self, until: float) -> None:
        steps = self._steps
        if steps is None:
            return
        self.slices += 1
        for _ in steps:
            if self._steps is not steps:  # A step cancelled or replaced the work
                return
            if time.perf_counter() >= until:
                self.paused.emit()
                return
        if self._steps is steps:
            self.cancel()
            self.done.emit()
