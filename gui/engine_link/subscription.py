"""Throttles that limit repaints while a ledger loads.

Applying a part takes up to 8 ms and painting it three times as long, and rows that move 60 times a
second are unreadable. Painting gets separate turns of the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle, islice

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from engine.model.records import TaskId, TaskView
from engine.service.feed import Batch
from gui.engine_link.scheduling import Throttle

# Batches of the engine, merged into at most 25 repaints a second.

PERIOD_MS = 40
MOST_VIEWS = 2000  # Per repaint; fewer while each is slow, so that clicks are not delayed
_FEWEST, _FIRST = 50, 100
_LOAD_MS = 8.0  # Time budget of one batch while a ledger is loading
_SEND_MS = 3.0  # Time budget of one batch afterwards


class BatchThrottle(QObject):
    """Merge batches: emit the first immediately, later ones every 40 ms.

    A batch holds no more tasks than can be applied in some 3 ms (8 while a ledger loads), because a
    new task costs fifteen times as much as progress. Only the latest view of each task is emitted.
    """

    batch = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._views: dict[str, TaskView] = {}
        self._gone: dict[TaskId, None] = {}
        self._newest: Batch | None = None
        self._whole = False  # True once all tasks were emitted; later changes do not reset it
        self._most = _FIRST
        self._throttle = Throttle(self, PERIOD_MS, self._send, leading=True)
        self._held = self._due = False

    def hold(self, held: bool) -> None:
        """Hold back batches while another part uses a turn of the event loop."""
        self._held = held
        if not held and self._due:
            self._due = False
            self._throttle.expedite()

    def add(self, batch: Batch) -> None:
        """Add one batch; the latest view of a task wins."""
        for task_id in batch.gone:
            self._views.pop(task_id, None)
            self._gone[task_id] = None
        if self._gone:
            for view in batch.views:
                self._gone.pop(view.task_id, None)
        # Reading the bare id avoids a property call, the most expensive step here.
        self._views.update({view.entry.task_id: view for view in batch.views})
        self._newest = batch
        self._throttle.request()

    def _next(self) -> tuple[TaskView, ...]:
        """Return as many views as can be applied now."""
        if len(self._views) <= self._most:
            all_of_them, self._views = self._views, {}
            return tuple(all_of_them.values())
        ids = list(islice(self._views, self._most))
        return tuple(self._views.pop(task_id) for task_id in ids)

    def _send(self) -> None:
        newest = self._newest
        self._due = self._held
        if newest is None or self._held:
            return
        views = self._next()
        gone, self._gone = tuple(self._gone), {}
        waiting = len(self._views)
        whole = self._whole = newest.complete and (self._whole or not waiting)
        if waiting:
            self._throttle.expedite()  # Qt paints and handles clicks in between
        began = time.thread_time()
        self.batch.emit(
            Batch(
                views=views,
                gone=gone,
                loaded=newest.loaded - (0 if whole else waiting),
                total=newest.total,
                complete=whole,
            )
        )
        if len(views) >= _FEWEST:
            each_ms = max(1e-3, (time.thread_time() - began) * 1000 / len(views))
            most_ms = _SEND_MS if whole else _LOAD_MS
            self._most = max(_FEWEST, min(MOST_VIEWS, int(most_ms / each_ms)))


TURN_MS = 60  # One widget is painted in each turn, so that no turn is long
SHARE = 6  # Pause after painting, as a multiple of its duration, however slow the machine
TELL_S = 0.1
STILL = 5  # Turns without a part after which loading counts as stalled or finished
FEW = 500  # Ledgers up to this size need no throttle


class RepaintThrottle(QObject):
    """Paint `widgets` in turns while a ledger loads, from its first part to its last.

    `hold` holds back further parts (True) for the turn in which a widget is painted. `ended`
    reports that widgets paint themselves again.
    """

    ended = Signal()

    def __init__(
        self,
        widgets: Callable[[], tuple[QWidget, ...]],
        parent: QObject,
        hold: Callable[[bool], None] = lambda _: None,
    ) -> None:
        super().__init__(parent)
        self._widgets, self._hold = widgets, hold
        self._held: tuple[QWidget, ...] = ()
        self._turns: cycle[QWidget] = cycle(self._held)
        self._quiet = 0  # Turns since the last part
        self._told_at = 0.0
        self._rests_until = 0.0  # Measured in processor time of this thread
        self._turn = QTimer(self, interval=TURN_MS)
        self._turn.timeout.connect(self._take_turn)

    def hear(self, batch: Batch) -> None:
        """Process each part before the list does."""
        self._quiet = 0
        if batch.complete:
            self._let_go()
        elif not self._held and batch.loaded and batch.total - batch.loaded > FEW:
            self._held = self._widgets()
            first, *others = self._held
            self._turns = cycle((*others, first))
            first.repaint()  # Show the first rows immediately
            for widget in self._held:
                widget.setUpdatesEnabled(False)
            self._turn.start()

    def may_tell(self) -> bool:
        """Return whether to update a number that changes with each part: ten times a second."""
        now = time.monotonic()
        if self._held and now - self._told_at < TELL_S:
            return False
        self._told_at = now
        return True

    def _take_turn(self) -> None:
        self._quiet += 1
        # Loading may stall for any reason, and updates must not wait for it.
        if self._quiet > STILL:
            self._let_go()
        elif time.thread_time() >= self._rests_until:
            self._hold(True)
            QTimer.singleShot(0, self, self._paint_one)

    def _paint_one(self) -> None:
        QTimer.singleShot(0, self, self._go_on)  # Runs after this turn
        if not self._held:
            return
        began = time.thread_time()
        widget = next(self._turns)
        widget.setUpdatesEnabled(True)
        widget.repaint()
        widget.setUpdatesEnabled(False)
        ended = time.thread_time()
        self._rests_until = ended + SHARE * (ended - began)

    def _go_on(self) -> None:
        self._hold(False)

    def _let_go(self) -> None:
        self._turn.stop()
        for widget in self._held:
            widget.setUpdatesEnabled(True)
        if self._held:
            self._held = ()
            self.ended.emit()
