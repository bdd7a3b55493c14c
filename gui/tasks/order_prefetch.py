"""Orders of a very long list are made while nobody waits, so that a click on a title finds them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from PySide6.QtCore import QObject, QTimer, Signal

from engine.query import SortKey
from gui.engine_link.bridge import Bridge
from gui.tasks.task_table import TaskTable

FEWEST = 20_000  # fewer rows are sorted at once
SOON_MS = 1000  # after the list was read, or other columns are shown
DEAR = ("took", "ended", "started", "average")  # a sort by these takes longest, shown or not
# Few rows are equal by these: to turn their order round takes nearly as long as a sort.
BOTH_WAYS = frozenset((*DEAR, "task", "age", "updated"))
TURN_MS = 12  # between two slices: a click or a key comes first
SLICE_S = 0.002
BUSY_SHARE = 0.05  # of a turn that the window worked for others: then this waits
BUSY_MS = 250
HIDDEN_MS = 5000
AGAIN_S = 30.0  # at least, before orders that so many changes have spoilt are made anew
AGAIN_SHARE = 50  # and so many times as long as the last ones took


def attach(table: TaskTable, bridge: Bridge) -> Beforehand:
    """Begin once the list is read."""
    return Beforehand(table, bridge)


def worth_making(shown: Iterable[str]) -> list[SortKey]:
    """The orders that a click is likely to ask for while these columns are shown."""
    keys = dict.fromkeys((*shown, *DEAR))
    return [(key, False) for key in keys] + [(key, True) for key in keys if key in BOTH_WAYS]


class Beforehand(QObject):
    """Makes the order of each column in sight and of the dear ones, in slices, only while the
    window has nothing else to do and can be seen.

    It ends, and begins again only when an order is lost.

    `turned` says that it has looked once more whether it may work."""

    turned = Signal()

    def __init__(self, table: TaskTable, bridge: Bridge) -> None:
        super().__init__(table)
        self._table = table
        self._steps: Iterator[None] = iter(())
        self._wanted: list[SortKey] = []
        self._looked_at = self._worked = self._spent = 0.0
        self._not_before = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._turn)
        bridge.loaded.connect(self._look)
        table.header().rearranged.connect(self._look)

    @property
    def is_busy(self) -> bool:
        """Is there something to be made, now or as soon as the window rests?"""
        return self._timer.isActive()

    def _look(self) -> None:
        """The list was read, or heard of, or shows other columns: is anything to be made?"""
        model, header = self._table.tasks, self._table.header()
        if self._timer.isActive() or model.total < FEWEST:
            return
        shown = [one.key for one in header.columns if header.is_wanted(one.key)]
        wanted = worth_making(shown)
        if wanted == self._wanted and not model.lacks_an_order:
            return
        again = self._not_before - time.monotonic() if wanted == self._wanted else 0
        self._wanted, self._spent = wanted, 0.0
        self._steps = model.make_beforehand(wanted)
        self._timer.start(max(SOON_MS, int(again * 1000)))
        self._note_time()

    def _turn(self) -> None:
        table = self._table
        if not table.isVisible() or table.window().isMinimized():
            self._timer.start(HIDDEN_MS)
        elif self._others_work():
            self._timer.start(BUSY_MS)
        elif self._makes_more():
            self._timer.start(TURN_MS)
        else:
            self._not_before = time.monotonic() + max(AGAIN_S, AGAIN_SHARE * self._spent)
        self._note_time()
        self.turned.emit()

    def _note_time(self) -> None:
        self._looked_at, self._worked = time.perf_counter(), time.thread_time()

    def _others_work(self) -> bool:
        """Has this thread worked more than a little since it was looked at last?"""
        worked = time.thread_time() - self._worked
        return worked > BUSY_SHARE * (time.perf_counter() - self._looked_at)

    def _makes_more(self) -> bool:
        """Work for one slice; False once all is made."""
        began = time.perf_counter()
        until = began + SLICE_S
        more = True
        while more and time.perf_counter() < until:
            more = next(self._steps, self) is None  # each step is None
        self._spent += time.perf_counter() - began
        return more
