"""Batches from the engine, joined so that the window repaints at most 25 times a second."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from engine.feed import Batch
from engine.records import TaskId, TaskView

PERIOD_MS = 40
MOST_VIEWS = 200  # per repaint: making a row costs about 0.1 ms, and a click must not wait


class Flow(QObject):
    """Takes batches at any speed and hands them on joined: the first one at once, later ones
    every 40 ms, none with more than 200 tasks."""

    batch = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._views: dict[TaskId, TaskView] = {}
        self._gone: dict[TaskId, None] = {}
        self._newest: Batch | None = None
        self._sent_at = 0.0
        self._timer = QTimer(self, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._send)

    def add(self, batch: Batch) -> None:
        """Take one batch; the latest word on a task stands."""
        for task_id in batch.gone:
            self._views.pop(task_id, None)
            self._gone[task_id] = None
        for view in batch.views:
            self._gone.pop(view.task_id, None)
            self._views[view.task_id] = view
        self._newest = batch
        if not self._timer.isActive():
            passed_ms = (time.monotonic() - self._sent_at) * 1000
            self._timer.start(max(0, round(PERIOD_MS - passed_ms)))

    def _send(self) -> None:
        newest = self._newest
        if newest is None:
            return
        ids = list(self._views)[:MOST_VIEWS]
        views = tuple(self._views.pop(task_id) for task_id in ids)
        gone, self._gone = tuple(self._gone), {}
        waiting = len(self._views)
        self._sent_at = time.monotonic()
        if waiting:
            self._timer.start(0)  # lets Qt paint and take clicks in between
        self.batch.emit(
            Batch(
                views=views,
                gone=gone,
                loaded=newest.loaded - waiting,
                total=newest.total,
                complete=newest.complete and not waiting,
            )
        )
