"""A ledger that is being read repaints the list now and then only, not for each part of it.

A part is taken in within 8 ms; painting what it moved takes thrice that, and nobody can read
rows that move 60 times a second. What is painted has a turn of the loop for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle, islice

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QWidget

from engine.model.records import TaskId, TaskView
from engine.service.feed import Batch

# Batches from the engine, joined so that the window repaints at most 25 times a second.

PERIOD_MS = 40
MOST_VIEWS = 800  # per repaint; fewer while each takes long, as a click must not wait
_FEWEST, _FIRST = 50, 100
_LOAD_MS = 8.0  # that handing on one batch should work at most while a ledger is being read
_SEND_MS = 3.0  # and from then on


class Flow(QObject):
    """Takes batches at any speed and hands them on joined: the first one at once, later ones
    every 40 ms, none with more tasks than can be taken in some 3 ms (8 while a ledger is read).

    A task that is new costs fifteen times what mere progress does. Of each task the latest
    word is handed on, and never an older one.
    """

    batch = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._views: dict[str, TaskView] = {}
        self._gone: dict[TaskId, None] = {}
        self._newest: Batch | None = None
        self._whole = False  # has all that there was been handed on? News alone does not undo it
        self._sent_at = 0.0
        self._most = _FIRST
        self._timer = QTimer(self, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._send)
        self._held = self._due = False

    def hold(self, held: bool) -> None:
        """While held nothing is handed on: a turn of the loop is somebody else's."""
        self._held = held
        if not held and self._due:
            self._due = False
            self._timer.start(0)

    def add(self, batch: Batch) -> None:
        """Take one batch; the latest word on a task stands."""
        for task_id in batch.gone:
            self._views.pop(task_id, None)
            self._gone[task_id] = None
        if self._gone:
            for view in batch.views:
                self._gone.pop(view.task_id, None)
        # The bare id: a property of the view costs more than all of the rest here.
        self._views.update({view.entry.task_id: view for view in batch.views})
        self._newest = batch
        if not self._timer.isActive():
            passed_ms = (time.monotonic() - self._sent_at) * 1000
            self._timer.start(max(0, round(PERIOD_MS - passed_ms)))

    def _next(self) -> tuple[TaskView, ...]:
        """As many as can be taken now; the others stay."""
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
        self._sent_at = time.monotonic()
        if waiting:
            self._timer.start(0)  # lets Qt paint and take clicks in between
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


TURN_MS = 60  # one of the widgets is painted in each turn, so that no turn is long
SHARE = 6  # and so many times as long as that took there is other work, however slow the machine
TELL_S = 0.1
STILL = 5  # turns without a part, and the reading stands still, or is over
FEW = 500  # so many tasks are there at once


class Calm(QObject):
    """Keeps `widgets` from painting by themselves between a reading's first part and its last.

    `hold` keeps further parts back (True) for the one turn in which a widget is painted.
    """

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
        self._quiet = 0  # turns since the last part
        self._told_at = 0.0
        self._rests_until = 0.0  # by this thread's processor time
        self._turn = QTimer(self, interval=TURN_MS)
        self._turn.timeout.connect(self._take_turn)

    def hear(self, batch: Batch) -> None:
        """Be told of each part, before the list is."""
        self._quiet = 0
        if batch.complete:
            self._let_go()
        elif not self._held and batch.loaded and batch.total - batch.loaded > FEW:
            self._held = self._widgets()
            first, *others = self._held
            self._turns = cycle((*others, first))
            first.repaint()  # the first rows, at once
            for widget in self._held:
                widget.setUpdatesEnabled(False)
            self._turn.start()

    def may_tell(self) -> bool:
        """May a number be told that changes with each part? Ten times a second, else always."""
        now = time.monotonic()
        if self._held and now - self._told_at < TELL_S:
            return False
        self._told_at = now
        return True

    def _take_turn(self) -> None:
        self._quiet += 1
        if self._quiet > STILL:  # whyever: nobody may wait for what does not come
            self._let_go()
        elif time.thread_time() >= self._rests_until:
            self._hold(True)
            QTimer.singleShot(0, self, self._paint_one)

    def _paint_one(self) -> None:
        QTimer.singleShot(0, self, self._go_on)  # behind this turn
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
        self._held = ()
