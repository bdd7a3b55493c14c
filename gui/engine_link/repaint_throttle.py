"""A ledger that is being read repaints the list now and then only, not for each part of it.

A part is taken in within 8 ms; painting what it moved takes thrice that, and nobody can read
rows that move 60 times a second. What is painted has a turn of the loop for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QWidget

from engine.service.feed import Batch

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
