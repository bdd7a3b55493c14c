"""Batches from the engine, joined so that the window repaints at most 25 times a second."""

from __future__ import annotations

import time
from itertools import islice

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from engine.feed import Batch
from engine.records import TaskId, TaskView

PERIOD_MS = 40
MOST_VIEWS = 800  # per repaint; fewer while each takes long, as a click must not wait
_FEWEST, _FIRST = 50, 100
_SEND_MS = 8.0  # that handing on one batch should work at most


class Flow(QObject):
    """Takes batches at any speed and hands them on joined: the first one at once, later ones
    every 40 ms, none with more tasks than can be taken in some 8 ms.

    A task that is new costs fifteen times what mere progress does.
    """

    batch = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._views: dict[TaskId, TaskView] = {}
        self._gone: dict[TaskId, None] = {}
        self._newest: Batch | None = None
        self._sent_at = 0.0
        self._most = _FIRST
        self._timer = QTimer(self, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._send)

    def add(self, batch: Batch) -> None:
        """Take one batch; the latest word on a task stands."""
        for task_id in batch.gone:
            self._views.pop(task_id, None)
            self._gone[task_id] = None
        if self._gone:
            for view in batch.views:
                self._gone.pop(view.task_id, None)
        self._views.update({view.task_id: view for view in batch.views})
        self._newest = batch
        if not self._timer.isActive():
            passed_ms = (time.monotonic() - self._sent_at) * 1000
            self._timer.start(max(0, round(PERIOD_MS - passed_ms)))

    def _send(self) -> None:
        newest = self._newest
        if newest is None:
            return
        ids = list(islice(self._views, self._most))
        views = tuple(self._views.pop(task_id) for task_id in ids)
        gone, self._gone = tuple(self._gone), {}
        waiting = len(self._views)
        self._sent_at = time.monotonic()
        if waiting:
            self._timer.start(0)  # lets Qt paint and take clicks in between
        began = time.thread_time()
        self.batch.emit(
            Batch(
                views=views,
                gone=gone,
                loaded=newest.loaded - waiting,
                total=newest.total,
                complete=newest.complete and not waiting,
            )
        )
        if len(views) >= _FEWEST:
            each_ms = max(1e-3, (time.thread_time() - began) * 1000 / len(views))
            self._most = max(_FEWEST, min(MOST_VIEWS, int(_SEND_MS / each_ms)))
